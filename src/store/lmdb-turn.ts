/**
 * One transaction of the embedded engine's ledger: admissions, settlements and what else came together.
 * Knows the tables; begins and commits nothing.
 *
 * Each step reads, checks and parses all it needs before its first put, because an exception does not
 * undo puts. A put fails only for want of space, and then the engine fails the whole transaction.
 */
import type { UsageRow } from '../ledger/row.js'
import { readRow, requestIdIn, writeRow } from './usage-record.js'
import { addToSum, newSum, usedTokens, type SumCounters } from './usage-sum.js'
import type { Admission, BudgetSpent, Claim, SettleOutcome, Verdict } from './ledger.js'
import { namesMissing, putNames } from './lmdb-account-rows.js'
import { Counts } from './lmdb-counts.js'
import { damaged, quietly } from './lmdb-failure.js'
import {
  rowName,
  rowNameOf,
  timeName,
  timeToldBy,
  type LedgerTables,
} from './lmdb-ledger-tables.js'
import { Groups, UNKNOWN, type Group } from './lmdb-uncounted.js'
import { Subjects } from './lmdb-subjects.js'
import type { Recent } from './lmdb-recent.js'
import type { Reservation } from './lmdb-reservation.js'

/** Of so many requests it is looked up whether they are known; of more, what is known last. */
const FEW = 4
/** Where it stands how often rows were counted by another process than had put them. */
const OTHERS = 'counted by others'

/** Steps of one transaction, and what they have changed in memory until `write`. */
export class Turn {
  readonly nowMs: number
  private readonly tables: LedgerTables
  private readonly recent: Recent
  private readonly subjects: Subjects
  private readonly counts: Counts
  private othersRead: number | null = null
  private asked = 0
  private newest: Newest | null = null
  /** What record tells where the rows are that this transaction has put. */
  readonly record: string
  /** The rows that it has put, which no sum has yet. */
  readonly rows: { readonly name: string; readonly row: UsageRow }[] = []
  /** How often a process had counted rows that another has put, when these were put. */
  others = 0

  /** `by` is unique to the transaction. */
  constructor(tables: LedgerTables, recent: Recent, nowMs: number, by: string) {
    this.tables = tables
    this.recent = recent
    this.record = timeName(nowMs) + by
    this.nowMs = nowMs
    this.subjects = new Subjects(tables, recent, nowMs)
    this.counts = new Counts(tables)
  }

  admit(admission: Admission): Verdict {
    const { requestId, accountId, demands } = admission
    if (this.isKnown(requestId)) {
      const standings = this.subjects.look(accountId, demands)
      return { admitted: true, standings: standings.map((each) => ({ ...each, retryAfterMs: 0 })) }
    }
    const row = writeRow(admission.unsettled)
    const { taken, standings, holds } = this.subjects.take(accountId, demands)
    if (!taken) return { admitted: false, standings }
    this.recent.reserve(requestId, { untilMs: this.nowMs + admission.leaseMs, holds, row }, true)
    return { admitted: true, standings }
  }

  /** `text` is as `writeRow` writes the row. */
  settle(row: UsageRow, text: string, claim?: Claim): SettleOutcome {
    const { requestId } = row
    const newName = this.nameIfNew(requestId)
    const isNew = newName !== null
    const reservation = isNew ? null : this.recent.reservation(this.tables, requestId)
    // A request has either, never both.
    if (!isNew && reservation === null && this.hasRow(requestId)) return 'already'
    const isOwed = reservation === null && claim?.taken === 'nothing'
    if (isOwed) this.subjects.readAll(row.accountId, claim.demands)
    this.append(newName ?? rowName(row), row, text, reservation)
    if (isOwed) this.subjects.charge(row, claim.demands)
    return 'settled'
  }

  /** The same for rows that another process has written; false where one, or what it concerns, is damaged. */
  settleTexts(texts: readonly string[]): boolean {
    let areWhole = true
    for (const text of texts) {
      const requestId = requestIdIn(text)
      if (requestId !== null && this.hasRow(requestId)) continue
      try {
        this.settle(readRow(text), text)
      } catch {
        areWhole = false
      }
    }
    return areWhole
  }

  renew(requestId: string, leaseMs: number): void {
    const reservation = this.recent.reservation(this.tables, requestId)
    // What has run out may have lost its place to another request already.
    if (reservation === null || reservation.untilMs <= this.nowMs) return
    const untilMs = this.nowMs + leaseMs
    this.recent.reserve(requestId, { ...reservation, untilMs }, false)
  }

  /** Settles a reservation that ran out so long ago, as its row says; false where there is none by now. */
  expire(requestId: string, overdueMs: number): boolean {
    const reservation = this.recent.reservation(this.tables, requestId)
    if (reservation === null || reservation.untilMs > this.nowMs - overdueMs) return false
    const row = intact(`the reservation of '${requestId}'`, () => readRow(reservation.row))
    this.append(rowName(row), row, reservation.row, reservation)
    return true
  }

