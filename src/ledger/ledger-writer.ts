/**
 * The ledger as the gateway uses it: rows are settled before an answer ends, and wait on disk while the
 * ledger is away. Never makes a client wait longer than half a second. Knows no engine and no exchange.
 */
import type { LedgerConfig } from '../config/config.js'
import type { Logger } from '../observe/log/log.js'
import type { Reservation, Ledger } from '../store/ledger.js'
import type { UsageRow } from './row.js'
import type { Segment, Spool } from './spool.js'
import { readSpoolLine, writeSpoolLine, type SpooledEntry } from './spool-line.js'

/** What the ledgerWriter are made of. */
export interface LedgerWriterOptions {
  readonly ledger: Pick<Ledger, 'settle' | 'append' | 'expire' | 'prune'>
  readonly spool: Spool
  readonly settings: () => LedgerConfig
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly onRow: (kind: RowKind, rows: number) => void
}

/**
 * What is counted: each row by how its tokens came about, and beside that what happened to it on its way.
 * `lost`: reservations whose process died, settled by whoever came by. `damaged`: lines of the spool that
 * cannot be read.
 */
export const ROW_KINDS = [
  'reported',
  'estimated',
  'none',
  'lost',
  'spooled',
  'replayed',
  'dropped',
  'damaged',
] as const
/** One of `ROW_KINDS`. */
export type RowKind = (typeof ROW_KINDS)[number]

/** What a client may wait for its row; then the row goes to the spool, and nobody waits again. */
const SETTLE_MS = 500
/** How often waiting rows are looked at. */
const SWEEP_MS = 100
/** How often an absent ledger is asked whether it is back. */
const RETRY_MS = 1_000
/** How often others' spools and reservations are looked after; a reservation is seen to within a minute. */
const TEND_MS = 10_000
/**
 * After an outage every process has so long to bring what it knows of requests that ended meanwhile, before
 * anybody takes them for lost.
 */
const GRACE_MS = 30_000
/** How often what is too old is dropped. */
const PRUNE_MS = 600_000
/** Rows of the spool that are settled at the same time. */
const BATCH = 64
/** How long a call that only tidies up may take. */
const PATIENCE_MS = 5_000
/** Dropped rows are counted one by one and told of this often. */
const ALARM_MS = 10_000
/** Rows of requests that ran when the disk became full; new requests are refused then. About 1 KB each. */
const MOST_HELD = 20_000
const DAY_MS = 86_400_000

/** A row on its way to the ledger. */
interface Waiting {
  readonly row: UsageRow
  readonly reservation: Reservation | undefined
  readonly sinceMs: number
  readonly resolve: () => void
  /** Where it is in the list; `OVER` once it is not. */
  place: number
}

const OVER = -1

/** One process's ledgerWriter. */
export class LedgerWriter {
  private readonly options: LedgerWriterOptions
  /** Without order, and without those that are over: a row that is kept longer costs the collector. */
  private readonly waiting: Waiting[] = []
  private readonly sweep: NodeJS.Timeout
  private tending: NodeJS.Timeout | null = null
  private tendingNow: Promise<void> | null = null
  private prunedMs = performance.now()
  private alarmedMs = -ALARM_MS
  private isAway = false
  /** When the last outage was noticed, and when it was over. */
  private awayMs = Number.NEGATIVE_INFINITY
  private backMs = Number.NEGATIVE_INFINITY
  /** How many rows of a segment have been brought in, so that a slow ledger is not brought them again. */
  private readonly brought = new Map<string, number>()
  private isFull = false
  /** Rows that neither the ledger nor the spool has taken, with `when_full: refuse`. */
  private readonly held: SpooledEntry[] = []
  private isClosed = false
  private spooledRows = 0
  private droppedRows = 0

  constructor(options: LedgerWriterOptions) {
    this.options = options
    this.sweep = setInterval(() => this.giveUpOld(), SWEEP_MS).unref()
    this.tendAfter(RETRY_MS)
  }

  /** Nothing that costs money may be started: a row could neither be settled nor kept. */
  get isRefusing(): boolean {
    if (this.options.settings().whenFull !== 'refuse') return false
    return this.held.length > 0 || (this.isFull && this.isAway)
  }

