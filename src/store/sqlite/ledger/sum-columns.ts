/**
 * The columns of `usage_hours` and `usage_days`, and the expression that computes each from ledger entries.
 */
import { CAUSES, outcomesOf } from '../../../error-cause.js'
import { FIRST_CONTENT_BOUNDS_MS, type UsageSum } from '../../ledger.js'
import { numberIn, textIn, type Row } from '../driver.js'

const DAY_MS = 86_400_000
/** The length of each kind of bucket, in ms. */
export const BUCKET_MS = { hour: 3_600_000, day: DAY_MS } as const
/** The table of each kind of bucket. */
export const TABLE_OF = { hour: 'usage_hours', day: 'usage_days' } as const
/** The key of rows that have the sums of all keys of an account; no key has this id. */
export const ALL_KEYS = '*'
/** A kind of bucket. */
export type Bucket = keyof typeof BUCKET_MS

/** Each counter and the aggregate of entries that it adds; whole numbers up to 2^53 - 1. */
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
  ...histogram(),
  ...causes(),
]
/** The columns of `COUNTERS`. */
export const COUNTER_COLUMNS = COUNTERS.map(([column]) => column)
/** The columns of the histogram. */
export const FIRST_CONTENT_COLUMNS = COUNTER_COLUMNS.filter((column) =>
  column.startsWith('first_content'),
)
/** The largest value of a counter. */
export const MAX_COUNTER = Number.MAX_SAFE_INTEGER

function tokens(column: string): string {
  return `coalesce(sum(CAST(${column} AS INTEGER)), 0)`
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

/** A counter for each interval of time to first content. */
function histogram(): [string, string][] {
  return [...FIRST_CONTENT_BOUNDS_MS, null].map((bound, at) => {
    const lower = FIRST_CONTENT_BOUNDS_MS[at - 1]
    const conditions = [
      ...(lower === undefined ? [] : [`first_content_ms > ${lower}`]),
      ...(bound === null ? [] : [`first_content_ms <= ${bound}`]),
    ]
    return [`first_content_${at}`, `count(*) FILTER (WHERE ${conditions.join(' AND ')})`]
  })
}

/** The sum in a row with all columns. */
export function sumIn(row: Row): UsageSum {
  return {
    startMs: numberIn(row, 'start_ms'),
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    model: textIn(row, 'model'),
    requests: numberIn(row, 'requests'),
    errors: numberIn(row, 'errors'),
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    cacheReadTokens: numberIn(row, 'cache_read_tokens'),
    cacheWriteTokens: numberIn(row, 'cache_write_tokens'),
    reasoningTokens: numberIn(row, 'reasoning_tokens'),
    costNanoUsd: numberIn(row, 'cost_nano_usd'),
    unpriced: numberIn(row, 'unpriced'),
    estimated: numberIn(row, 'estimated'),
    firstContent: FIRST_CONTENT_COLUMNS.map((column) => numberIn(row, column)),
    byCause: {
      client: numberIn(row, 'errors_client'),
      limits: numberIn(row, 'errors_limits'),
      gateway: numberIn(row, 'errors_gateway'),
      provider: numberIn(row, 'errors_provider'),
    },
  }
}
