/** Requests, newest first, with filters in the address and a drawer per request. */
import type { Cause, Key, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useList, useLive, useResource } from '../api/use-resource.js'
import { urlOf, type Query } from '../api/client.js'
import { read } from '../api/endpoints.js'
import { SaveCsv } from '../components/button.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import type { Option } from '../components/select-list.js'
import { FirstCall } from '../components/request-code.js'
import { Pulse } from '../components/loading-states.js'
import { RangePicker } from '../components/range-picker.js'
import { RANGE_NAMES, useRangeOrAny, type Range } from '../components/time-range.js'
import { CAUSE_NAMES, CAUSES, KINDS } from '../format/failure-texts.js'
import { exactCount, plural } from '../format/number.js'
import { dimensionsOf, FORMAT_NAMES } from '../format/request-formats.js'
import { Link, setFilter, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useScope, useTree } from '../shell/session.js'
import { TreeChoice } from '../shell/tree-choice.js'
import { FailureGroups } from './failure-groups.js'
import { OpenedRequest, RequestTable } from './request-table.js'

const PAGE = 50

export function RequestsPage() {
  const { query } = useLocation()
  const scope = useScope()
  const range = useRangeOrAny()
  const filters = filtersIn(query)
  const known = useFilters()
  const of = { account: scope, tree: useTree().isTree ? 'true' : null } as const
  const asked: Query = {
    ...of,
    ...queryOf(filters),
    ...range?.times,
  }
  const isGrouped = query.get('group') === 'failures'
  return (
    <Page
      title="Requests"
      purpose="Each request with its cost and timing. Prompts and replies are kept only where they are recorded."
      action={
        <>
          <Link to={urlOf('/batches', { account: scope })} className="button">
            Batches
          </Link>
          <SaveCsv path="/requests.csv" query={asked} />
        </>
      }
      filters={<RequestFilters {...{ known, range }} />}
    >
      <div className="row spread">
        <Chips filters={filters} />
        <Matches asked={asked} />
        <span className="row line">
          <TreeChoice />
          <GroupChoice isGrouped={isGrouped} />
        </span>
      </div>
      {isGrouped ? (
        <FailureGroups
          query={{ ...asked, ...(range === null ? { fromMs: 0 } : {}) }}
          address={Object.fromEntries(query)}
          everyMs={range?.everyMs}
        />
      ) : (
        <List {...{ of, asked, filters, known, range }} />
      )}
      <OpenedRequest />
    </Page>
  )
}

interface FiltersProps {
  readonly filters: Filters
  /** Those that can be added. */
  readonly known: readonly ListFilter[]
  /** Null: any time. */
  readonly range: Range | null
}

interface ListProps extends FiltersProps {
  /** Whose requests. */
  readonly of: Parameters<typeof useLive>[0]
  readonly asked: Query
}

/** One page of requests. The first page states how many newer ones there are, and shows them on demand. */
function List({ of, asked, filters, known, range }: ListProps) {
  const { query } = useLocation()
  const list = useList('/requests', { ...asked, limit: PAGE }, ({ rows }) => rows, {
    sortable: true,
    usualSort: '-atMs',
  })
  const isOpen = range === null || range.times['toMs'] === undefined
  const isPlain = isOpen && UNKNOWN_HERE.every((name) => filters[name] === '')
  const isLatest = isPlain && !query.has('after') && list.sort === '-atMs'
  const latest = useLive(of, isLatest)
  const live = isLatest ? latest.data : null
  const waiting = (live?.rows ?? []).filter((row) => {
    return isNew(row, list.rows ?? []) && row.atMs >= (range?.fromMs ?? 0) && matchesFilters(row, filters)
  })
  return (
    <div>
      {waiting.length === 0 ? null : (
        <button type="button" className="newer" onClick={list.reload}>
          Show {plural(waiting.length, 'new request')}
        </button>
      )}
      <RequestTable
        list={list}
        empty={
          waiting.length > 0 ? null : (
            <NoMatches what="requests" filters={known} also={RANGE_NAMES}>
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

function RequestFilters({ known, range }: Omit<FiltersProps, 'filters'>) {
  return (
    <FilterBar
      search={{ label: 'Search requests', hint: 'Request id or client request id' }}
      filters={known}
      also={RANGE_NAMES}
      before={<RangePicker range={range} hasAny />}
    >
      <Pulse on={range?.isLive !== false} />
    </FilterBar>
  )
}

const SLOWEST_FIRST = '-durationMs'

/** Filters of one click, which exclude each other. */
const CHIPS = [
  { name: 'All', sets: {} },
  { name: 'Failed', sets: { outcome: 'failed' } },
  { name: 'Limits', sets: { cause: 'limits' } },
  { name: 'Client errors', sets: { cause: 'client' } },
  { name: 'Slowest', sets: { sort: SLOWEST_FIRST } },
] as const
const CHIP_SETS = { outcome: null, cause: null, sort: null }

function Chips({ filters: { outcome, cause } }: Pick<FiltersProps, 'filters'>) {
  const isSlowest = useLocation().query.get('sort') === SLOWEST_FIRST
  const chosen =
    cause === 'limits'
      ? 'Limits'
      : cause === 'client'
        ? 'Client errors'
        : cause !== '' || (outcome !== '' && outcome !== 'failed')
          ? null
          : outcome === 'failed'
            ? 'Failed'
            : isSlowest
              ? 'Slowest'
              : 'All'
  return (
    <span className="switch" role="group" aria-label="Which requests">
      {CHIPS.map(({ name, sets }) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen}
          onClick={() => setFilter({ ...CHIP_SETS, ...sets })}
        >
          {name}
        </button>
      ))}
    </span>
  )
}

/** `1,204 requests, 55 failed`. */
function Matches({ asked }: { readonly asked: Query }) {
  const { data } = useResource('/requests', { ...asked, count: 'true', limit: 1 })
  const count = data?.count
  if (count === undefined) return <span className="soft" role="status" />
  const { requests, failed, isPart } = count
  const all = `${isPart ? 'more than ' : ''}${plural(requests, 'request')}`
  const isFailures = requests === failed
  return (
    <span className="soft" role="status">
      {all}
      {isFailures ? '' : `, ${isPart ? 'of the newest ' : ''}${exactCount(failed)} failed`}
    </span>
  )
}

function GroupChoice({ isGrouped }: { readonly isGrouped: boolean }) {
  return (
    <button
      type="button"
      className="filter toggle"
      aria-pressed={isGrouped}
      onClick={() => setFilter({ group: isGrouped ? null : 'failures' })}
    >
      Group failures
    </button>
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
}

/** Filters that only the server can apply to the latest requests. */
const UNKNOWN_HERE = ['deprecated', 'parent', 'member'] as const

/** The filters of an address. Invalid values are ignored. */
function filtersIn(query: URLSearchParams): Filters {
  const text = (name: keyof Filters): string => query.get(name) ?? ''
  const matching = (name: keyof Filters, pattern: RegExp): string =>
    pattern.test(text(name)) ? text(name) : ''
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
    format: matching('format', /^[a-z_]{1,20}$/),
    dimension: matching('dimension', /^[a-z][a-z0-9_]*=.+$/),
    program: matching('program', /^[a-z0-9_-]{1,40}$/),
    user: text('user'),
    batch: text('batch'),
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
    UNKNOWN_HERE.every((name) => filters[name] === '')
  )
}

/** Whether the filter is not set, or equals one of the values. */
function is(filter: string, ...values: readonly (string | null)[]): boolean {
  return filter === '' || values.includes(filter)
}
