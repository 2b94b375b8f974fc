/** Usage: charts over time, and all groups of a range. */
import type { GroupRow, UsageReply, UsagePoint } from '../../server/schema/schema.js'
import { urlOf, type Query } from '../api/client.js'
import { useList, useLive, useOnTraffic, useResource } from '../api/use-resource.js'
import { read } from '../api/endpoints.js'
import { IconButton, SaveCsv } from '../components/button.js'
import { coloursOf, groupName, Chart } from '../components/chart.js'
import { Swatch, type ChartPick, type Colour, type Series } from '../components/chart-series.js'
import { amounts, counts } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { FilterBar, type ListFilter } from '../components/filter-bar.js'
import { Filter } from '../components/form.js'
import { FirstCall } from '../components/request-code.js'
import { Pulse, Loaded, Empty } from '../components/loading-states.js'
import { RangePicker, useRange, type Range } from '../components/time-range.js'
import { Money } from '../components/values.js'
import { plural, count, dollars, duration, percent } from '../format/number.js'
import { fullTime } from '../format/time.js'
import { barsOf, bucketsOf, perText, sumsOf, valuesOf, type Buckets } from '../format/time-buckets.js'
import { Link, setFilter, useLocation, go } from '../routing.js'
import { Page, Block } from '../shell/page.js'
import { useScope, withScope } from '../shell/session.js'
import { ErrorsChart } from './errors-chart.js'

/** Groupings besides those with a button of their own. */
const GROUPINGS = [
  { value: 'account', label: 'account' },
  { value: 'parent', label: 'parent account' },
  { value: 'root', label: 'top account' },
  { value: 'member', label: 'member' },
  { value: 'upstream', label: 'upstream' },
  { value: 'client_format', label: 'client format' },
  { value: 'program', label: 'program' },
  { value: 'user', label: 'person who signed in' },
  { value: 'month', label: 'month' },
] as const

function nameOfGrouping(group: string): string {
  const [, list, name] = /^(label|dimension):(.+)$/.exec(group) ?? []
  if (list !== undefined) return list === 'label' ? `label ${name}` : String(name)
  return GROUPINGS.find(({ value }) => value === group)?.label ?? group
}

