/**
 * Filters of the page of requests: from the address to a query of the API, and applied to single rows. Pure.
 */
import type { Cause, RequestRow } from '../../server/schema/schema.js'
import { CAUSES } from './failure-texts.js'

/** The filters of the address; empty: not set. */
export interface RequestFilters {
  /** A request id or a client request id. */
  readonly search: string
  readonly status: string
  /** `ok`, `failed`, or a kind of error. */
  readonly outcome: string
  readonly cause: Cause | ''
  readonly upstream: string
  readonly model: string
  readonly key: string
  /** `name=value`. */
  readonly label: string
  /** The client's format. */
  readonly format: string
  readonly fromMs: string
  readonly toMs: string
}

/** The query parameters that are filters. */
export const FILTER_NAMES = [
  'search',
  'status',
  'outcome',
  'cause',
  'upstream',
  'model',
  'key',
  'label',
  'format',
  'since',
  'fromMs',
  'toMs',
] as const

/** The periods of `since`, in ms. */
export const SINCE_MS: Readonly<Record<string, number>> = {
  '15m': 15 * 60_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
}

/** The filters of an address. Invalid values are ignored. `since` counts back from `nowMs`. */
export function filtersIn(query: URLSearchParams, nowMs: number): RequestFilters {
  const text = (name: (typeof FILTER_NAMES)[number]): string => query.get(name) ?? ''
  const matching = (name: (typeof FILTER_NAMES)[number], pattern: RegExp): string =>
    pattern.test(text(name)) ? text(name) : ''
  const sinceMs = SINCE_MS[text('since')]
  return {
    search: text('search').trim(),
    status: matching('status', /^[1-5]\d\d$/),
    outcome: matching('outcome', /^[a-z_]{2,40}$/),
    cause: CAUSES.find((cause) => cause === text('cause')) ?? '',
    upstream: text('upstream'),
    model: text('model'),
    key: text('key'),
    label: matching('label', /^[^\s=]+=\S+$/),
    format: matching('format', /^[a-z]{1,20}$/),
    fromMs: sinceMs === undefined ? matching('fromMs', /^\d{1,13}$/) : String(nowMs - sinceMs),
    toMs: matching('toMs', /^\d{1,13}$/),
  }
}

/** The query of `GET /requests` and of its CSV file. */
export function queryOf(filters: RequestFilters): Readonly<Record<string, string>> {
  const { search, key, format, ...same } = filters
  return { ...same, anyId: search, keyId: key, ingress: format }
}

/** Whether any filter is set. */
export function isFiltered(filters: RequestFilters): boolean {
  return Object.values(filters).some((value) => value !== '')
}

/** Whether a request matches the filters, as in the API. */
export function matchesFilters(row: RequestRow, filters: RequestFilters): boolean {
  const { search, status, outcome, cause, upstream, model, key, label, format } = filters
  return (
    is(search, row.requestId, row.clientRequestId) &&
    is(status, String(row.status)) &&
    is(outcome, row.outcome, row.outcome === 'ok' ? 'ok' : 'failed') &&
    is(cause, row.cause) &&
    is(upstream, row.upstream) &&
    is(model, row.model) &&
    is(key, row.keyId) &&
    is(label, ...(row.labels ?? '').split(' ')) &&
    is(format, row.ingress) &&
    (filters.fromMs === '' || row.atMs >= Number(filters.fromMs)) &&
    (filters.toMs === '' || row.atMs < Number(filters.toMs))
  )
}

/** Whether the filter is not set, or equals one of the values. */
function is(filter: string, ...values: readonly (string | null)[]): boolean {
  return filter === '' || values.includes(filter)
}
