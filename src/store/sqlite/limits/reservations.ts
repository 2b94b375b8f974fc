/**
 * Reservations in SQLite: one row for each request that runs, with the amounts that it holds of limits and
 * the ledger entry that is written if no process settles it.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { readEntry } from '../../records/entry-text.js'
import { isConstraint, textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { idValues, SELECT_REQUEST } from '../ledger/entry-row.js'
import { intact } from '../read-records.js'
import { readHolds, writeHolds, type Hold } from './holds.js'

/** Maximum time between two reads of all reservations while admissions are refused. */
const READ_INTERVAL_MS = 1_000

/** A reservation to add. */
interface NewReservation {
  readonly requestId: string
  /** The time of its expiry, in ms since 1970. */
  readonly untilMs: number
  readonly holds: readonly Hold[]
  /** The text of the ledger entry that is written if no process settles the request. */
  readonly entry: string
}

/** The reservations of a store. Its methods are for the inside of a transaction. */
export class Reservations {
  /** Reservations that this process made and has not settled, so that their rows need not be read. */
  private readonly held = new Map<string, readonly Hold[]>()
  private readonly insert: Statement
  private readonly exists: Statement
  private readonly select: Statement
  private readonly delete: Statement
  private readonly prolong: Statement
  private readonly selectDue: Statement
  private readonly selectEarliest: Statement
  private readonly selectExpired: Statement
  private nextReadMs = 0

  constructor(engine: Engine) {
    // The end of a settled request is null, which the column does not allow.
    this.insert = engine.prepare(
      `INSERT INTO reservations (request_id, until_ms, holds, entry) VALUES
       (?3, iif(EXISTS (${SELECT_REQUEST}), NULL, ?4), ?5, ?6)`,
    )
    this.exists = engine.prepare(
      `SELECT 1 FROM reservations WHERE request_id = ?3 UNION ALL ${SELECT_REQUEST} LIMIT 1`,
    )
    this.select = engine.prepare('SELECT holds FROM reservations WHERE request_id = ?')
    this.delete = engine.prepare('DELETE FROM reservations WHERE request_id = ?')
    this.prolong = engine.prepare(
      'UPDATE reservations SET until_ms = ? WHERE request_id = ? AND until_ms > ?',
    )
    this.selectDue = engine.prepare('SELECT request_id FROM reservations WHERE until_ms <= ? LIMIT ?')
    this.selectEarliest = engine.prepare('SELECT min(until_ms) AS earliest FROM reservations')
    this.selectExpired = engine.prepare(
      'SELECT holds, entry FROM reservations WHERE request_id = ? AND until_ms <= ?',
    )
  }

  /** False if the request has a reservation or a ledger entry already; nothing is changed then. */
  add({ requestId, untilMs, holds, entry }: NewReservation): boolean {
    try {
      // `get` makes no object with the number of changes.
      this.insert.get(...idValues(requestId), untilMs, writeHolds(holds), entry)
    } catch (error) {
      if (isConstraint(error) && this.isKnown(requestId)) return false
      throw error
    }
    this.held.set(requestId, holds)
    this.nextReadMs = Math.min(this.nextReadMs, untilMs)
    return true
  }

  /** Whether the request has a reservation or a ledger entry. */
  isKnown(requestId: string): boolean {
    return this.exists.get(...idValues(requestId)) !== undefined
  }

  /** Drops a reservation that was rolled back, or that another process has settled, from memory. */
  forget(requestId: string): void {
    this.held.delete(requestId)
  }

  /**
   * Removes a reservation; its holds, or null if there is none in the file. Only in the transaction that adds
   * the request's ledger entry: a request with a reservation then has no entry, and one with an entry has no
   * reservation.
   */
  remove(requestId: string): readonly Hold[] | null {
    const holds = this.held.get(requestId) ?? this.read(requestId)
    this.held.delete(requestId)
    // RETURNING would take twice as long as the number of changes.
    return holds === null || Number(this.delete.run(requestId).changes) === 0 ? null : holds
  }

  /** Prolongs a reservation that has not expired: one that has may have lost its slot to another request. */
  renew(requestId: string, untilMs: number, nowMs: number): void {
    this.prolong.run(untilMs, requestId, nowMs)
  }

  /** The ids of requests whose reservations end by a time; at most `limit`. Reads all reservations. */
  due(latestMs: number, limit: number): string[] {
    return this.selectDue.all(latestMs, limit).map((row) => textIn(row, 'request_id'))
  }

  /**
   * The same for each admission that is refused: reads them once a second, and when the first of them has
   * ended.
   */
  dueNow(nowMs: number, limit: number): string[] {
    if (nowMs < this.nextReadMs) return []
    const due = this.due(nowMs, limit)
    const { earliest } = this.selectEarliest.get() ?? {}
    const againMs = nowMs + READ_INTERVAL_MS
    this.nextReadMs = typeof earliest === 'number' ? Math.min(earliest, againMs) : againMs
    return due
  }

  /**
   * The ledger entry of an expired reservation, or null if there is none. Throws an Error if it is damaged.
   */
  expired(requestId: string, latestMs: number): LedgerEntry | null {
    const row = this.selectExpired.get(requestId, latestMs)
    if (row === undefined) return null
    return intact(`the reservation of '${requestId}'`, () => readEntry(textIn(row, 'entry')))
  }

  /** Whether an expired reservation can be settled. */
  isIntact(requestId: string, latestMs: number): boolean {
    try {
      const row = this.selectExpired.get(requestId, latestMs)
      if (row === undefined) return false
      readHolds(requestId, textIn(row, 'holds'))
      readEntry(textIn(row, 'entry'))
      return true
    } catch {
      return false
    }
  }

  /** A reservation of another process, or of this one before it was restarted. */
  private read(requestId: string): readonly Hold[] | null {
    const row = this.select.get(requestId)
    return row === undefined ? null : readHolds(requestId, textIn(row, 'holds'))
  }
}
