/** Requests, newest first, with filters in the address and a drawer per request. */
import type { LiveReply, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useList, useLive, useResource, type Resource } from '../api/use-resource.js'
import { urlOf, type Query } from '../api/client.js'
import { read } from '../api/endpoints.js'
import { SaveCsv } from '../components/button.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { optionsOf, type Option } from '../components/options.js'
import { FirstCall } from '../components/request-code.js'
import { Pulse } from '../components/loading-states.js'
import { RangePicker } from '../components/range-picker.js'
import { Switch } from '../components/switch.js'
import { RANGE_NAMES, useRangeOrAny, type Range } from '../components/time-range.js'
import { CAUSE_NAMES, CAUSES, KINDS } from '../format/failure-texts.js'
import { exactCount, plural } from '../format/number.js'
import { dimensionsOf, FORMAT_NAMES } from '../format/request-formats.js'
import { Link, setFilter, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useScope, useTree } from '../shell/session.js'
import { TreeChoice } from '../shell/tree-choice.js'
import { FailureGroups } from './failure-groups.js'
import { useKeyFilters } from './key-filters.js'
import { OpenedRequest, RequestTable } from './request-table.js'

const PAGE = 50
const USUAL_SORT = '-atMs'

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
  const isOpen = range === null || range.times['toMs'] === undefined
  const isPlain = isOpen && setRules(filters).every((rule) => rule.of !== undefined)
  const isNewestFirst = (query.get('sort') ?? USUAL_SORT) === USUAL_SORT
  const isLatest = isPlain && !isGrouped && isNewestFirst && !query.has('after')
  const live = useLive(of, isLatest)
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
      filters={<RequestFilters {...{ known, range, live }} />}
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
        <List {...{ asked, filters, known, range }} live={isLatest ? live.data : null} />
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
  readonly asked: Query
  /** The latest requests, if the list begins with them. */
  readonly live: LiveReply | null
}

