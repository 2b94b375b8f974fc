/**
 * What accounts used by month: entries that are kept, and `usage_months`, to which pruning adds the entries
 * that it removes in the same transaction. So each entry counts once, and a month that is over never changes.
 */
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { monthOf } from '../../limit-arithmetic.js'
import {
  ACCOUNT_FIGURES,
  usesOfMonth,
  type AccountUse,
  type AccountUseQuery,
  type GroupUse,
} from '../../usage-queries.js'
import { numberIn, prepared, textIn, type Connection, type Row } from '../driver.js'
import type { GroupUses } from './read-sums.js'
import { COST, nanoUsdText, UNIT_COLUMNS, UNIT_SUMS, unitsInRow } from './sum-columns.js'

const KEY = 'month, account_id, account_path, key_id, model, labels'
const FIGURES = [
  ['requests', 'count(*)'],
  ['failed', "count(*) FILTER (WHERE outcome <> 'ok')"],
  ['input_tokens', 'coalesce(sum(CAST(input_tokens AS INTEGER)), 0)'],
  ['output_tokens', 'coalesce(sum(CAST(output_tokens AS INTEGER)), 0)'],
  ['cost_nano_usd', 'coalesce(sum(CAST(cost_nano_usd AS INTEGER)), 0)'],
  ['unpriced', "count(*) FILTER (WHERE cost_nano_usd IS NULL AND source <> 'none')"],
  ...UNIT_COLUMNS.map((column, at) => [column, UNIT_SUMS[at] ?? '0'] as const),
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
function ofEntries(month: string, figure = (sum: string) => sum): string {
  return `SELECT ${month} AS month, account_id, coalesce(account_path, '') AS account_path, key_id,
  model, coalesce(labels, '') AS labels, ${FIGURES.map(([, sum]) => figure(sum)).join(', ')} FROM ledger_entries`
}
const BY_KEY = 'GROUP BY 1, 2, 3, 4, 5, 6'

/** Adds the entries with these numbers, as a JSON list, to the months of pruned entries. */
export const KEEP_USE = `INSERT INTO usage_months (${KEY}, ${COLUMNS})
  ${OF_ENTRIES} WHERE seq IN (SELECT value FROM json_each(?)) ${BY_KEY}
  ON CONFLICT DO UPDATE SET ${ADDED}`

/** Takes the entry with this number off the months of pruned entries. */
export const DROP_USE = `INSERT INTO usage_months (${KEY}, ${COLUMNS})
  ${ofEntries(MONTH, (sum) => `-(${sum})`)} WHERE seq = ? ${BY_KEY}
  ON CONFLICT DO UPDATE SET ${ADDED}`
/** Months of which nothing is left. */
export const DROP_EMPTY_USE = 'DELETE FROM usage_months WHERE requests = 0'

/**
 * See `Ledger.accountUse`. A month without labels is read from the sums of its days, of which there are far
 * fewer than entries.
 */
export function accountUseOf(
  db: Connection,
  query: AccountUseQuery,
  groupUses: Pick<GroupUses, 'of'>,
): AccountUse[] {
  const ofSums = query.byLabels === false ? monthOfSums(db, query, groupUses) : null
  return ofSums ?? usesOfEntries(db, query)
}

/** Null if the query is not for one month to its last entry, or the sums of days lack some of its entries. */
function monthOfSums(
  db: Connection,
  { fromMs, toMs }: AccountUseQuery,
  groupUses: Pick<GroupUses, 'of'>,
): AccountUse[] | null {
  const month = monthOf(fromMs)
  const endMs = Date.UTC(1970, month + 1)
  if (fromMs !== Date.UTC(1970, month) || toMs > endMs) return null
  const counted = prepared(db, COUNTED).get(fromMs, endMs, month, toMs)
  if (counted === undefined || numberIn(counted, 'later') > 0) return null
  const span = { accountId: null, fromMs, toMs: endMs }
  const lines = groupUses.of({ ...span, by: 'key model' })
  const accounts = groupUses.of({ ...span, by: 'account' })
  const requestsOf = (uses: readonly GroupUse[]) => uses.reduce((sum, { requests }) => sum + requests, 0)
  // Sums of earlier versions have no paths, and days may be kept for a shorter time than entries.
  const isWhole = requestsOf(lines) >= numberIn(counted, 'requests')
  if (!isWhole || requestsOf(accounts) < requestsOf(lines)) return null
  const { uses, moved } = usesOfMonth(month, lines, accounts)
  return moved.length === 0 ? uses : [...uses, ...usesOfMoved(db, { fromMs, toMs: endMs }, moved)]
}

/** The requests of a month (?1 to ?2, ?3) that sums have, and the entries of it from ?4 on. */
const COUNTED = `SELECT
  (SELECT count(*) FROM entry_ids WHERE at_ms >= ?1 AND at_ms < ?2
    AND seq <= (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'counted_seq'))
  + (SELECT coalesce(sum(requests), 0) FROM usage_months WHERE month = ?3) AS requests,
  (SELECT count(*) FROM entry_ids WHERE at_ms >= ?4 AND at_ms < ?2) AS later`

/** The use of a month by accounts that were moved in it, from their entries. */
function usesOfMoved(
  db: Connection,
  { fromMs, toMs }: Pick<AccountUseQuery, 'fromMs' | 'toMs'>,
  accountIds: readonly string[],
): AccountUse[] {
  const month = monthOf(fromMs)
  const own = '(SELECT value FROM json_each(?1))'
  const kept = ofEntries(String(month)).replace(
    'FROM ledger_entries',
    `FROM entry_places AS place CROSS JOIN ledger_entries AS entry ON entry.seq = place.seq WHERE
     place.owner IN ${own} AND place.at_ms >= ?2 AND place.at_ms < ?3`,
  )
  return prepared(
    db,
    allUses(
      KEY.replace('labels', "'' AS labels"),
      `SELECT ${KEY}, ${COLUMNS} FROM usage_months WHERE month = ${month} AND account_id IN ${own}
       UNION ALL SELECT * FROM (${kept} ${BY_KEY})`,
    ),
  )
    .all(JSON.stringify(accountIds), fromMs, toMs)
    .map(useIn)
}

/** Adds up rows of uses; `key` is their key, in which labels may be left out. */
function allUses(key: string, rows: string): string {
  const sums = FIGURES.map(([column]) => `sum(${column}) AS ${column}`).join(', ')
  return `SELECT ${KEY}, ${SHOWN} FROM (SELECT ${key}, ${sums} FROM (${rows}) ${BY_KEY})`
}

/** One statement reads both tables at one moment. */
function usesOfEntries(db: Connection, { fromMs, toMs, byLabels = true }: AccountUseQuery): AccountUse[] {
  const key = byLabels ? KEY : KEY.replace('labels', "'' AS labels")
  // Within one month its number is known, which saves two conversions of each entry's time.
  const isOne = monthOf(fromMs) === monthOf(toMs - 1)
  const kept = `${isOne ? ofEntries(String(monthOf(fromMs))) : OF_ENTRIES} WHERE at_ms >= ? AND at_ms < ? ${BY_KEY}`
  const rows = db
    .prepare(
      allUses(
        key,
        `SELECT ${KEY}, ${COLUMNS} FROM usage_months WHERE month BETWEEN ? AND ?
         UNION ALL SELECT * FROM (${kept})`,
      ),
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
    `INSERT OR REPLACE INTO usage_months (${KEY}, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ${FIGURES.map(() => '?').join(', ')})`,
  )
  file.write(() => {
    for (const use of uses) {
      const { month, accountId, accountPath, keyId, model, labels } = use
      const key = [month, accountId, accountPath, keyId, model, labels]
      put.run(...key, ...ACCOUNT_FIGURES.map((figure) => use[figure]))
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
    ...unitsInRow(row),
  }
}