export function UsagePage() {
  const scope = useScope()
  const { query } = useLocation()
  const range = useRange('24h')
  const group = query.get('group') ?? 'model'
  const asked = {
    ...{ account: scope, ...range.query, group },
    ...{ keyId: query.get('key'), model: query.get('model') },
  }
  const resource = useResource('/usage', asked, { everyMs: range.everyMs })
  const { data } = resource
  useOnTraffic(useLive(scope, range.isLive), () => resource.reload())
  const colourOf = coloursOf((data?.groups ?? []).map(({ id }) => id))
  return (
    <Page
      title="Usage"
      purpose={`Requests, tokens, spend, errors and latency: ${range.words}.`}
      scoped
      action={<SaveCsv path="/usage.csv" query={asked} />}
      filters={
        <>
          <RangePicker range={range} withUnit />
          <GroupSwitch group={group} labels={data?.labels ?? []} dimensions={data?.dimensions ?? []} />
          <FilterBar filters={useUsageFilters()} search={{ label: `Search by ${nameOfGrouping(group)}` }}>
            <Link to={withScope('/statement', scope)} className="soft">
              Monthly statement
            </Link>
            <Pulse on={range.isLive} of={[resource]} />
          </FilterBar>
        </>
      }
    >
      <Loaded resource={resource} what="Usage" unaffected="Requests are still counted.">
        {(data) =>
          data.total.requests === 0 ? (
            <FirstCall what="Charts of requests, tokens, spend, errors and time to first token." />
          ) : (
            <>
              <Unpriced usage={data} />
              <UsageCharts usage={data} colourOf={colourOf} words={wordsOf(range, data)} />
              <UsageTable key={group} asked={asked} usage={data} group={group} colourOf={colourOf} />
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

/** The range as a text, with what was changed because parts of the ledger are no longer kept. */
function wordsOf({ by, words, zone }: Range, { zone: shownZone, extendedTo, fromMs }: UsageReply): string {
  const from = `${words}; from ${fullTime(fromMs)}`
  if (extendedTo === 'hour') return `${from}, because single requests are no longer kept`
  if (extendedTo === 'day') return `${from}, because hours are no longer kept`
  return by === 'day' && shownZone !== zone ? `${words}; days of UTC, because hours end earlier` : words
}

/** Notes about requests that the sums exclude or estimate. */
function Unpriced({ usage: { total } }: { readonly usage: UsageReply }) {
  const { unpricedRequests, estimatedRequests, assumedRequests } = total
  if (unpricedRequests + estimatedRequests + assumedRequests === 0) return null
  const unpriced = `Spend leaves out ${plural(unpricedRequests, 'request')} of unknown price. `
  const estimated = `Tokens of ${plural(estimatedRequests, 'request')} are estimated: the provider reported none. `
  const assumed = `${plural(assumedRequests, 'request')} whose end was not received count with the maximum that they may have used.`
  return (
    <p className="soft note-line">
      {unpricedRequests === 0 ? '' : unpriced}
      {estimatedRequests === 0 ? '' : estimated}
      {assumedRequests === 0 ? '' : assumed}
    </p>
  )
}

/** Filters by model and key. */
function useUsageFilters(): readonly ListFilter[] {
  const account = useScope()
  const models = useResource('/models').data?.models ?? []
  return [
    {
      name: 'model',
      label: 'Model',
      options: [
        ...models.map(({ id }) => ({ value: id, label: id })),
        { value: '(unknown)', label: 'unknown models' },
      ],
      isFree: true,
    },
    {
      name: 'key',
      label: 'Key',
      options: [{ value: 'playground', label: 'playground' }],
      find: async (search) => {
        const { keys } = await read('/keys', { account, state: 'all', search, limit: 20 })
        return keys.map(({ id, name, lastFour }) => ({ value: id, label: `${name} …${lastFour}` }))
      },
      isFree: true,
    },
  ]
}

interface SwitchProps {
  readonly group: string
  /** The names of the labels in use. */
  readonly labels: readonly string[]
  readonly dimensions: readonly string[]
}

function GroupSwitch({ group, labels, dimensions }: SwitchProps) {
  const choose = (value: string): void =>
    setFilter({ group: value === 'model' ? null : value, search: null, sort: null })
  const named = labels.map((name) => ({ value: `label:${name}`, label: `label ${name}` }))
  const below = dimensions.map((name) => ({ value: `dimension:${name}`, label: name }))
  const more = [...GROUPINGS, ...below, ...named]
  const isMore = group !== 'model' && group !== 'key'
  const isKnown = !isMore || more.some(({ value }) => value === group)
  const known = isKnown ? more : [{ value: group, label: nameOfGrouping(group) }, ...more]
  return (
    <>
      <span className="switch" role="group" aria-label="Group by">
        {(['model', 'key'] as const).map((one) => (
          <button key={one} type="button" aria-pressed={group === one} onClick={() => choose(one)}>
            by {one}
          </button>
        ))}
      </span>
      <Filter
        label="More groups"
        all="by …"
        value={isMore ? group : ''}
        options={known.map(({ value, label }) => ({ value, label: `by ${label}` }))}
        onChange={(value) => choose(value === '' ? 'model' : value)}
      />
    </>
  )
}

interface ChartsProps {
  readonly usage: UsageReply
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

/**
 * The five charts: requests, spend, tokens, errors, time to first token. Groups have the same colour in all
 * of them.
 */
function UsageCharts({ usage, colourOf, words }: ChartsProps) {
  const lookAt = useLookAt()
  const buckets = barsOf(usage)
  const lines = bucketsOf(usage)
  const { total, points } = usage
  const grouped = (pick: (point: UsagePoint) => number): Series[] =>
    usage.groups.map((group) => ({
      id: group.id,
      label: groupName(group),
      colour: colourOf(group.id),
      values: sumsOf(buckets, group.points, pick),
    }))
  const note = `${perText(buckets)}, ${words}`
  const bars = { buckets, note, kind: 'bars', onPick: lookAt } as const
  const { firstTokenP95Ms: p95 } = total
  return (
    <div className="charts">
      <Chart
        {...bars}
        title="Requests"
        figure={count(total.requests)}
        format={count}
        series={grouped(({ requests }) => requests)}
      />
      <Chart
        {...bars}
        title="Spend"
        figure={dollars(total.spendNanoUsd)}
        format={dollars}
        series={grouped(({ spendNanoUsd }) => spendNanoUsd)}
      />
      <Chart
        {...bars}
        title="Tokens"
        figure={count(total.inputTokens + total.outputTokens)}
        format={count}
        series={tokenSeries(buckets, points)}
      />
      <ErrorsChart usage={usage} words={words} />
      <Chart
        title="Time to first token"
        note={`${perText(lines)}, ${words}`}
        kind="lines"
        buckets={lines}
        onPick={lookAt}
        figure={p95 === null ? '–' : `p95 ${duration(p95)}`}
        format={duration}
        canLog
        series={speedSeries(lines, points)}
      />
    </div>
  )
}

/** Opens the requests of a clicked bar, with the filters of the view. */
function useLookAt(): ChartPick {
  const account = useScope()
  const { query } = useLocation()
  const [model, key] = [query.get('model'), query.get('key')]
  return (fromMs, toMs) => go(urlOf('/requests', { account, model, key, fromMs, toMs }))
}

function speedSeries(buckets: Buckets, points: readonly UsagePoint[]): Series[] {
  const of = (label: string, colour: Colour, pick: (one: UsagePoint) => number | null): Series => {
    return { id: label, label, colour, values: valuesOf(buckets, points, pick) }
  }
  return [
    of('p50', '--series-1', (one) => one.firstTokenP50Ms),
    of('p95', '--series-2', (one) => one.firstTokenP95Ms),
  ]
}

/** Four disjoint kinds: cached input is a part of input, reasoning a part of output. */
function tokenSeries(buckets: Buckets, points: readonly UsagePoint[]): Series[] {
  const kinds: readonly (readonly [string, Colour, (point: UsagePoint) => number])[] = [
    ['Input', '--series-1', (one) => Math.max(one.inputTokens - one.cachedTokens, 0)],
    ['Cached input', '--series-3', (one) => one.cachedTokens],
    ['Output', '--series-2', (one) => Math.max(one.outputTokens - one.reasoningTokens, 0)],
    ['Reasoning', '--series-4', (one) => one.reasoningTokens],
  ]
  return kinds.map(([label, colour, pick]) => {
    return { id: label, label, colour, values: sumsOf(buckets, points, pick) }
  })
}

interface UsageTableProps {
  readonly asked: Query
  readonly usage: UsageReply
  readonly group: string
  readonly colourOf: (id: string) => Colour
}

function columnsOf(usage: UsageReply, group: string, colourOf: (id: string) => Colour): Column<GroupRow>[] {
  const name = nameOfGrouping(group)
  const whole = usage.total.spendNanoUsd
  const isCharted = (id: string): boolean => usage.groups.some((each) => each.id === id)
  return [
    {
      id: 'name',
      head: name.charAt(0).toUpperCase() + name.slice(1),
      cell: ({ id, label, accountName }) => (
        <span className="cut strong" title={accountName === null ? label : `${label}, ${accountName}`}>
          <Swatch colour={isCharted(id) ? colourOf(id) : '--others'} /> {label}
          {accountName === null ? null : <span className="soft"> {accountName}</span>}
        </span>
      ),
      sort: 'name',
      text: true,
    },
    counts('requests', 'Requests', ({ requests }) => requests),
    counts('inputTokens', 'Input', ({ inputTokens }) => inputTokens, { minor: true }),
    counts('outputTokens', 'Output', ({ outputTokens }) => outputTokens, { minor: true }),
    {
      id: 'errors',
      head: 'Errors',
      cell: ({ requests, errors }) => (
        <span title={`${errors} of ${requests}`}>{percent(errors / Math.max(requests, 1))}</span>
      ),
      sort: 'errors',
      numeric: true,
      minor: true,
    },
    amounts('spend', 'Spend', ({ spendNanoUsd }) => spendNanoUsd, {
      cell: (row) => <Money nano={row.spendNanoUsd} unpriced={row.unpricedRequests} />,
    }),
    {
      id: 'share',
      head: 'Share',
      cell: ({ spendNanoUsd }) => percent(spendNanoUsd / Math.max(whole, 1)),
      numeric: true,
      extra: true,
    },
  ]
}

/** Groupings with a filter of the same name on the page Requests. */
const SAME_NAMES = ['model', 'key', 'upstream', 'program', 'user']

/** The filter of Requests that selects a group; null for one that Requests cannot select. */
function requestsFilter(group: string, { id }: GroupRow): Record<string, string> | null {
  if (id === '(none)') return null
  if (group === 'client_format') return { format: id }
  if (group.startsWith('label:')) return { label: `${group.slice('label:'.length)}=${id}` }
  if (group.startsWith('dimension:')) return { dimension: `${group.slice('dimension:'.length)}=${id}` }
  if (group === 'account') return { account: id }
  return SAME_NAMES.includes(group) ? { [group]: id } : null
}

/** All groups, as pages. A click shows the usage of the group. */
function UsageTable({ asked, usage, group, colourOf }: UsageTableProps) {
  const scope = useScope()
  const { query } = useLocation()
  const { fromMs, toMs } = usage
  const list = useList('/usage/groups', { ...asked, search: query.get('search') }, ({ rows }) => rows, {
    sortable: true,
    usualSort: '-spend',
  })
  const account = scope === null ? {} : { account: scope }
  const open = (row: GroupRow): void => {
    if (row.id === '(none)') return
    if (group === 'account') setFilter({ account: row.id, group: null, search: null })
    else if (group === 'model') setFilter({ model: row.id, group: 'key', search: null })
    else if (group === 'key') setFilter({ key: row.id, group: null, search: null })
    else if (group === 'dimension:run' && scope !== 'all') go(urlOf('/runs', { ...account, run: row.id }))
    else {
      const filter = requestsFilter(group, row)
      if (filter !== null) go(urlOf('/requests', { ...account, ...filter, fromMs, toMs }))
    }
  }
  return (
    <Block title={`By ${nameOfGrouping(group)}`} note="all of them; a click shows one">
      <DataTable
        caption={`Usage by ${nameOfGrouping(group)}`}
        columns={columnsOf(usage, group, colourOf)}
        list={list}
        unit="group"
        keyOf={({ id, accountId }) => `${id} ${accountId ?? ''}`}
        open={open}
        empty={<Empty title="Nothing matches">Change the search or the filters.</Empty>}
        actions={(row) => {
          const filter = requestsFilter(group, row)
          return filter === null ? null : (
            <IconButton
              icon="requests"
              label={`Requests of ${row.label}`}
              onClick={() => go(urlOf('/requests', { ...account, ...filter, fromMs, toMs }))}
            />
          )
        }}
      />
    </Block>
  )
}
