/**
 * The columns of `usage_hours` and `usage_days`, and the expression that computes each from ledger entries.
 */
import { DAY_MS } from '../../../base/time-units.js'
import { nanoUsdOf } from '../../../base/nano-usd.js'
import { UNIT_FIGURES, UNIT_NAMES, unitFigures, type UnitFigures } from '../../../base/unit-counts.js'
import { CAUSES, outcomesOf } from '../../../errors.js'
import { FIRST_CONTENT_COUNTERS, FORMER_COUNTERS, partsOfCounters } from '../../first-content.js'
import type { UsageCell, UsageSum } from '../../usage-queries.js'
import { numberIn, type Row } from '../driver.js'

/** The column of money. */
export const COST = 'cost_nano_usd'
/** The length of each kind of bucket, in ms. */
export const BUCKET_MS = { hour: 3_600_000, day: DAY_MS } as const
/** The table of each kind of bucket. */
export const TABLE_OF = { hour: 'usage_hours', day: 'usage_days' } as const
/** The key of rows that have the sums of all keys of an account; no key has this id. */
export const ALL_KEYS = '*'
/** A kind of bucket. */
export type Bucket = keyof typeof BUCKET_MS

/** Each counter of time to first content. */
const HISTOGRAM_COLUMNS = FIRST_CONTENT_COUNTERS.map(({ overMs, upToMs }, at) => {
  const conditions = [
    ...(overMs === 0 ? [] : [`first_content_ms > ${overMs}`]),
    ...(upToMs === Infinity ? [] : [`first_content_ms <= ${upToMs}`]),
  ]
  return [`first_content_${at}`, `count(*) FILTER (WHERE ${conditions.join(' AND ')})`] as const
})

/** The columns of units. */
export const UNIT_COLUMNS = UNIT_FIGURES.map(({ column }) => column)
/** The aggregate of entries for each of them. */
export const UNIT_SUMS = UNIT_FIGURES.map(({ unit, one }) => sumOfUnit(unit, one))

/** Each counter and the aggregate of entries that it adds: whole numbers up to 2^53, the cost up to 2^63. */
export const COUNTERS: readonly (readonly [column: string, added: string])[] = [
  ['requests', 'count(*)'],
  ['errors', "count(*) FILTER (WHERE outcome <> 'ok')"],
  ['input_tokens', tokens('input_tokens')],
  ['output_tokens', tokens('output_tokens')],
  ['cache_read_tokens', tokens('cache_read_tokens')],
  ['cache_write_tokens', tokens('cache_write_tokens')],
  ['reasoning_tokens', tokens('reasoning_tokens')],
  ['cost_nano_usd', tokens('cost_nano_usd')],
  ['unpriced', "count(*) FILTER (WHERE cost_nano_usd IS NULL AND source <> 'none')"],
  ['estimated', "count(*) FILTER (WHERE source = 'estimated')"],
  ...HISTOGRAM_COLUMNS.slice(0, FORMER_COUNTERS),
  ...causes(),
  ['assumed', "count(*) FILTER (WHERE source = 'assumed')"],
  ...HISTOGRAM_COLUMNS.slice(FORMER_COUNTERS),
  ['cache_hits', 'count(*) FILTER (WHERE cache_hit = 1)'],
  ['saved_nano_usd', tokens('saved_nano_usd')],
  ...UNIT_COLUMNS.map((column, at) => [column, UNIT_SUMS[at] ?? '0'] as const),
]
/** The columns of `COUNTERS`. */
export const COUNTER_COLUMNS = COUNTERS.map(([column]) => column)
/** The places of the cost, of the causes, of the units and of the histogram in `COUNTERS`. */
const COST_AT = COUNTER_COLUMNS.indexOf(COST)
const CAUSES_AT = COUNTER_COLUMNS.indexOf(`errors_${CAUSES[0]}`)
const UNITS_AT = COUNTER_COLUMNS.indexOf(UNIT_COLUMNS[0] ?? '')
const HISTOGRAM = HISTOGRAM_COLUMNS.map(([column]) => COUNTER_COLUMNS.indexOf(column))
/** The largest value of a counter other than the cost. */
export const MAX_COUNTER = Number.MAX_SAFE_INTEGER

/** The total of a counter; an integer, because the JSON text of a real number has only 15 digits. */
export function totalOf(column: string): string {
  // Exact to 2^63, which is nine billion dollars.
  return column === COST
    ? `coalesce(sum(${column}), 0)`
    : `CAST(min(${MAX_COUNTER}, total(${column})) AS INTEGER)`
}

/** The primary key of a row of sums. */
export const SUM_KEY = 'start_ms, account_id, key_id, model'
/** All columns of a row of sums. */
export const SUM_COLUMNS = `${SUM_KEY}, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`
/** The counters of several rows, added up. */
export const TOTALS = COUNTER_COLUMNS.map(totalOf).join(', ')