  /** `ok`, or what is wrong, in words for an operator. */
  get state(): string {
    if (!this.isAway) return 'ok'
    const parts = [`unavailable, ${this.spooledRows} rows spooled`]
    if (this.held.length > 0) parts.push(`${this.held.length} in memory, requests are refused`)
    if (this.droppedRows > 0) parts.push(`${this.droppedRows} dropped`)
    return parts.join(', ')
  }

  /**
   * Resolves once the row is safe; null where it is so already. Never rejects. Without a reservation its request
   * holds nothing that others wait for. It waits from `sinceMs` on, monotonic.
   */
  settle(
    row: UsageRow,
    reservation?: Reservation,
    sinceMs = performance.now(),
  ): Promise<void> | null {
    this.options.onRow(row.source, 1)
    if (this.isAway) {
      this.keep({ row, reservation })
      return null
    }
    return new Promise((resolve) => {
      const place = this.waiting.length
      const waiting: Waiting = { row, reservation, sinceMs, resolve, place }
      this.waiting.push(waiting)
      const { ledger } = this.options
      const safe: Promise<unknown> =
        reservation === undefined ? ledger.append(row) : ledger.settle(row, reservation)
      safe.then(
        () => this.done(waiting),
        () => this.giveUp(waiting),
      )
    })
  }

  /** Waits for what is on its way, tries once more to empty the spool, and puts the rest on the disk. */
  async close(): Promise<void> {
    this.isClosed = true
    if (this.tending !== null) clearTimeout(this.tending)
    while (this.waiting.length > 0) await pause(SWEEP_MS / 4)
    clearInterval(this.sweep)
    await this.tendingNow
    if (this.spooledRows + this.held.length > 0) await this.replay().catch(() => undefined)
    for (const spooled of this.held.splice(0)) this.keep(spooled)
    this.options.spool.close()
  }

  private done(waiting: Waiting): void {
    if (this.leave(waiting)) waiting.resolve()
  }

  private giveUp(waiting: Waiting): void {
    if (!this.leave(waiting)) return
    this.away()
    this.keep(waiting)
    waiting.resolve()
  }

  private leave(waiting: Waiting): boolean {
    const { place } = waiting
    if (place === OVER) return false
    const last = this.waiting.pop()
    if (last !== undefined && last !== waiting) {
      this.waiting[place] = last
      last.place = place
    }
    waiting.place = OVER
    return true
  }

  private giveUpOld(): void {
    const oldestMs = performance.now() - SETTLE_MS
    // From the end: whoever takes the place of one that leaves has been looked at.
    for (let at = this.waiting.length - 1; at >= 0; at -= 1) {
      const waiting = this.waiting[at]
      if (waiting !== undefined && waiting.sinceMs <= oldestMs) this.giveUp(waiting)
    }
  }

  private away(): void {
    if (this.isAway) return
    this.isAway = true
    this.awayMs = performance.now()
    this.options.log.warn('ledger unavailable, rows are spooled')
    this.tendAfter(RETRY_MS)
  }

  private keep({ row, reservation }: SpooledEntry): void {
    const { spool, onRow, log } = this.options
    this.isFull = spool.append(writeSpoolLine({ row, reservation })) === 'full'
    if (!this.isFull) {
      this.spooledRows += 1
      onRow('spooled', 1)
      return
    }
    const isHeld = this.canHold
    if (isHeld) this.held.push({ row, reservation })
    else this.droppedRows += 1
    onRow(isHeld ? 'spooled' : 'dropped', 1)
    if (performance.now() - this.alarmedMs < ALARM_MS) return
    this.alarmedMs = performance.now()
    const event = isHeld
      ? 'usage row held in memory, ledger unavailable and spool full'
      : 'usage row dropped, ledger unavailable and spool full'
    log.error(event, spool.fault, {
      request_id: row.requestId,
      rows: isHeld ? this.held.length : this.droppedRows,
    })
  }

  private get canHold(): boolean {
    const isRefused = this.options.settings().whenFull === 'refuse'
    return isRefused && !this.isClosed && this.held.length < MOST_HELD
  }

