/**
 * Removes the running requests from a copy of a store: they run in the store that was copied, which charges
 * them. In the copy, no process renews their reservations, and each would be charged as lost.
 */
import { numberIn, textIn, type Connection } from '../driver.js'
import { chargeActualUsage } from './limits.js'
import { SELECT_COUNTERS, UPDATE_COUNTERS, valuesOf, countersIn } from './counters.js'
import { readHolds } from './holds.js'

/**
 * Removes the reservations that have not expired, and gives back what they hold of limits. Those that have
 * belong to processes that were killed. The store must have the current schema. Throws an Error if a
 * reservation is damaged.
 */
export function dropReservations(db: Connection, nowMs: number): void {
  const select = db.prepare(SELECT_COUNTERS)
  const update = db.prepare(UPDATE_COUNTERS)
  const remove = db.prepare('DELETE FROM reservations WHERE id = ?')
  db.exec('BEGIN IMMEDIATE')
  const rows = db.prepare('SELECT * FROM reservations WHERE until_ms > ?').all(nowMs)
  for (const row of rows) {
    for (const hold of readHolds(textIn(row, 'request_id'), textIn(row, 'holds'))) {
      const { accountId, subject } = hold
      const counters = countersIn(accountId, subject, select.get(accountId, subject))
      if (counters.id === null) continue
      chargeActualUsage(counters, hold, { tokens: 0, chargedTokens: 0, nanoUsd: 0, unitsOf: () => 0, nowMs })
      update.run(...valuesOf(counters), counters.id)
    }
    remove.run(numberIn(row, 'id'))
  }
  db.exec('COMMIT')
}
