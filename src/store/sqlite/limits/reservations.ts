/**
 * Reservations in SQLite: one row for each request that runs, with the amounts that it holds of limits and the ledger
 * entry that is written if no process settles it.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { readEntry } from '../../records/entry-text.js'
import { numberIn, textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact } from '../read-records.js'
import { readHolds, writeHolds, type Hold } from './holds.js'

/** A reservation of this process. */
interface Held {
  readonly id: number
  readonly holds: readonly Hold[]
}

/** The reservations of a store. Its methods are for the inside of a transaction. */
export class Reservations {
  /** Reservations that this process made and has not settled, so that their rows need not be read. */
  private readonly held = new Map<string, Held>()
  private readonly insert: Statement
  private readonly exists: Statement
  private readonly select: Statement
  private readonly delete: Statement
  private readonly prolong: Statement
  private readonly selectDue: Statement
  private readonly selectExpired: Statement

  constructor(engine: Engine) {
    this.insert = engine.prepare(
      `INSERT INTO reservations (request_id, until_ms, holds, entry) SELECT ?1, ?2, ?3, ?4 WHERE
       NOT EXISTS (SELECT 1 FROM ledger_entries WHERE request_id = ?1)
       ON CONFLICT (request_id) DO NOTHING`,
    )
    this.exists = engine.prepare(
      `SELECT 1 FROM reservations WHERE request_id = ?1
       UNION ALL SELECT 1 FROM ledger_entries WHERE request_id = ?1 LIMIT 1`,
    )
    this.select = engine.prepare('SELECT id, holds FROM reservations WHERE request_id = ?')
    this.delete = engine.prepare('DELETE FROM reservations WHERE id = ?')
    this.prolong = engine.prepare(
      'UPDATE reservations SET until_ms = ? WHERE request_id = ? AND until_ms > ?',
    )
    this.selectDue = engine.prepare(
      'SELECT request_id FROM reservations WHERE until_ms <= ? ORDER BY until_ms LIMIT ?',
    )
    this.selectExpired = engine.prepare(
      'SELECT holds, entry FROM reservations WHERE request_id = ? AND until_ms <= ?',
    )
  }

  /** False if the request has a reservation or a ledger entry already; nothing is changed then. */
  add(requestId: string, untilMs: number, holds: readonly Hold[], entry: string): boolean {
    const added = this.insert.run(requestId, untilMs, writeHolds(holds), entry)
    if (Number(added.changes) === 0) return false
    this.held.set(requestId, { id: Number(added.lastInsertRowid), holds })
    return true
  }

  /** Whether the request has a reservation or a ledger entry. */
  isKnown(requestId: string): boolean {
    return this.exists.get(requestId) !== undefined
  }

  /** Drops a reservation that was rolled back, or that another process has settled, from memory. */
  forget(requestId: string): void {
    this.held.delete(requestId)
  }

  /**
   * Removes a reservation; its holds, or null if there is none. Only in the transaction that adds the request's ledger
   * entry: a reservation in memory is then still in the file.
   */
  remove(requestId: string): readonly Hold[] | null {
    const { id, holds } = this.held.get(requestId) ?? this.read(requestId) ?? { id: 0, holds: null }
    if (holds === null) return null
    this.held.delete(requestId)
    this.delete.get(id)
    return holds
  }

  /** Prolongs a reservation that has not expired: one that has may have lost its slot to another request. */
  renew(requestId: string, untilMs: number, nowMs: number): void {
    this.prolong.run(untilMs, requestId, nowMs)
  }

  /** The ids of the first requests whose reservations end by a time. */
  due(latestMs: number, limit: number): string[] {
    return this.selectDue.all(latestMs, limit).map((row) => textIn(row, 'request_id'))
  }

  /** The ledger entry of an expired reservation, or null if there is none. Throws an Error if it is damaged. */
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
  private read(requestId: string): Held | null {
    const row = this.select.get(requestId)
    if (row === undefined) return null
    return { id: numberIn(row, 'id'), holds: readHolds(requestId, textIn(row, 'holds')) }
  }
}
