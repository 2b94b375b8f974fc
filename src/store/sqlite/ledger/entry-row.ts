/**
 * Ledger entries as rows of `ledger_entries`.
 */
import type { Usage } from '../../../formats/chat/usage.js'
import type { EntryHops, LedgerEntry } from '../../../ledger/entry.js'
import { damaged } from '../../errors.js'
import { isOutcome } from '../../../errors.js'
import { HOPS, isDialect, isSource } from '../../records/entry-text.js'
import { numberIn, numberOrNull, textIn, textOrNull, type Row, type Value } from '../driver.js'

/** The columns in order, and the value of each. */
const COLUMNS: readonly (readonly [name: string, valueOf: (entry: LedgerEntry) => Value])[] = [
  ['request_id', (entry) => entry.requestId],
  ['at_ms', (entry) => finite(entry.atMs)],
  ['duration_ms', (entry) => finite(entry.durationMs)],
  ['account_id', (entry) => entry.accountId],
  ['key_id', (entry) => entry.keyId],
  ['model_asked', (entry) => entry.modelAsked],
  ['model_answered', (entry) => entry.modelAnswered],
  ['model', (entry) => entry.model],
  ['upstream', (entry) => entry.upstream],
  ['dialect', (entry) => entry.dialect],
  ['attempts', (entry) => entry.attempts],
  ['stream', (entry) => (entry.stream ? 1 : 0)],
  ['status', (entry) => entry.status],
  ['outcome', (entry) => entry.outcome],
  ['finish_reason', (entry) => entry.finish],
  ['source', (entry) => entry.source],
  ['input_tokens', ({ usage }) => usage.input ?? null],
  ['output_tokens', ({ usage }) => usage.output ?? null],
  ['cache_read_tokens', ({ usage }) => usage.cacheRead ?? null],
  ['cache_write_tokens', ({ usage }) => usage.cacheWrite ?? null],
  ['cache_write_1h_tokens', ({ usage }) => usage.cacheWrite1h ?? null],
  ['reasoning_tokens', ({ usage }) => usage.reasoning ?? null],
  ['cost_nano_usd', (entry) => entry.costNanoUsd],
  ['tokens_after_disconnect', (entry) => entry.tokensAfterDisconnect],
  ['losses', ({ losses }) => (losses.length === 0 ? '[]' : JSON.stringify(losses))],
  ['generation', (entry) => entry.generation],
  ['first_content_ms', ({ hops }) => hops.firstContent ?? null],
  ['overhead_ms', ({ hops }) => hops.overhead ?? null],
  ['hops', ({ hops }) => hopsText(hops)],
  ['ingress', (entry) => entry.ingress],
  ['error_message', (entry) => entry.errorMessage],
  ['"limit"', (entry) => entry.limit],
  ['upstream_status', (entry) => entry.upstreamStatus],
  ['upstream_request_id', (entry) => entry.upstreamRequestId],
  ['attempted', (entry) => entry.attempted],
  ['shadow_of', (entry) => entry.shadowOf],
  ['labels', (entry) => entry.labels],
  ['client_request_id', (entry) => entry.clientRequestId],
  ['attempt_ms', ({ attemptMs }) => (attemptMs === null ? null : JSON.stringify(attemptMs))],
  ['retry_after_seconds', (entry) => entry.retryAfterSeconds],
  ['price_version', (entry) => entry.priceVersion],
]

/**
 * Adds an entry; the parameters are `valuesOf`. Violates a constraint if the request has an entry already.
 */
export const INSERT_ENTRY = `INSERT INTO ledger_entries (${COLUMNS.map(([name]) => name).join(', ')})
  VALUES (${COLUMNS.map(() => '?').join(', ')})`

/** The values of `INSERT_ENTRY`. */
export function valuesOf(entry: LedgerEntry): Value[] {
  return COLUMNS.map(([, valueOf]) => valueOf(entry))
}

/** SQLite stores NaN as NULL, which these columns do not allow. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}

/** The entry in a row with all columns. Throws an Error that names it if it is damaged. */
export function entryIn(row: Row): LedgerEntry {
  try {
    return read(row)
  } catch (cause) {
    const id = typeof row['request_id'] === 'string' ? row['request_id'] : ''
    throw damaged(`request '${id}'`, cause instanceof Error ? cause.message : String(cause))
  }
}

