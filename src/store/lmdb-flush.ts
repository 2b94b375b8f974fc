/**
 * Brings the limits and reservations of the embedded engine's log into its tables: every few seconds, each once
 * however often it has changed, a sorted slice in each transaction. Then that part of the log goes. Any process
 * may do it, at any time: what it puts is how things stand. Knows no limit.
 */
import { quietly } from './lmdb-failure.js'
import type { LedgerTables } from './lmdb-ledger-tables.js'
import { writeLimits } from './lmdb-limits.js'
import type { Recent, Subject } from './lmdb-recent.js'
import { writeReservation } from './lmdb-reservation.js'

/** How long what is logged waits. */
const WAIT_MS = 5_000
/** So much of the log does not wait, since what it says is in the memory of each process. */
const MANY_BYTES = 16 * 1024 ** 2
/** A round of another process that takes longer than this is done again: it may have died. */
const PATIENCE_MS = 10_000
/** Records put in one transaction: about half a millisecond. */
const AT_ONCE = 256
/** Records of the log dropped in one transaction. */
const DROPPED_AT_ONCE = 64
/** Sorted at once, so that neighbours in the tables are written one after another: about a millisecond. */
const SORTED = 1_024

/** That of one process. */
export class Flush {
  private readonly recent: Recent
  private readonly onDue: () => void
  private isWanted = false
  /** A slice of what was logged up to a moment with each call. */
  private round: Iterator<void> | null = null
  private others = { cut: 0, sinceMs: 0 }
  private timer: NodeJS.Timeout | null = null

  /** `onDue` is called where something should be brought. */
  constructor(recent: Recent, onDue: () => void) {
    this.recent = recent
    this.onDue = onDue
  }

  /** Whether a transaction is worth its while that nobody waits for. */
  get isDue(): boolean {
    const { seen, applied, cut, bytes } = this.recent
    if (this.round !== null) return true
    if (seen === applied || (!this.isWanted && bytes < MANY_BYTES)) return false
    return cut <= applied || performance.now() - this.others.sinceMs > PATIENCE_MS
  }

  /** Has the next transactions bring everything that is logged. */
  want(): void {
    this.isWanted = true
    this.others.sinceMs = Number.NEGATIVE_INFINITY
  }

  /** At the beginning of a transaction, once it has taken up the log. */
  begin(tables: LedgerTables): void {
    const { cut } = this.recent
    if (this.others.cut !== cut) this.others = { cut, sinceMs: performance.now() }
    if (this.round !== null || !this.isDue) return
    this.isWanted = false
    this.round = roundOf(tables, this.recent)
    this.round.next()
  }

  /** What one transaction brings, after its steps. */
  bring(): void {
    if (this.round?.next().done === true) this.round = null
  }

  /** Sees to it that what is logged is brought in a while. */
  wait(): void {
    if (this.recent.seen === this.recent.applied) return
    this.timer ??= setTimeout(() => {
      this.timer = null
      this.isWanted = true
      this.onDue()
    }, WAIT_MS).unref()
  }

  /** A transaction may not have happened: how things stand is read anew. */
  reset(): void {
    this.round = null
    this.recent.reset()
  }

  /** Nothing is called any more. */
  close(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}

/** Brings what was logged up to now, a slice with each call; first of all it says that it will. */
function* roundOf(tables: LedgerTables, recent: Recent): Generator<void, void, void> {
  const { seen: upTo, applied, starts } = recent
  const subjects = recent.cutHere(tables)
  const open = recent.openedAfter(applied)
  yield
  for (const part of parts(subjects, SORTED)) {
    part.sort(byName)
    for (const slice of parts(part, AT_ONCE)) {
      if (recent.starts !== starts) return
      for (const { name, record } of slice) quietly(tables.subjects.put(name, writeLimits(record)))
      yield
    }
  }
  for (const slice of parts(open, AT_ONCE)) {
    if (recent.starts !== starts) return
    for (const id of slice) {
      const reservation = recent.opened(id)
      if (reservation !== undefined) quietly(tables.open.put(id, writeReservation(reservation)))
    }
    yield
  }
  if (recent.starts !== starts) return
  recent.appliedUpTo(tables, upTo)
  for (;;) {
    yield
    const range = { start: 1, end: upTo + 1, limit: DROPPED_AT_ONCE }
    const dropped = Array.from(tables.log.getKeys(range))
    if (dropped.length === 0) return
    for (const at of dropped) quietly(tables.log.remove(at))
  }
}

function* parts<T>(all: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size)
}

function byName(a: Subject, b: Subject): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}