/** One page of requests. The first page states how many newer ones there are, and shows them on demand. */
function List({ asked, filters, known, range, live }: ListProps) {
  const list = useList('/requests', { ...asked, limit: PAGE }, ({ rows }) => rows, {
    sortable: true,
    usualSort: USUAL_SORT,
  })
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

interface BarProps extends Omit<FiltersProps, 'filters'> {
  readonly live: Resource<unknown>
}

function RequestFilters({ known, range, live }: BarProps) {
  return (
    <FilterBar
      search={{ label: 'Search requests', hint: 'Request id or client request id' }}
      filters={known}
      also={RANGE_NAMES}
      before={<RangePicker range={range} hasAny />}
    >
      <Pulse on={range?.isLive !== false} of={[live]} />
    </FilterBar>
  )
}

const SLOWEST_FIRST = '-durationMs'

/** Filters of one click, which exclude each other. */
const CHIPS = [
  { value: 'all', label: 'All', sets: {} },
  { value: 'failed', label: 'Failed', sets: { outcome: 'failed' } },
  { value: 'limits', label: 'Limits', sets: { cause: 'limits' } },
  { value: 'client', label: 'Client errors', sets: { cause: 'client' } },
  { value: 'slowest', label: 'Slowest', sets: { sort: SLOWEST_FIRST } },
] as const

function Chips({ filters }: Pick<FiltersProps, 'filters'>) {
  const { cause = null } = filters
  // A cause goes before the outcome.
  const outcome = cause === null ? (filters.outcome ?? null) : null
  const order = useLocation().query.get('sort')
  // Any order but that of the slowest goes with each of the others.
  const sort = order === SLOWEST_FIRST && outcome === null && cause === null ? order : null
  const none = { outcome: null, cause: null, sort: null }
  const chosen = CHIPS.find(({ sets }) => {
    const wanted = { ...none, ...sets }
    return wanted.outcome === outcome && wanted.cause === cause && wanted.sort === sort
  })
  return (
    <Switch
      label="Which requests"
      options={CHIPS}
      value={chosen?.value ?? null}
      onChange={(value) => setFilter({ ...none, ...CHIPS.find((chip) => chip.value === value)?.sets })}
    />
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
  const { key, label, maker } = useKeyFilters()
  return [
    { name: 'status', label: 'Status', options: optionsOf(STATUSES.map(String)), isFree: true },
    {
      name: 'outcome',
      label: 'Outcome',
      options: [
        { value: 'ok', label: 'succeeded' },
        { value: 'failed', label: 'failed' },
        ...optionsOf(KINDS),
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
      options: optionsOf((data?.models ?? []).map(({ id }) => id)),
      isFree: true,
    },
    {
      name: 'deprecated',
      label: 'Deprecated models',
      options: [{ value: 'true', label: 'with an announced end' }],
    },
    { name: 'upstream', label: 'Upstream', options: optionsOf(data?.upstreams ?? []) },
    key,
    ...(scope === 'all' ? ACCOUNT_FILTERS : []),
    { ...maker, name: 'member', label: 'Key made by' },
    label,
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

interface Rule {
  /** Other values of the address are ignored. */
  readonly form?: Pick<RegExp, 'test'>
  /** Its name in the query of the server, if that is another one. */
  readonly asked?: string
  /** The values of a request of which the filter has to be one; absent: the server alone can tell. */
  readonly of?: (row: RequestRow) => readonly (string | null)[]
}

/** The filters of the address. */
const RULES = {
  /** A request id or a client request id. */
  search: { asked: 'anyId', of: ({ requestId, clientRequestId }) => [requestId, clientRequestId] },
  status: { form: /^[1-5]\d\d$/, of: ({ status }) => [String(status)] },
  /** `ok`, `failed`, or a kind of error. */
  outcome: {
    form: /^[a-z_]{2,40}$/,
    of: ({ outcome }) => [outcome, outcome === 'ok' ? 'ok' : 'failed'],
  },
  cause: { form: { test: (text) => CAUSES.some((cause) => cause === text) }, of: ({ cause }) => [cause] },
  upstream: { of: ({ upstream }) => [upstream] },
  model: { of: ({ model }) => [model] },
  /** `true`: models with an announced end. */
  deprecated: { form: /^true$/ },
  key: { asked: 'keyId', of: ({ keyId }) => [keyId] },
  accountId: { of: ({ accountId }) => [accountId] },
  /** An account with all below it. */
  parent: {},
  /** Who made the key. */
  member: {},
  /** `name=value`. */
  label: { form: /^[^\s=]+=\S+$/, of: ({ labels }) => (labels ?? '').split(' ') },
  format: { form: /^[a-z_]{1,20}$/, asked: 'clientFormat', of: ({ clientFormat }) => [clientFormat] },
  /** `name=value`. */
  dimension: { form: /^[a-z][a-z0-9_]*=.+$/, of: dimensionsOf },
  program: { form: /^[a-z0-9_-]{1,40}$/, of: ({ program }) => [program] },
  user: { of: ({ user }) => [user] },
  /** The id of a batch. */
  batch: { of: ({ batch }) => [batch] },
} as const satisfies Readonly<Record<string, Rule>>

/** The filters that are set, with their values. */
type Filters = Readonly<Partial<Record<keyof typeof RULES, string>>>

const RULE_LIST: readonly (readonly [name: string, rule: Rule])[] = Object.entries(RULES)

/** The valid filters of an address. */
function filtersIn(query: URLSearchParams): Filters {
  return Object.fromEntries(
    RULE_LIST.flatMap(([name, { form }]) => {
      const text = (query.get(name) ?? '').trim()
      return text === '' || form?.test(text) === false ? [] : [[name, text]]
    }),
  )
}

/** The set filters with their rules. */
function setRules(filters: Filters): readonly (Rule & { readonly name: string; readonly value: string })[] {
  const values: Readonly<Record<string, string>> = filters
  return RULE_LIST.flatMap(([name, rule]) => {
    const value = values[name]
    return value === undefined ? [] : [{ ...rule, name, value }]
  })
}

/** The query of `GET /requests` and of its CSV file. */
function queryOf(filters: Filters): Query {
  return Object.fromEntries(setRules(filters).map(({ name, asked = name, value }) => [asked, value]))
}

/** Whether a request matches the filters, as in the API. */
function matchesFilters(row: RequestRow, filters: Filters): boolean {
  return setRules(filters).every(({ of, value }) => of?.(row).includes(value) === true)
}
