/**
 * Puts the sums of another ledger into the tables of hours and days, when a store is moved.
 */
import { CAUSES } from '../../../error-cause.js'
import type { UsageSum } from '../../usage-queries.js'
import type { Value } from '../driver.js'
import { keyIn, LAST_HOUR, SUM_COLUMNS, SUM_KEY, TOTALS, type RollUp } from './roll-up.js'
import {
  ALL_KEYS,
  BUCKET_MS,
  COUNTER_COLUMNS,
  FIRST_CONTENT_COLUMNS,
  TABLE_OF,
  type Bucket,
} from './sum-columns.js'

/** Sums put in one transaction. */
const BATCH = 200

/** The sums of hours or days, and when each key was last used (ms since 1970). */
export interface SumsToPut {
  readonly by: Bucket
  readonly sums: readonly UsageSum[]
  readonly lastUse: ReadonlyMap<string, number>
}

/** See `Ledger.putSums`. Days that are put include their hours, which are not added to them again. */
export function putSums(rollUp: RollUp, { by, sums, lastUse }: SumsToPut): void {
  const { db } = rollUp
  rollUp.catchUp()
  rollUp.addToDays(Number.MAX_SAFE_INTEGER)
  const table = TABLE_OF[by]
  const lastHour = db.prepare(LAST_HOUR)
  const setMark = db.prepare(`UPDATE days_mark SET (${SUM_KEY}) = (?, ?, ?, ?)`)
  const put = db.prepare(
    `INSERT OR REPLACE INTO ${table} (${SUM_COLUMNS})
       VALUES (?, ?, ?, ?, ?, ${COUNTER_COLUMNS.map(() => '?').join(', ')})`,
  )
  // The sums of an account are those of its keys, and the sums of all accounts are those of each.
  const total = (owner: string, condition: string) =>
    db.prepare(
      `INSERT OR REPLACE INTO ${table} (${SUM_COLUMNS})
         SELECT start_ms, ${owner}, model, max(last_at_ms), ${TOTALS}
         FROM ${table} WHERE start_ms = ?1 AND model = ?2 AND ${condition} GROUP BY start_ms, model`,
    )
  const ofAccount = total(
    `account_id, '${ALL_KEYS}'`,
    `account_id = ?3 AND key_id <> '${ALL_KEYS}'`,
  )
  const ofAll = total("'', ''", `account_id <> '' AND key_id = '${ALL_KEYS}'`)
  for (let at = 0; at < sums.length; at += BATCH) {
    rollUp.write(() => {
      for (const sum of sums.slice(at, at + BATCH)) {
        put.run(...putValues(sum, by, lastUse))
        ofAccount.run(sum.startMs, sum.model, sum.accountId)
        ofAll.run(sum.startMs, sum.model)
      }
      rollUp.daysChanged()
      const last = lastHour.get()
      if (last !== undefined) setMark.run(...keyIn(last))
    })
  }
}

/** The values of `SUM_COLUMNS` for a sum. */
function putValues(sum: UsageSum, by: Bucket, lastUse: ReadonlyMap<string, number>): Value[] {
  const { startMs, accountId, keyId, model } = sum
  const lastMs = lastUse.get(keyId) ?? startMs
  const isIn = lastMs >= startMs && lastMs < startMs + BUCKET_MS[by]
  return [
    ...[startMs, accountId, keyId, model, isIn ? lastMs : startMs, sum.requests, sum.errors],
    ...[sum.inputTokens, sum.outputTokens, sum.cacheReadTokens, sum.cacheWriteTokens],
    ...[sum.reasoningTokens, sum.costNanoUsd, sum.unpriced, sum.estimated],
    ...FIRST_CONTENT_COLUMNS.map((_, at) => sum.firstContent[at] ?? 0),
    ...CAUSES.map((cause) => sum.byCause[cause]),
    sum.assumed,
  ]
}
