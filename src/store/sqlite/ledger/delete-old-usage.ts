/**
 * Removes ledger entries and sums of usage that are older than their retention time.
 */
import { numberIn, textIn } from '../driver.js'
import { DAYS_MARK, SUM_KEY, type RollUp } from './roll-up.js'
import { BUCKET_MS, TABLE_OF, type Bucket } from './sum-columns.js'

/** The records to remove: entries, or sums of hours or days. */
export type Pruned = 'entries' | Bucket

/** Rows removed in one transaction. */
const BATCH = 200

/**
 * Removes up to 200 entries that arrived before a time, or buckets that ended before it; the number removed.
 * Entries that sums do not include yet stay, and so do hours that their day does not include yet.
 */
export function pruneUsage(rollUp: RollUp, what: Pruned, beforeMs: number): number {
  return what === 'entries' ? pruneEntries(rollUp, beforeMs) : pruneSums(rollUp, what, beforeMs)
}

function pruneEntries(rollUp: RollUp, beforeMs: number): number {
  const { db } = rollUp
  const old = db.prepare(
    `SELECT seq, at_ms, account_id, key_id FROM ledger_entries WHERE
       at_ms < ? AND seq <= ? ORDER BY at_ms LIMIT ${BATCH}`,
  )
  const remove = db.prepare('DELETE FROM ledger_entries WHERE seq = ?')
  const removePlaces = db.prepare(
    'DELETE FROM entry_places WHERE owner IN (?, ?) AND at_ms = ? AND seq = ?',
  )
  return rollUp.write(() => {
    const rows = old.all(beforeMs, rollUp.counted())
    for (const row of rows) {
      const seq = numberIn(row, 'seq')
      const [account, key] = [textIn(row, 'account_id'), textIn(row, 'key_id')]
      removePlaces.run(account, key, numberIn(row, 'at_ms'), seq)
      remove.run(seq)
    }
    return rows.length
  })
}

function pruneSums(rollUp: RollUp, by: Bucket, beforeMs: number): number {
  const table = TABLE_OF[by]
  const isIncluded = by === 'hour' ? `AND (${SUM_KEY}) <= ${DAYS_MARK}` : ''
  const remove = rollUp.db.prepare(
    `DELETE FROM ${table} WHERE (${SUM_KEY}) IN
       (SELECT ${SUM_KEY} FROM ${table} WHERE start_ms <= ? ${isIncluded} LIMIT ${BATCH})`,
  )
  return rollUp.write(() => {
    rollUp.daysChanged()
    return Number(remove.run(beforeMs - BUCKET_MS[by]).changes)
  })
}
