/**
 * What accounts used by month: entries that are kept, and `usage_months`, to which pruning adds the entries
 * that it removes in the same transaction. So each entry counts once, and a month that is over never changes.
 */
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { monthOf } from '../../limit-arithmetic.js'
import type { AccountUse, AccountUseQuery } from '../../usage-queries.js'
import { numberIn, textIn, type Connection, type Row } from '../driver.js'
import { COST, nanoUsdText } from './sum-columns.js'

const KEY = 'month, account_id, account_path, key_id, model, labels'
const FIGURES = [
  ['requests', 'count(*)'],
  ['failed', "count(*) FILTER (WHERE outcome <> 'ok')"],
  ['input_tokens', 'coalesce(sum(CAST(input_tokens AS INTEGER)), 0)'],
  ['output_tokens', 'coalesce(sum(CAST(output_tokens AS INTEGER)), 0)'],
  ['cost_nano_usd', 'coalesce(sum(CAST(cost_nano_usd AS INTEGER)), 0)'],
  ['unpriced', "count(*) FILTER (WHERE cost_nano_usd IS NULL AND source <> 'none')"],
] as const
/** The columns as `useIn` reads them. */
const SHOWN = FIGURES.map(([column]) =>
  column === COST ? `${nanoUsdText(column)} AS ${column}` : column,
).join(', ')
const COLUMNS = FIGURES.map(([column]) => column).join(', ')
const ADDED = FIGURES.map(([column]) => `${column} = ${column} + excluded.${column}`).join(', ')

/** Months since 1970 (UTC) of an entry. */
const MONTH = `(CAST(strftime('%Y', at_ms / 1000, 'unixepoch') AS INTEGER) - 1970) * 12
  + CAST(strftime('%m', at_ms / 1000, 'unixepoch') AS INTEGER) - 1`
/** The use of entries: a condition and a grouping follow. */
const OF_ENTRIES = ofEntries(MONTH)

/** The same with an expression for the month. */
function ofEntries(month: string): string {
  return `SELECT ${month} AS month, account_id, coalesce(account_path, '') AS account_path, key_id,
  model, coalesce(labels, '') AS labels, ${FIGURES.map(([, sum]) => sum).join(', ')} FROM ledger_entries`
}
const BY_KEY = 'GROUP BY 1, 2, 3, 4, 5, 6'

/** Adds the entries with these numbers, as a JSON list, to the months of pruned entries. */
export const KEEP_USE = `INSERT INTO usage_months (${KEY}, ${COLUMNS})
  ${OF_ENTRIES} WHERE seq IN (SELECT value FROM json_each(?)) ${BY_KEY}
  ON CONFLICT DO UPDATE SET ${ADDED}`

/** See `Ledger.accountUse`. One statement reads both tables at one moment. */
export function accountUseOf(
  db: Connection,
  { fromMs, toMs, byLabels = true }: AccountUseQuery,
): AccountUse[] {
  const key = byLabels ? KEY : KEY.replace('labels', "'' AS labels")
  // Within one month its number is known, which saves two conversions of each entry's time.
  const isOne = monthOf(fromMs) === monthOf(toMs - 1)
  const kept = `${isOne ? ofEntries(String(monthOf(fromMs))) : OF_ENTRIES} INDEXED BY entries_by_time WHERE at_ms >= ? AND at_ms < ? ${BY_KEY}`
  const rows = db
    .prepare(
      `SELECT ${KEY}, ${SHOWN} FROM (
         SELECT ${key}, ${FIGURES.map(([column]) => `sum(${column}) AS ${column}`).join(', ')} FROM (
           SELECT ${KEY}, ${COLUMNS} FROM usage_months WHERE month BETWEEN ? AND ?
           UNION ALL SELECT * FROM (${kept})
         ) ${BY_KEY})`,
    )
    .all(monthOf(fromMs), monthOf(toMs - 1), fromMs, toMs)
  return rows.map(useIn)
}

/** See `Ledger.prunedUse`. */
export function prunedUseOf(db: Connection): AccountUse[] {
  return db.prepare(`SELECT ${KEY}, ${SHOWN} FROM usage_months`).all().map(useIn)
}

/** See `Ledger.putAccountUse`. `file.write` runs a function in one transaction. */
export function putAccountUse(
  file: { readonly db: Connection; write(put: () => void): void },
  uses: readonly AccountUse[],
): void {
  const put = file.db.prepare(
    `INSERT OR REPLACE INTO usage_months (${KEY}, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  file.write(() => {
    for (const use of uses) {
      const { month, accountId, accountPath, keyId, model, labels } = use
      const { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced } = use
      const key = [month, accountId, accountPath, keyId, model, labels]
      put.run(...key, requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced)
    }
  })
}

function useIn(row: Row): AccountUse {
  return {
    month: numberIn(row, 'month'),
    accountId: textIn(row, 'account_id'),
    accountPath: textIn(row, 'account_path'),
    keyId: textIn(row, 'key_id'),
    model: textIn(row, 'model'),
    labels: textIn(row, 'labels'),
    requests: numberIn(row, 'requests'),
    failed: numberIn(row, 'failed'),
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    costNanoUsd: nanoUsdOf(textIn(row, COST)),
    unpriced: numberIn(row, 'unpriced'),
  }
}
