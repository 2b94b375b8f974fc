/**
 * Defines the columns of `sluice usage export` with their documentation, and writes them as JSON lines and
 * CSV. New columns are added at the end.
 */
import type { LedgerEntry } from './entry.js'

/** The value of a cell; null is unknown or not applicable. */
type Cell = string | number | boolean | null

/** The columns, in order, with the documentation of each. */
export const COLUMNS: readonly (readonly [
  name: string,
  means: string,
  cell: (row: LedgerEntry) => Cell,
])[] = [
  ['request_id', 'The id of the response header `x-request-id`.', (row) => row.requestId],
  ['at', 'When the request arrived, UTC.', (row) => new Date(row.atMs).toISOString()],
  ['duration_ms', 'From then until the entry was made.', (row) => row.durationMs],
  ['account_id', 'The account.', (row) => row.accountId],
  ['key_id', 'The API key, or `playground`.', (row) => row.keyId],
  ['model_asked', 'The model that the client requested.', (row) => row.modelAsked],
  [
    'model_answered',
    'The model that the upstream reports, else the requested one.',
    (row) => row.modelAnswered,
  ],
  ['model', 'The model under which sums count it.', (row) => row.model],
  ['upstream', 'Empty if none was chosen.', (row) => row.upstream],
  ['dialect', 'The wire format of the upstream.', (row) => row.dialect],
  ['attempts', 'Attempts, including those that reached no upstream.', (row) => row.attempts],
  ['stream', 'Whether the client requested a stream.', (row) => row.stream],
  ['status', 'The HTTP status; 499 if the client had left.', (row) => row.status],
  ['outcome', '`ok`, `lost`, or a kind of error.', (row) => row.outcome],
  ['finish_reason', 'Why the model stopped.', (row) => row.finish],
  ['source', '`reported`, `estimated`, `assumed` or `none`.', (row) => row.source],
  ['input_tokens', 'Prompt tokens, cached ones included.', (row) => row.usage.input ?? null],
  ['output_tokens', 'Reply tokens, reasoning included.', (row) => row.usage.output ?? null],
  ['cache_read_tokens', 'Prompt tokens read from a cache.', (row) => row.usage.cacheRead ?? null],
  [
    'cache_write_tokens',
    'Prompt tokens written to a cache.',
    (row) => row.usage.cacheWrite ?? null,
  ],
  [
    'cache_write_1h_tokens',
    'Those of them written for one hour.',
    (row) => row.usage.cacheWrite1h ?? null,
  ],
  ['reasoning_tokens', 'Reply tokens spent on reasoning.', (row) => row.usage.reasoning ?? null],
  [
    'cost_nano_usd',
    'Billionths of a US dollar; empty if a price is unknown.',
    (row) => row.costNanoUsd,
  ],
  ['cost_usd', 'The same in dollars, with nine digits.', (row) => usd(row.costNanoUsd)],
  [
    'tokens_after_disconnect',
    'Reply tokens generated after the client had left.',
    (row) => row.tokensAfterDisconnect,
  ],
  ['losses', 'Fields that translation lost, separated by spaces.', (row) => row.losses.join(' ')],
  ['generation', 'The configuration generation.', (row) => row.generation],
  ['first_content_ms', 'Until the first content left.', (row) => row.hops.firstContent ?? null],
  ['overhead_ms', "The gateway's own part of the time.", (row) => row.hops.overhead ?? null],
  ['ingress', 'The format of the client.', (row) => row.ingress],
  ['error_message', 'The error message that the client got.', (row) => row.errorMessage],
  ['limit', 'The limit that refused it, with scope and window.', (row) => row.limit],
  ['upstream_status', 'The HTTP status of the last upstream.', (row) => row.upstreamStatus],
  ['upstream_request_id', "The upstream's id of the request.", (row) => row.upstreamRequestId],
  ['attempted', 'Each attempt in order, `upstream:outcome`.', (row) => row.attempted],
  ['shadow_of', 'The request that this one repeats for comparison.', (row) => row.shadowOf],
  ['labels', '`k=v`, separated by spaces.', (row) => row.labels],
  ['client_request_id', "The client's id of the request.", (row) => row.clientRequestId],
  ['price_version', 'The prices that the cost was computed with.', (row) => row.priceVersion],
]

/** Nine digits after the point, computed from the whole number, because a float would round. */
export function usd(nanoUsd: number | null): string | null {
  if (nanoUsd === null) return null
  const digits = String(nanoUsd).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

/** A line of JSON, without its line break. */
export function jsonLine(row: LedgerEntry): string {
  return JSON.stringify(Object.fromEntries(COLUMNS.map(([name, , cell]) => [name, cell(row)])))
}

/** The first line of the CSV form. */
export function csvHeader(): string {
  return COLUMNS.map(([name]) => name).join(',')
}

/** A line of RFC 4180, without its line break. */
export function csvLine(row: LedgerEntry): string {
  return COLUMNS.map(([, , cell]) => csvCell(cell(row))).join(',')
}

/**
 * Spreadsheets evaluate cells that begin like a formula, and clients choose names: an apostrophe before the
 * cell makes it text (OWASP, "CSV injection").
 */
export function csvCell(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
