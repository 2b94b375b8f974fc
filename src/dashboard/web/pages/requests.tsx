/** Requests, newest first, with filters in the address and a drawer per request. */
import type { Cause, Key, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useList, useLive, useResource } from '../api/use-resource.js'
import type { Query } from '../api/client.js'
import { read } from '../api/endpoints.js'
import { SaveCsv } from '../components/button.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import type { Option } from '../components/select-list.js'
import { FirstCall } from '../components/request-code.js'
import { Pulse } from '../components/loading-states.js'
import { CAUSE_NAMES, CAUSES, KINDS } from '../format/failure-texts.js'
import { plural } from '../format/number.js'
import { dimensionsOf, FORMAT_NAMES } from '../format/request-formats.js'
import { inputTime } from '../format/time.js'
import { setFilter, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'
import { OpenedRequest, RequestTable } from './request-table.js'

const PAGE = 50
/** `since` is rounded to steps, so that the list does not reload with each tick of the clock. */
const STEP_MS = 300_000

export function RequestsPage() {
  const { query } = useLocation()
  const scope = useScope()
  const nowMs = Math.floor(useNow() / STEP_MS) * STEP_MS
  const filters = filtersIn(query, nowMs)
  const known = useFilters()
  const asked: Query = { account: scope, ...queryOf(filters) }
  return (
    <Page
      title="Requests"
      purpose="Each request with its cost and timing. Prompts and replies are kept only where they are recorded."
      scoped
      action={<SaveCsv path="/requests.csv" query={asked} />}
      filters={<RequestFilters filters={filters} known={known} />}
    >
      <List asked={asked} filters={filters} known={known} />
      <OpenedRequest />
    </Page>
  )
}

interface FiltersProps {
  readonly filters: Filters
  /** Those that can be added. */
  readonly known: readonly ListFilter[]
}

interface ListProps extends FiltersProps {
  readonly asked: Query
}

/** One page of requests. The first page states how many newer ones there are, and shows them on demand. */
function List({ asked, filters, known }: ListProps) {
  const { query } = useLocation()
  const list = useList('/requests', { ...asked, limit: PAGE }, ({ rows }) => rows, {
    sortable: true,
    usualSort: '-atMs',
  })
  const account = asked['account']
  const isPlain = UNKNOWN_HERE.every((name) => filters[name] === '')
  const isLatest = isPlain && !query.has('after') && list.sort === '-atMs'
  const latest = useLive(typeof account === 'string' ? account : null, isLatest)
  const live = isLatest ? latest.data : null
  const waiting = (live?.rows ?? []).filter((row) => {
    return isNew(row, list.rows ?? []) && matchesFilters(row, filters)
  })
  return (
    <div>
      <button type="button" className={'newer bare'} disabled={waiting.length === 0} onClick={list.reload}>
        {waiting.length === 0 ? 'Up to date' : `Show ${plural(waiting.length, 'new request')}`}
      </button>
      <RequestTable
        list={list}
        empty={
          waiting.length > 0 ? null : (
            <NoMatches what="requests" filters={known}>
              <FirstCall what="Each request with its cost and timing." />
            </NoMatches>
          )
        }
      />
    </div>
  )
}

function isNew(row: RequestRow, shown: readonly RequestRow[]): boolean {
  const newest = shown[0]
  if (newest !== undefined && row.atMs < newest.atMs) return false
  return shown.every(({ requestId }) => requestId !== row.requestId)
}

function RequestFilters({ filters, known }: FiltersProps) {
  const { outcome, toMs } = filters
  return (
    <FilterBar search={{ label: 'Search requests', hint: 'Request id or client request id' }} filters={known}>
      <button
        type="button"
        className="filter toggle"
        aria-pressed={outcome === 'failed'}
        onClick={() => setFilter({ outcome: outcome === 'failed' ? null : 'failed' })}
      >
        Failed only
      </button>
      <CustomTime filters={filters} />
      <Pulse on={toMs === ''} />
    </FilterBar>
  )
}

const STATUSES = [200, 400, 401, 403, 404, 408, 413, 415, 429, 499, 500, 502, 503, 504]

/** The filters with their values. */
function useFilters(): readonly ListFilter[] {
  const scope = useScope()
  const { data } = useResource('/models')
  const keysOf = async (search: string) => {
    const { keys } = await read('/keys', { account: scope, state: 'all', search, limit: 100 })
    return keys
  }
  const recent = useResource('/keys', { account: scope, state: 'all', limit: 100 })
  const keys = recent.data?.keys ?? []
  const labels = keys.flatMap((key) => Object.entries(key.labels).map(([name, value]) => `${name}=${value}`))
  return [
    { name: 'status', label: 'Status', options: STATUSES.map(String).map(itself), isFree: true },
    {
      name: 'outcome',
      label: 'Outcome',
      options: [
        { value: 'ok', label: 'succeeded' },
        { value: 'failed', label: 'failed' },
        ...KINDS.map(itself),
      ],
    },
    {
      name: 'cause',
      label: 'Cause',
      options: CAUSES.map((cause) => ({ value: cause, label: CAUSE_NAMES[cause] })),
    },
    {
      name: 'model',
      label: 'Model',
      options: (data?.models ?? []).map(({ id }) => itself(id)),
      isFree: true,
    },
    {
      name: 'deprecated',
      label: 'Deprecated models',
      options: [{ value: 'true', label: 'with an announced end' }],
    },
    { name: 'upstream', label: 'Upstream', options: (data?.upstreams ?? []).map(itself) },
    {
      name: 'key',
      label: 'Key',
      options: [...keys.map(keyOption), itself('playground')],
      find: async (text) => (await keysOf(text)).map(keyOption),
    },
    ...(scope === 'all' ? ACCOUNT_FILTERS : []),
    {
      name: 'member',
      label: 'Key made by',
      options: [...new Set(keys.flatMap(({ createdBy }) => createdBy ?? []))].sort().map(itself),
      isFree: true,
    },
    {
      name: 'label',
      label: 'Label',
      options: [...new Set(labels)].sort().map(itself),
      isFree: true,
    },
    {
      name: 'format',
      label: 'Client format',
      options: Object.entries(FORMAT_NAMES).map(([value, label]) => ({ value, label })),
    },
    { name: 'dimension', label: 'Dimension', options: [], isFree: true },
    { name: 'program', label: 'Program', options: [], isFree: true },
    { name: 'user', label: 'Person who signed in', options: [], isFree: true },
    { name: 'batch', label: 'Batch', options: [], isFree: true },
    { name: 'since', label: 'Time', options: TIMES, with: ['fromMs', 'toMs'] },
  ]
}

const ACCOUNT_FILTERS: readonly ListFilter[] = [
  { name: 'accountId', label: 'Account', options: [], find: accountOptions },
  { name: 'parent', label: 'Account and all below it', options: [], find: accountOptions },
]

async function accountOptions(search: string): Promise<readonly Option[]> {
  const { accounts } = await read('/accounts', { search, sort: 'name', limit: 100 })
  return accounts.map(({ id, name }) => ({ value: id, label: name }))
}

function keyOption({ id, name, lastFour }: Key): Option {
  return { value: id, label: `${name} …${lastFour}` }
}

const TIMES: readonly Option[] = [
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 h' },
  { value: '7d', label: 'Last 7 d' },
  { value: 'custom', label: 'From … to …' },
]

/** The two ends of a range that is none of the usual ones. */
function CustomTime({ filters: { fromMs, toMs } }: { readonly filters: Filters }) {
  const { query } = useLocation()
  const since = query.get('since')
  if (since !== 'custom' && (since !== null || (fromMs === '' && toMs === ''))) return null
  return (
    <>
      <Moment label="From" name="fromMs" value={fromMs} />
      <Moment label="To" name="toMs" value={toMs} />
    </>
  )
}

interface MomentProps {
  readonly label: string
  readonly name: 'fromMs' | 'toMs'
  readonly value: string
}

/** A time in the user's time zone. */
function Moment({ label, name, value }: MomentProps) {
  return (
    <input
      type="datetime-local"
      className="filter"
      aria-label={label}
      value={value === '' ? '' : inputTime(Number(value))}
      onChange={(event) => {
        const ms = new Date(event.target.value).getTime()
        setFilter({ [name]: Number.isNaN(ms) ? null : String(ms) }, { replace: true })
      }}
    />
  )
}

function itself(value: string): Option {
  return { value, label: value }
}

/** The filters of the address; empty: not set. */
interface Filters {
  /** A request id or a client request id. */
  readonly search: string
  readonly status: string
  /** `ok`, `failed`, or a kind of error. */
  readonly outcome: string
  readonly cause: Cause | ''
  readonly upstream: string
  readonly model: string
  /** `true`: models with an announced end. */
  readonly deprecated: string
  readonly key: string
  readonly accountId: string
  /** An account with all below it. */
  readonly parent: string
  /** Who made the key. */
  readonly member: string
  /** `name=value`. */
  readonly label: string
  /** The client's format. */
  readonly format: string
  /** `name=value`. */
  readonly dimension: string
  readonly program: string
  readonly user: string
  /** The id of a batch. */
  readonly batch: string
  readonly fromMs: string
  readonly toMs: string
}

/** Filters that only the server can apply to the latest requests. */
const UNKNOWN_HERE = ['toMs', 'deprecated', 'parent', 'member'] as const

/** The periods of `since`, in ms. */
const SINCE_MS: Readonly<Record<string, number>> = {
  '15m': 15 * 60_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
}

/** The filters of an address. Invalid values are ignored. `since` counts back from `nowMs`. */
function filtersIn(query: URLSearchParams, nowMs: number): Filters {
  const text = (name: keyof Filters | 'since'): string => query.get(name) ?? ''
  const matching = (name: keyof Filters, pattern: RegExp): string =>
    pattern.test(text(name)) ? text(name) : ''
  const sinceMs = SINCE_MS[text('since')]
  return {
    search: text('search').trim(),
    status: matching('status', /^[1-5]\d\d$/),
    outcome: matching('outcome', /^[a-z_]{2,40}$/),
    cause: CAUSES.find((cause) => cause === text('cause')) ?? '',
    upstream: text('upstream'),
    model: text('model'),
    deprecated: matching('deprecated', /^true$/),
    key: text('key'),
    accountId: text('accountId'),
    parent: text('parent'),
    member: text('member'),
    label: matching('label', /^[^\s=]+=\S+$/),
    format: matching('format', /^[a-z]{1,20}$/),
    dimension: matching('dimension', /^[a-z][a-z0-9_]*=.+$/),
    program: matching('program', /^[a-z0-9_-]{1,40}$/),
    user: text('user'),
    batch: text('batch'),
    fromMs: sinceMs === undefined ? matching('fromMs', /^\d{1,13}$/) : String(nowMs - sinceMs),
    toMs: matching('toMs', /^\d{1,13}$/),
  }
}

/** The query of `GET /requests` and of its CSV file. */
function queryOf(filters: Filters): Readonly<Record<string, string>> {
  const { search, key, format, ...same } = filters
  return { ...same, anyId: search, keyId: key, clientFormat: format }
}

/** Whether a request matches the filters, as in the API. */
function matchesFilters(row: RequestRow, filters: Filters): boolean {
  const { search, status, outcome, cause, upstream, model, key, accountId } = filters
  const { label, format, dimension, program, user, batch } = filters
  return (
    is(search, row.requestId, row.clientRequestId) &&
    is(status, String(row.status)) &&
    is(outcome, row.outcome, row.outcome === 'ok' ? 'ok' : 'failed') &&
    is(cause, row.cause) &&
    is(upstream, row.upstream) &&
    is(model, row.model) &&
    is(key, row.keyId) &&
    is(accountId, row.accountId) &&
    is(label, ...(row.labels ?? '').split(' ')) &&
    is(format, row.clientFormat) &&
    is(dimension, ...dimensionsOf(row)) &&
    is(program, row.program) &&
    is(user, row.user) &&
    is(batch, row.batch) &&
    UNKNOWN_HERE.every((name) => filters[name] === '') &&
    (filters.fromMs === '' || row.atMs >= Number(filters.fromMs)) &&
    (filters.toMs === '' || row.atMs < Number(filters.toMs))
  )
}

/** Whether the filter is not set, or equals one of the values. */
function is(filter: string, ...values: readonly (string | null)[]): boolean {
  return filter === '' || values.includes(filter)
}