function read(row: Row): LedgerEntry {
  return {
    requestId: textIn(row, 'request_id'),
    atMs: numberIn(row, 'at_ms'),
    durationMs: numberIn(row, 'duration_ms'),
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    modelAsked: textOrNull(row, 'model_asked'),
    modelAnswered: textOrNull(row, 'model_answered'),
    model: textIn(row, 'model'),
    upstream: textOrNull(row, 'upstream'),
    dialect: dialectIn(row),
    attempts: numberIn(row, 'attempts'),
    stream: numberIn(row, 'stream') === 1,
    status: numberIn(row, 'status'),
    outcome: named(row, 'outcome', isOutcome),
    finish: textOrNull(row, 'finish_reason'),
    usage: usageIn(row),
    source: named(row, 'source', isSource),
    costNanoUsd: numberOrNull(row, 'cost_nano_usd'),
    tokensAfterDisconnect: numberIn(row, 'tokens_after_disconnect'),
    losses: lossesIn(row),
    generation: numberIn(row, 'generation'),
    hops: hopsIn(row),
    ingress: textOrNull(row, 'ingress'),
    errorMessage: textOrNull(row, 'error_message'),
    limit: textOrNull(row, 'limit'),
    upstreamStatus: numberOrNull(row, 'upstream_status'),
    upstreamRequestId: textOrNull(row, 'upstream_request_id'),
    attempted: textOrNull(row, 'attempted'),
    shadowOf: textOrNull(row, 'shadow_of'),
    labels: textOrNull(row, 'labels'),
    clientRequestId: textOrNull(row, 'client_request_id'),
    attemptMs: row['attempt_ms'] === null ? null : numbersIn(row, 'attempt_ms'),
    retryAfterSeconds: numberOrNull(row, 'retry_after_seconds'),
    priceVersion: textOrNull(row, 'price_version'),
  }
}

const COUNTS = [
  ['input', 'input_tokens'],
  ['output', 'output_tokens'],
  ['cacheRead', 'cache_read_tokens'],
  ['cacheWrite', 'cache_write_tokens'],
  ['reasoning', 'reasoning_tokens'],
  ['cacheWrite1h', 'cache_write_1h_tokens'],
] as const

function usageIn(row: Row): Usage {
  const usage: Usage = {}
  for (const [name, column] of COUNTS) {
    const count = numberOrNull(row, column)
    if (count !== null) usage[name] = count
  }
  return usage
}

/**
 * The times of stages without a column of their own, in the order of `HOPS`; null for a stage not reached.
 */
function hopsText(hops: EntryHops): string {
  // Half the time of JSON.stringify.
  const times = HOPS.map((stage) => {
    const ms = hops[stage]
    return ms === undefined || !Number.isFinite(ms) ? 'null' : ms
  })
  return `[${times.join(',')}]`
}

function hopsIn(row: Row): EntryHops {
  const hops: { -readonly [Stage in keyof EntryHops]: number } = {}
  const times = listIn(row, 'hops')
  HOPS.forEach((stage, at) => {
    const time = times[at]
    if (typeof time === 'number') hops[stage] = time
  })
  const firstContent = numberOrNull(row, 'first_content_ms')
  const overhead = numberOrNull(row, 'overhead_ms')
  if (firstContent !== null) hops.firstContent = firstContent
  if (overhead !== null) hops.overhead = overhead
  return hops
}

function lossesIn(row: Row): string[] {
  return listIn(row, 'losses').map((loss) => {
    if (typeof loss !== 'string') throw new Error("column 'losses' is not a list of strings")
    return loss
  })
}

function numbersIn(row: Row, name: string): number[] {
  return listIn(row, name).map((each) => {
    if (typeof each !== 'number') throw new Error(`column '${name}' is not a list of numbers`)
    return each
  })
}

function listIn(row: Row, name: string): readonly unknown[] {
  const text = textIn(row, name)
  if (text === '[]') return []
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The message of the parser would quote the text.
    throw new Error(`column '${name}' is not JSON`)
  }
  if (!Array.isArray(value)) throw new Error(`column '${name}' is not a list`)
  return value
}

function dialectIn(row: Row): LedgerEntry['dialect'] {
  return row['dialect'] === null ? null : named(row, 'dialect', isDialect)
}

function named<Name extends string>(
  row: Row,
  column: string,
  is: (value: string) => value is Name,
): Name {
  const value = textIn(row, column)
  if (!is(value)) throw new Error(`column '${column}' has an unknown name`)
  return value
}
