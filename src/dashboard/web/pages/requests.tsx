/** Requests, newest first, with filters in the address and a drawer per request. */
import { useState } from 'react'
import type { RequestRow, Cause } from '../../server/schema/schema.js'
import { call, problemOf, urlOf, type Query } from '../api/client.js'
import { useLive, usePages, useResource } from '../api/load-resource.js'
import { Button } from '../components/button.js'
import { Filter, Search, type Option } from '../components/form.js'
import { report } from '../components/notices.js'
import { FirstCall } from '../components/request-code.js'
import { Empty, Failed, TableSkeleton, Pulse } from '../components/states.js'
import { More } from '../components/table.js'
import { saveFile } from '../format/csv.js'
import { CAUSE_NAMES, CAUSES, KINDS } from '../format/failure-texts.js'
import { plural } from '../format/number.js'
import { FORMAT_NAMES } from '../format/request-formats.js'
import { inputTime } from '../format/time.js'
import { setQuery, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'
import { RequestDrawer, RequestTable } from './request-drawer.js'

const PAGE = 50
/** `since` is rounded to steps, so that the list does not reload with each tick of the clock. */
const STEP_MS = 300_000

/** The page of requests. */
export function RequestsPage() {
  const { query } = useLocation()
  const scope = useScope()
  const nowMs = Math.floor(useNow() / STEP_MS) * STEP_MS
  const filters = filtersIn(query, nowMs)
  const asked: Query = { account: scope, ...queryOf(filters) }
  const id = query.get('request')
  return (
    <Page
      title="Requests"
      purpose="Each request with its cost and timing. Prompts and replies are never stored."
      scoped
      action={<SaveCsv asked={asked} />}
      filters={<RequestFilterRow filters={filters} />}
    >
      <List key={urlOf('', asked)} asked={asked} filters={filters} />
      {id === null ? null : <RequestDrawer id={id} onClose={() => setQuery({ request: null })} />}
    </Page>
  )
}

function SaveCsv({ asked }: { readonly asked: Query }) {
  const [busy, setBusy] = useState(false)
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      saveFile('requests.csv', await (await call('GET', urlOf('/requests.csv', asked))).text())
      report('Saved requests.csv.')
    } catch (error) {
      report(`Not saved. ${problemOf(error).message}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button
      icon="file"
      busy={busy}
      title="The requests that match the filters"
      onClick={() => void save()}
    >
      Save CSV
    </Button>
  )
}

interface ListProps {
  readonly asked: Query
  readonly filters: RequestFilters
}

/** The loaded rows; newer ones are added on demand, older ones below. */
function List({ asked, filters }: ListProps) {
  const pages = usePages(
    '/requests',
    { ...asked, limit: PAGE },
    { isEmpty: ({ rows }) => rows.length === 0 },
  )
  const [newer, setNewer] = useState<readonly RequestRow[]>([])
  const account = asked['account']
  const live = useLive(typeof account === 'string' ? account : null, filters.toMs === '')
  const { replies, problem, reload } = pages
  if (problem !== null && replies === null) {
    return (
      <Failed
        what="The list of requests"
        problem={problem}
        holds="Requests are still recorded."
        retry={() => reload()}
      />
    )
  }
  if (replies === null) return <TableSkeleton rows={12} />
  const shown = [...newer, ...replies.flatMap(({ rows }) => rows)]
  const waiting = (live?.rows ?? []).filter(
    (row) => isNew(row, shown) && matchesFilters(row, filters),
  )
  if (shown.length === 0 && waiting.length === 0) return <NoRequests filters={filters} />
  return (
    <div>
      <button
        type="button"
        className={waiting.length === 0 ? 'newer none' : 'newer'}
        disabled={waiting.length === 0}
        onClick={() => setNewer([...waiting, ...newer])}
      >
        {waiting.length === 0 ? 'Up to date' : `Show ${plural(waiting.length, 'new request')}`}
      </button>
      <RequestTable rows={shown} open={({ requestId }) => setQuery({ request: requestId })} />
      <More pages={pages} label="Older requests" />
    </div>
  )
}

function isNew(row: RequestRow, shown: readonly RequestRow[]): boolean {
  const newest = shown[0]
  if (newest !== undefined && row.atMs < newest.atMs) return false
  return shown.every(({ requestId }) => requestId !== row.requestId)
}

function NoRequests({ filters }: { readonly filters: RequestFilters }) {
  if (!isFiltered(filters)) return <FirstCall what="Each request with its cost and timing." />
  return (
    <Empty title="No requests match these filters">
      <p>Widen the time range or remove a filter.</p>
      <p>
        <Button onClick={clearFilters}>Clear filters</Button>
      </p>
    </Empty>
  )
}

const STATUSES = [200, 400, 401, 403, 404, 408, 413, 415, 429, 499, 500, 502, 503, 504]

/**
 * Removes all filters from the address.
 *
 * The filters of the page of requests. They are kept in the address.
 */
function clearFilters(): void {
  setQuery(Object.fromEntries(FILTER_NAMES.map((name) => [name, null])))
}

/** The row of filters. */
function RequestFilterRow({ filters }: { readonly filters: RequestFilters }) {
  const { outcome, toMs } = filters
  return (
    <>
      <Search
        label="Search requests"
        hint="Request id or client request id"
        value={filters.search}
      />
      <button
        type="button"
        className="filter toggle"
        aria-pressed={outcome === 'failed'}
        onClick={() => setQuery({ outcome: outcome === 'failed' ? null : 'failed' })}
      >
        Failed only
      </button>
      <OutcomeFilters filters={filters} />
      <ServedFilters filters={filters} />
      <TimeFilter filters={filters} />
      {isFiltered(filters) ? (
        <Button tone="quiet" onClick={clearFilters}>
          Clear filters
        </Button>
      ) : null}
      <Pulse on={toMs === ''} />
    </>
  )
}

function OutcomeFilters({ filters }: { readonly filters: RequestFilters }) {
  return (
    <>
      <Filter
        label="Status"
        all="All statuses"
        value={filters.status}
        options={STATUSES.map((status) => ({ value: String(status), label: `status ${status}` }))}
        onChange={(status) => setQuery({ status })}
      />
      <Filter
        label="Outcome"
        all="All outcomes"
        value={filters.outcome}
        options={[
          { value: 'ok', label: 'succeeded' },
          { value: 'failed', label: 'failed' },
          ...KINDS.map(itself),
        ]}
        onChange={(outcome) => setQuery({ outcome })}
      />
      <Filter
        label="Cause"
        all="All causes"
        value={filters.cause}
        options={CAUSES.map((cause) => ({ value: cause, label: CAUSE_NAMES[cause] }))}
        onChange={(cause) => setQuery({ cause })}
      />
    </>
  )
}

/** Filters by model, upstream, key, label and format. */
function ServedFilters({ filters }: { readonly filters: RequestFilters }) {
  const scope = useScope()
  const { data } = useResource('/models')
  const asked = { account: scope, state: 'all', limit: 500 }
  // Keys can be listed for one account only.
  const keys = useResource('/keys', asked, { enabled: scope !== 'all' }).data?.keys ?? []
  const models = data?.models.map(({ id }) => id) ?? []
  const labels = keys.flatMap((key) =>
    Object.entries(key.labels).map(([name, value]) => `${name}=${value}`),
  )
  return (
    <>
      <Filter
        label="Model"
        all="All models"
        value={filters.model}
        options={models.map(itself)}
        onChange={(model) => setQuery({ model })}
      />
      <Filter
        label="Upstream"
        all="All upstreams"
        value={filters.upstream}
        options={(data?.upstreams ?? []).map(itself)}
        onChange={(upstream) => setQuery({ upstream })}
      />
      <Filter
        label="Key"
        all="All keys"
        value={filters.key}
        options={[
          ...keys.map(({ id, name, lastFour }) => ({ value: id, label: `${name} …${lastFour}` })),
          itself('playground'),
        ]}
        onChange={(key) => setQuery({ key })}
      />
      <Filter
        label="Label"
        all="All labels"
        value={filters.label}
        options={[...new Set(labels)].sort().map(itself)}
        onChange={(label) => setQuery({ label })}
      />
      <Filter
        label="Client format"
        all="All formats"
        value={filters.format}
        options={Object.entries(FORMAT_NAMES).map(([value, label]) => ({ value, label }))}
        onChange={(format) => setQuery({ format })}
      />
    </>
  )
}

const TIMES: readonly Option[] = [
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 h' },
  { value: '7d', label: 'Last 7 d' },
  { value: 'custom', label: 'From … to …' },
]

function TimeFilter({ filters: { fromMs, toMs } }: { readonly filters: RequestFilters }) {
  const { query } = useLocation()
  const since = query.get('since')
  const isCustom = since === 'custom' || (since === null && (fromMs !== '' || toMs !== ''))
  return (
    <>
      <Filter
        label="Time"
        all="All times"
        value={isCustom ? 'custom' : (since ?? '')}
        options={TIMES}
        onChange={(value) => setQuery({ since: value, fromMs: null, toMs: null })}
      />
      {isCustom ? (
        <>
          <Moment label="From" name="fromMs" value={fromMs} />
          <Moment label="To" name="toMs" value={toMs} />
        </>
      ) : null}
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
        setQuery({ [name]: Number.isNaN(ms) ? null : String(ms) }, { replace: true })
      }}
    />
  )
}

function itself(value: string): Option {
  return { value, label: value }
}

/** The filters of the address; empty: not set. */
interface RequestFilters {
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
const FILTER_NAMES = [
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

/**
 * The filters of an address. Invalid values are ignored. `since` counts back from `nowMs`.
 *
 * Filters of the page of requests: from the address to a query of the API, and applied to single rows. Pure.
 */
function filtersIn(query: URLSearchParams, nowMs: number): RequestFilters {
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
function queryOf(filters: RequestFilters): Readonly<Record<string, string>> {
  const { search, key, format, ...same } = filters
  return { ...same, anyId: search, keyId: key, ingress: format }
}

/** Whether any filter is set. */
function isFiltered(filters: RequestFilters): boolean {
  return Object.values(filters).some((value) => value !== '')
}

/** Whether a request matches the filters, as in the API. */
function matchesFilters(row: RequestRow, filters: RequestFilters): boolean {
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