  /** Changes what is taken of limits otherwise than by requests. */
  putBudget(spent: BudgetSpent): void {
    this.subjects.put(spent)
  }

  /**
   * Counts what of a group has not been; all of it where nobody else has counted since `others` was so much. Throws
   * where a sum or a row is damaged, and has counted nothing then.
   */
  count(group: Group, others: number): void {
    const { byAccount } = this.tables
    const { accountId } = group
    const isOurs = others === this.othersNow()
    const names = isOurs ? group.names : namesMissing(byAccount, accountId, group.names)
    if (names.length === 0) return
    this.counts.add(group, names.length === group.names.length ? group.added : this.sumOf(names))
    putNames(byAccount, accountId, names)
  }

  /** The same for the rows of a record, whoever has put them; it stays where one of them, or its sum, is damaged. */
  countRecord(record: string): void {
    const { uncounted, rows } = this.tables
    const groups = new Groups()
    let areWhole = true
    for (const name of uncounted.get(record)?.split(' ') ?? []) {
      try {
        const text = rows.get(name)
        // One that is not there any more was counted or damaged when it was dropped.
        if (text !== undefined) groups.add(name, readRow(text))
      } catch {
        areWhole = false
      }
    }
    this.othersRead = this.othersNow() + 1
    quietly(this.tables.root.put(OTHERS, Buffer.from(new Float64Array([this.othersRead]).buffer)))
    for (const group of groups.sorted()) areWhole = this.tryToCount(group, UNKNOWN) && areWhole
    if (areWhole) quietly(uncounted.remove(record))
  }

  /** `count`; false where it throws. */
  tryToCount(group: Group, others: number): boolean {
    try {
      this.count(group, others)
      return true
    } catch {
      return false
    }
  }

  /** Puts what the steps have changed in memory; after the last of them. */
  write(): void {
    this.recent.write(this.tables)
    this.counts.write()
    if (this.rows.length === 0) return
    this.others = this.othersNow()
    quietly(this.tables.uncounted.put(this.record, this.rows.map(({ name }) => name).join(' ')))
  }

  private append(name: string, row: UsageRow, text: string, reservation: Reservation | null): void {
    const { rows, ids } = this.tables
    const id = row.requestId
    if (reservation !== null) {
      const { holds } = reservation
      const subjects = this.subjects.held(holds)
      this.subjects.release(subjects, holds, usedTokens(row), row.costNanoUsd)
      this.recent.end(this.tables, id)
    }
    quietly(rows.put(name, text))
    if (timeToldBy(id) === null) quietly(ids.put(id, timeName(row.atMs)))
    this.newest?.put.add(name)
    this.rows.push({ name, row })
  }

  /** What rows come to together. */
  private sumOf(names: readonly string[]): SumCounters {
    const sum = newSum()
    for (const name of names) {
      const text = this.tables.rows.get(name)
      if (text === undefined) continue
      const row = intact(`row '${name}'`, () => readRow(text))
      addToSum(sum, row)
    }
    return sum
  }

  /** Whether there is a reservation or a row of the request. */
  private isKnown(requestId: string): boolean {
    if (this.nameIfNew(requestId) !== null) return false
    if (this.recent.opened(requestId) !== undefined) return true
    return this.tables.open.doesExist(requestId) || this.hasRow(requestId)
  }

  /** Its row's name where the request is younger than all that the tables had, as nearly every one is, and not in here. */
  private nameIfNew(requestId: string): string | null {
    if (this.recent.opened(requestId) !== undefined) return null
    this.asked += 1
    if (this.asked <= FEW) return null
    this.newest ??= newestOf(this.tables)
    const { open, row, put } = this.newest
    const toldMs = requestId > open ? timeToldBy(requestId) : null
    if (toldMs === null) return null
    const name = timeName(toldMs) + requestId
    return name > row && !put.has(name) ? name : null
  }

  private othersNow(): number {
    this.othersRead ??= this.tables.root.get(OTHERS)?.readDoubleLE(0) ?? 0
    return this.othersRead
  }

  private hasRow(requestId: string): boolean {
    const name = rowNameOf(this.tables, requestId)
    return name !== null && this.tables.rows.doesExist(name)
  }
}

/** The last names in the tables of rows and reservations when that was asked, and the rows that were put since. */
interface Newest {
  readonly row: string
  readonly open: string
  readonly put: Set<string>
}

function newestOf({ rows, open }: LedgerTables): Newest {
  const last = { reverse: true, limit: 1 }
  const [row = ''] = Array.from(rows.getKeys(last))
  const [id = ''] = Array.from(open.getKeys(last))
  return { row, open: id, put: new Set() }
}

function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}
