/**
 * What accounts used by month: entries that are kept, and `usage_months`, to which pruning adds the entries
 * that it removes in the same transaction. So each entry counts once, and a month that is over never changes.
 */
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { monthOf } from '../../limit-arithmetic.js'
import {
  ACCOUNT_FIGURES,
  joinedUses,
  LINES_OF,
  usesOfMonth,
  wholeHours,
  type AccountUse,
  type AccountUseQuery,
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
/** The use of entries, with an expression for their month: a condition and a grouping follow. */
function ofEntries(month: string, figure = (sum: string) => sum): string {
  return `SELECT ${month} AS month, account_id, coalesce(account_path, '') AS account_path, key_id,
  model, coalesce(labels, '') AS labels, ${FIGURES.map(([column, sum]) => `${figure(sum)} AS ${column}`).join(', ')} FROM ledger_entries`
}
const BY_KEY = 'GROUP BY 1, 2, 3, 4, 5, 6'

/** Adds the entries with these numbers, as a JSON list, to the months of pruned entries. */
export const KEEP_USE = `INSERT INTO usage_months (${KEY}, ${COLUMNS})
  ${ofEntries(MONTH)} WHERE seq IN (SELECT value FROM json_each(?)) ${BY_KEY}
  ON CONFLICT DO UPDATE SET ${ADDED}`

/** Takes the entry with this number off the months of pruned entries. */
export const DROP_USE = `INSERT INTO usage_months (${KEY}, ${COLUMNS})
  ${ofEntries(MONTH, (sum) => `-(${sum})`)} WHERE seq = ? ${BY_KEY}
  ON CONFLICT DO UPDATE SET ${ADDED}`
/** Months of which nothing is left. */
export const DROP_EMPTY_USE = 'DELETE FROM usage_months WHERE requests = 0'

/**
 * See `Ledger.accountUse`. Without labels, whole months and whole hours are read from sums, of which there
 * are far fewer than entries.
 */
export function accountUseOf(
  db: Connection,
  query: AccountUseQuery,
  groupUses: Pick<GroupUses, 'of'>,
): readonly AccountUse[] {
  const { by = 'labels' } = query
  if (by === 'labels') return usesOfEntries(db, query)
  const pruned = prunedOf(db, query, by)
  const entry = prepared(db, OLDEST).get(query.fromMs)
  const oldestMs = entry === undefined ? Infinity : numberIn(entry, 'at_ms')
  // Months before the first entry, which may be hundreds, have only what was pruned.
  const first = Math.min(oldestMs, ...pruned.slice(0, 1).map(({ month }) => Date.UTC(1970, month)))
  const parts: (readonly AccountUse[])[] = []
  for (let fromMs = Math.max(query.fromMs, monthStart(first)); fromMs < query.toMs;) {
    const month = monthOf(fromMs)
    const span = { fromMs, toMs: Math.min(query.toMs, Date.UTC(1970, month + 1)) }
    const ofMonth = pruned.filter((use) => use.month === month)
    const whole = monthOfSums(db, { span, by, pruned: ofMonth, groupUses })
    if (whole !== null) parts.push(whole)
    else parts.push(ofMonth, ...hoursOfSums(db, span, { by, oldestMs, groupUses }))
    fromMs = span.toMs
  }
  return joinedUses(parts, by)
}

/** The time of the first entry from ?1 on. */
const OLDEST = 'SELECT at_ms FROM entry_ids WHERE at_ms >= ?1 ORDER BY at_ms LIMIT 1'
/** The entries from ?1 to ?2 that sums have. */
const COUNTED = `SELECT count(*) AS requests FROM entry_ids WHERE at_ms >= ?1 AND at_ms < ?2
  AND seq <= (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'counted_seq')`

type Span = Pick<AccountUseQuery, 'fromMs' | 'toMs'>
/** What sums are kept by. */
type SummedBy = keyof typeof LINES_OF

/** The start of the month of a time; Infinity for it. */
function monthStart(atMs: number): number {
  return atMs === Infinity ? Infinity : Date.UTC(1970, monthOf(atMs))
}

function countOf(db: Connection, { fromMs, toMs }: Span): number {
  return numberIn(prepared(db, COUNTED).get(fromMs, toMs) ?? {}, 'requests')
}

/** A month, or a part of one, and what was pruned of it. */
interface MonthOfSums {
  readonly span: Span
  readonly by: SummedBy
  readonly pruned: readonly AccountUse[]
  readonly groupUses: Pick<GroupUses, 'of'>
}

/** Null if the span is not a month to its last entry, or the sums of days lack some of its entries. */
function monthOfSums(
  db: Connection,
  { span, by, pruned, groupUses }: MonthOfSums,
): readonly AccountUse[] | null {
  const month = monthOf(span.fromMs)
  const whole = { fromMs: Date.UTC(1970, month), toMs: Date.UTC(1970, month + 1) }
  if (span.fromMs !== whole.fromMs) return null
  const later = prepared(db, OLDEST).get(span.toMs)
  if (later !== undefined && numberIn(later, 'at_ms') < whole.toMs) return null
  const sums = sumsOf(whole, by, groupUses)
  // Days may be kept for a shorter time than entries.
  const requests = pruned.reduce((sum, use) => sum + use.requests, countOf(db, whole))
  if (sums === null || sums.requests < requests) return null
  if (sums.moved.length === 0) return sums.uses
  const moved = new Set(sums.moved)
  const ofMoved = pruned.filter(({ accountId }) => moved.has(accountId))
  return joinedUses([sums.uses, ofMoved, keptUses(db, whole, by, sums.moved)], by)
}

/** The use by the entries that are kept of a part of a month: whole hours from sums that have them all. */
function hoursOfSums(
  db: Connection,
  span: Span,
  { by, oldestMs, groupUses }: Pick<MonthOfSums, 'by' | 'groupUses'> & { readonly oldestMs: number },
): (readonly AccountUse[])[] {
  const hours = wholeHours(span, oldestMs)
  const sums = hours && sumsOf(hours, by, groupUses)
  // Other numbers if entries were pruned, or sums were put that have none.
  if (hours === null || sums?.requests !== countOf(db, hours)) return [keptUses(db, span, by)]
  return [
    keptUses(db, { fromMs: span.fromMs, toMs: hours.fromMs }, by),
    sums.uses,
    sums.moved.length === 0 ? [] : keptUses(db, hours, by, sums.moved),
    keptUses(db, { fromMs: hours.toMs, toMs: span.toMs }, by),
  ]
}

/** The sums of whole hours or days of one month; null if they lack paths, as those of earlier versions. */
function sumsOf(hours: Span, by: SummedBy, groupUses: Pick<GroupUses, 'of'>) {
  const span = { accountId: null, ...hours }
  const lines = groupUses.of({ ...span, by: LINES_OF[by] })
  return usesOfMonth({ month: monthOf(hours.fromMs), by }, lines, groupUses.of({ ...span, by: 'account' }))
}

/** Adds up rows of uses; `key` is their key, in which labels may be left out. */
function allUses(key: string, rows: string): string {
  const sums = FIGURES.map(([column]) => `sum(${column}) AS ${column}`).join(', ')
  return `SELECT ${KEY}, ${SHOWN} FROM (SELECT ${key}, ${sums} FROM (${rows}) ${BY_KEY})`
}

/** The columns of a key without what is not counted by. */
const KEYS: Readonly<Record<SummedBy, string>> = {
  keys: KEY.replace('labels', "'' AS labels"),
  accounts: KEY.replace('key_id, model, labels', "'' AS key_id, '' AS model, '' AS labels"),
}
const PRUNED = `SELECT ${KEY}, ${COLUMNS} FROM usage_months WHERE month BETWEEN ? AND ?`

/** The use of pruned entries in the months of a time, in the order of months. */
function prunedOf(db: Connection, { fromMs, toMs }: Span, by: SummedBy): AccountUse[] {
  const months = [monthOf(fromMs), monthOf(toMs - 1)]
  return prepared(db, `${allUses(KEYS[by], PRUNED)} ORDER BY month`)
    .all(...months)
    .map(useIn)
}

/** The use by the entries that are kept of a time in one month; only of these accounts. */
function keptUses(
  db: Connection,
  { fromMs, toMs }: Span,
  by: SummedBy,
  accountIds?: readonly string[],
): AccountUse[] {
  if (fromMs >= toMs) return []
  const of = ofEntries(String(monthOf(fromMs)))
  const range = 'at_ms >= ? AND at_ms < ?'
  if (accountIds === undefined) {
    const rows = prepared(db, allUses(KEYS[by], `${of} WHERE ${range} ${BY_KEY}`))
    return rows.all(fromMs, toMs).map(useIn)
  }
  const places = of.replace(
    'FROM ledger_entries',
    `FROM entry_places AS place CROSS JOIN ledger_entries AS entry ON entry.seq = place.seq WHERE
     place.owner IN (SELECT value FROM json_each(?)) AND place.${range.replace('AND', 'AND place.')}`,
  )
  const rows = prepared(db, allUses(KEYS[by], `${places} ${BY_KEY}`))
  return rows.all(JSON.stringify(accountIds), fromMs, toMs).map(useIn)
}

/** One statement reads both tables at one moment. */
function usesOfEntries(db: Connection, { fromMs, toMs }: Span): AccountUse[] {
  // Within one month its number is known, which saves two conversions of each entry's time.
  const isOne = monthOf(fromMs) === monthOf(toMs - 1)
  const of = isOne ? ofEntries(String(monthOf(fromMs))) : ofEntries(MONTH)
  const kept = `${of} WHERE at_ms >= ? AND at_ms < ? ${BY_KEY}`
  const rows = db.prepare(allUses(KEY, `${PRUNED} UNION ALL SELECT * FROM (${kept})`))
  return rows.all(monthOf(fromMs), monthOf(toMs - 1), fromMs, toMs).map(useIn)
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