  /** Brings what is held in memory to the ledger, the oldest first. Rejects if it takes none. */
  private async bringHeld(): Promise<void> {
    while (this.held.length > 0) {
      const batch = this.held.slice(0, BATCH)
      const settling = batch.map(({ row, reservation }) =>
        this.options.ledger.settle(row, reservation),
      )
      await within(PATIENCE_MS, Promise.all(settling))
      this.held.splice(0, batch.length)
      this.options.onRow('replayed', batch.length)
    }
  }

  private tendAfter(ms: number): void {
    if (this.isClosed) return
    if (this.tending !== null) clearTimeout(this.tending)
    // Workers start together and must not come together.
    const jitteredMs = ms * (0.75 + Math.random() / 2)
    this.tending = setTimeout(() => {
      this.tendingNow ??= this.tend().finally(() => {
        this.tendingNow = null
        this.tendAfter(this.isAway ? RETRY_MS : TEND_MS)
      })
    }, jitteredMs).unref()
  }

  /** The spool, others' dead reservations, and what is too old; the first two tell who is back. */
  private async tend(): Promise<void> {
    try {
      // What the dead have left in their spools is not lost; a server that only reads is not back.
      const rows = this.spooledRows
      await this.replay()
      await this.expire()
      this.back(rows)
      // What was spooled meanwhile.
      await this.replay()
      await this.prune()
    } catch {
      this.away()
    }
  }

  private async expire(): Promise<void> {
    const nowMs = performance.now()
    const isOver = !this.isAway && nowMs - this.backMs >= GRACE_MS
    const overdueMs = isOver ? 0 : Math.ceil(nowMs - this.awayMs + GRACE_MS)
    const lost = await within(PATIENCE_MS, this.options.ledger.expire(overdueMs))
    if (lost > 0) this.options.onRow('lost', lost)
  }

  private back(rows: number): void {
    if (!this.isAway) return
    this.isAway = false
    this.isFull = false
    this.backMs = performance.now()
    this.options.log.info('ledger is back', { rows })
  }

  /** The ledger takes each row once, however often it is brought. */
  private async replay(): Promise<void> {
    const { spool, onRow } = this.options
    await this.bringHeld()
    for (const segment of spool.segments()) {
      const { rows, damaged } = this.rowsOf(segment)
      for (let at = this.brought.get(segment.path) ?? 0; at < rows.length; at += BATCH) {
        const batch = rows.slice(at, at + BATCH)
        const settling = batch.map(({ row, reservation }) =>
          this.options.ledger.settle(row, reservation),
        )
        await within(PATIENCE_MS, Promise.all(settling))
        onRow('replayed', batch.length)
        this.brought.set(segment.path, at + batch.length)
      }
      // A line that cannot be read is the only one of its row: an operator may still, or another version.
      if (damaged > 0) spool.setAside(segment)
      else spool.remove(segment)
      this.brought.delete(segment.path)
      if (spool.owns(segment)) this.spooledRows = Math.max(0, this.spooledRows - rows.length)
    }
  }

  private rowsOf(segment: Segment): { rows: SpooledEntry[]; damaged: number } {
    const rows: SpooledEntry[] = []
    const lines = segment.lines()
    let { damaged } = segment
    for (const line of lines) {
      try {
        rows.push(readSpoolLine(line))
      } catch {
        // Of another version, or no row at all; counted and told of below.
        damaged += 1
      }
    }
    if (damaged > 0) {
      this.options.onRow('damaged', damaged)
      this.options.log.warn('spool has lines that cannot be read', {
        file: segment.path,
        rows: damaged,
      })
    }
    return { rows, damaged }
  }

  private async prune(): Promise<void> {
    if (performance.now() - this.prunedMs < PRUNE_MS) return
    this.prunedMs = performance.now()
    const { keepDays, hoursDays, daysDays } = this.options.settings()
    const nowMs = Date.now()
    await this.options.ledger.prune({
      entriesBeforeMs: nowMs - keepDays * DAY_MS,
      hoursBeforeMs: nowMs - hoursDays * DAY_MS,
      daysBeforeMs: nowMs - daysDays * DAY_MS,
    })
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Rejects where the promise takes too long; what becomes of it then is of no interest. */
function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the ledger did not answer in time')), ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