function tokens(column: string): string {
  return `coalesce(sum(CAST(${column} AS INTEGER)), 0)`
}

/** The sum of a unit, whose count follows its name in the column `units`. */
function sumOfUnit(unit: string, one: number): string {
  const at = `instr(' ' || units, ' ${unit}=')`
  const count = `CAST(substr(units, ${at} + ${unit.length + 1}) AS REAL)`
  const figure = `CAST(round(${count} * ${one}) AS INTEGER)`
  return `coalesce(sum(CASE WHEN units IS NOT NULL AND ${at} > 0 THEN ${figure} END), 0)`
}

/** A counter for each cause of failures. */
function causes(): [string, string][] {
  return CAUSES.map((cause) => {
    const outcomes = outcomesOf(cause).map((outcome) => `'${outcome}'`)
    return [
      `errors_${cause}`,
      `count(*) FILTER (WHERE outcome <> 'ok' AND outcome IN (${outcomes.join(', ')}))`,
    ]
  })
}

/**
 * The columns of a sum as the text of a JSON array, which takes a third of the time of as many columns. The
 * cost is a text in it, which has all of its digits.
 */
export function sumText(counters: readonly string[]): string {
  const values = counters.map((counter, at) => (at === COST_AT ? nanoUsdText(counter) : counter))
  return `json_array(start_ms, account_id, key_id, model, ${values.join(', ')})`
}

/** An amount as text: the driver refuses integers from 2^53 on. */
export function nanoUsdText(amount: string): string {
  return `CAST(${amount} AS TEXT)`
}

/** What the entries of one cell have in common besides their time: every value by which sums are made. */
export const CELL_COLUMNS = ['account_path', 'upstream', 'ingress', 'labels'] as const

/** The columns of a cell as the text of a JSON array: those of a sum, then `CELL_COLUMNS` and `is_shadow`. */
export function cellText(startMs: string): string {
  const counters = COUNTERS.map(([column, expression]) => {
    return column === COST ? nanoUsdText(expression) : expression
  })
  const own = [...CELL_COLUMNS, 'shadow_of IS NOT NULL']
  return `json_array(${startMs}, account_id, key_id, model, ${[...counters, ...own].join(', ')})`
}

/** The cell in a text of `cellText`. Throws an Error if a column has a value of another type. */
export function readCell(text: string): UsageCell {
  const values = listOf(JSON.parse(text))
  const [path, upstream, ingress, labels, isShadow] = values.slice(4 + COUNTERS.length)
  const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
  return {
    ...sumOfValues(values),
    accountPath: textOrNull(path),
    upstream: textOrNull(upstream),
    ingress: textOrNull(ingress),
    labels: textOrNull(labels),
    isShadow: isShadow === 1,
  }
}

/** The sum in a text of `sumText`. Throws an Error if a column has a value of another type. */
export function readSum(text: string): UsageSum {
  return sumOfValues(listOf(JSON.parse(text)))
}

function sumOfValues(values: readonly unknown[]): UsageSum {
  const string = (at: number): string => {
    const value = values[at]
    if (typeof value !== 'string') throw new Error('a name in the sums of usage is not a text')
    return value
  }
  const number = (at: number): number => {
    const value = values[at]
    if (typeof value !== 'number') throw new Error('a counter in the sums of usage is not a number')
    return value
  }
  const count = (at: number): number => number(at + 4)
  const keyId = string(2)
  return {
    startMs: number(0),
    accountId: BY_ACCOUNT.exec(keyId)?.[1] ?? string(1),
    keyId,
    model: string(3),
    requests: count(0),
    failed: count(1),
    inputTokens: count(2),
    outputTokens: count(3),
    cacheReadTokens: count(4),
    cacheWriteTokens: count(5),
    reasoningTokens: count(6),
    costNanoUsd: nanoUsdOf(string(4 + COST_AT)),
    unpriced: count(8),
    estimated: count(9),
    firstContent: partsOfCounters(HISTOGRAM.map(count)),
    byCause: {
      client: count(CAUSES_AT),
      limits: count(CAUSES_AT + 1),
      gateway: count(CAUSES_AT + 2),
      provider: count(CAUSES_AT + 3),
    },
    assumed: count(CAUSES_AT + CAUSES.length),
    ...{ cacheHits: count(UNITS_AT - 2), savedNanoUsd: count(UNITS_AT - 1) },
    ...unitFigures((figure) => count(UNITS_AT + UNIT_NAMES.indexOf(figure))),
  }
}

/** The figures of units in a row with their columns. */
export function unitsInRow(row: Row): UnitFigures {
  return unitFigures((figure) => numberIn(row, UNIT_COLUMNS[UNIT_NAMES.indexOf(figure)] ?? ''))
}

/** Sums by account are rows of all accounts. */
const BY_ACCOUNT = /^\*account=(\S*) /

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('a sum is not a list')
  return value
}
