/** Usage: charts over time, and sums per model and key. */
import type { UsageReply, UsagePoint, UsageGroup } from '../../server/schema/schema.js'
import { urlOf } from '../api/client.js'
import { useLive, useOnTraffic, useResource } from '../api/cache.js'
import { Button, IconButton } from '../components/button.js'
import {
  coloursOf,
  Chart,
  Swatch,
  type ChartPick,
  type Series,
  type Colour,
} from '../components/chart.js'
import { Filter } from '../components/form.js'
import { FirstCall } from '../components/request-code.js'
import { Pulse, Loaded } from '../components/states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent, Count, Money } from '../components/values.js'
import { RangePicker, useRange } from '../components/time-range.js'
import { csvOf, saveFile } from '../format/csv.js'
import { plural, count, dollars, duration, percent } from '../format/number.js'
import {
  barsOf,
  bucketsOf,
  perText,
  sumsOf,
  valuesOf,
  type Buckets,
} from '../format/time-buckets.js'
import { Link, setQuery, useLocation, go } from '../routing.js'
import { Page, Block } from '../shell/page.js'
import { useScope, withScope } from '../shell/session.js'
import { ErrorsChart } from './errors-chart.js'

/** The page of usage. */
export function UsagePage() {
  const scope = useScope()
  const { query } = useLocation()
  const range = useRange('24h')
  const { by, fromMs, toMs } = range
  const group = query.get('group') === 'key' ? 'key' : 'model'
  const [model, keyId] = [query.get('model') ?? '', query.get('key') ?? '']
  const asked = { account: scope, by, fromMs, toMs, group, keyId, model }
  const resource = useResource('/usage', asked)
  const { data } = resource
  useOnTraffic(useLive(scope, range.isLive), () => resource.reload())
  const colourOf = coloursOf((data?.groups ?? []).map(({ id }) => id))
  return (
    <Page
      title="Usage"
      purpose="Requests, tokens, spend, errors and latency over time."
      scoped
      action={
        <Button icon="file" disabled={data === null} onClick={() => data && saveUsage(data)}>
          Save CSV
        </Button>
      }
      filters={
        <>
          <RangePicker range={range} withUnit />
          <UsageFilters model={model} keyId={keyId} />
          <GroupSwitch group={group} />
          <Link to={withScope('/statement', scope)} className="soft">
            Monthly statement
          </Link>
          <Pulse on={range.isLive} />
        </>
      }
    >
      <Loaded resource={resource} what="Usage" holds="Requests are still counted.">
        {(data) =>
          data.total.requests === 0 ? (
            <FirstCall what="Charts of requests, tokens, spend, errors and time to first token." />
          ) : (
            <div className={resource.stale ? 'stale' : undefined}>
              <Unpriced usage={data} />
              <UsageCharts usage={data} colourOf={colourOf} words={range.words} />
              <UsageTable usage={data} group={group} colourOf={colourOf} words={range.words} />
            </div>
          )
        }
      </Loaded>
    </Page>
  )
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

interface FiltersProps {
  readonly model: string
  readonly keyId: string
}

/** Filters by model and key. They are kept in the address. */
export function UsageFilters({ model, keyId }: FiltersProps) {
  const scope = useScope()
  const models = useResource('/models').data?.models ?? []
  const asked = { account: scope, state: 'all', limit: 500 }
  // Keys can be listed for one account only.
  const keys = useResource('/keys', asked, { enabled: scope !== 'all' }).data?.keys ?? []
  return (
    <>
      <Filter
        label="Model"
        all="All models"
        value={model}
        options={models.map(({ id }) => ({ value: id, label: id }))}
        onChange={(value) => setQuery({ model: value })}
      />
      <Filter
        label="Key"
        all="All keys"
        value={keyId}
        options={[
          ...keys.map(({ id, name, lastFour }) => ({ value: id, label: `${name} …${lastFour}` })),
          { value: 'playground', label: 'playground' },
        ]}
        onChange={(value) => setQuery({ key: value })}
      />
    </>
  )
}

function GroupSwitch({ group }: { readonly group: 'model' | 'key' }) {
  return (
    <span className="switch" role="group" aria-label="Group by">
      {(['model', 'key'] as const).map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={group === one}
          onClick={() => setQuery({ group: one === 'model' ? null : one })}
        >
          by {one}
        </button>
      ))}
    </span>
  )
}

const NANO = 1e9

function saveUsage({ by, groups, points }: UsageReply): void {
  const sets = [{ label: 'all', points }, ...groups]
  const lines = sets.flatMap((set) =>
    set.points.map((point) => [
      new Date(point.startMs).toISOString(),
      set.label,
      point.requests,
      point.errors,
      point.inputTokens,
      point.cachedTokens,
      point.outputTokens,
      point.reasoningTokens,
      point.spendNanoUsd / NANO,
      point.firstTokenP50Ms,
      point.firstTokenP95Ms,
    ]),
  )
  const head = `${by},of,requests,errors,input_tokens,cached_tokens,output_tokens,reasoning_tokens,spend_usd,first_token_p50_ms,first_token_p95_ms`
  saveFile('usage.csv', csvOf([head.split(','), ...lines]))
}

interface ChartsProps {
  readonly usage: UsageReply
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

/**
 * Requests, spend, tokens, errors, time to first token.
 *
 * The five charts of usage. Groups have the same colour in all of them.
 */
function UsageCharts({ usage, colourOf, words }: ChartsProps) {
  const lookAt = useLookAt()
  const buckets = barsOf(usage)
  const lines = bucketsOf(usage)
  const { total, points } = usage
  const grouped = (pick: (point: UsagePoint) => number): Series[] =>
    usage.groups.map((group) => ({
      id: group.id,
      label: group.label,
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
    ['Cached input', '--series-8', (one) => one.cachedTokens],
    ['Output', '--series-2', (one) => Math.max(one.outputTokens - one.reasoningTokens, 0)],
    ['Reasoning', '--series-4', (one) => one.reasoningTokens],
  ]
  return kinds.map(([label, colour, pick]) => {
    return { id: label, label, colour, values: sumsOf(buckets, points, pick) }
  })
}

interface UsageTableProps {
  readonly usage: UsageReply
  readonly group: 'model' | 'key'
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

function columnsOf(group: string, colourOf: (id: string) => Colour): Column<UsageGroup>[] {
  return [
    {
      id: 'group',
      head: group === 'model' ? 'Model' : 'Key',
      cell: ({ id, label }) => (
        <span className="cell-name">
          <Swatch colour={colourOf(id)} /> {label}
        </span>
      ),
      value: ({ label }) => label,
      text: true,
    },
    number('Requests', ({ total }) => total.requests),
    number('Input', ({ total }) => total.inputTokens, true),
    number('Cached', ({ total }) => total.cachedTokens, true),
    number('Output', ({ total }) => total.outputTokens, true),
    number('Reasoning', ({ total }) => total.reasoningTokens, true),
    {
      id: 'errors',
      head: 'Errors',
      cell: ({ total }) => (
        <span title={`${total.errors} of ${total.requests}`}>
          {percent(total.errors / Math.max(total.requests, 1))}
        </span>
      ),
      value: ({ total }) => total.errors / Math.max(total.requests, 1),
      numeric: true,
      minor: true,
    },
    {
      id: 'first',
      head: 'First token p95',
      cell: ({ total: { firstTokenP95Ms: ms } }) => (ms === null ? <Absent /> : duration(ms)),
      value: ({ total }) => total.firstTokenP95Ms ?? 0,
      numeric: true,
      minor: true,
    },
    {
      id: 'spend',
      head: 'Spend',
      cell: ({ total }) => <Money nano={total.spendNanoUsd} unpriced={total.unpricedRequests} />,
      value: ({ total }) => total.spendNanoUsd,
      numeric: true,
    },
  ]
}

function number(
  head: string,
  pick: (group: UsageGroup) => number,
  minor = false,
): Column<UsageGroup> {
  return {
    id: head,
    head,
    cell: (group) => <Count value={pick(group)} />,
    value: pick,
    numeric: true,
    minor,
  }
}

/**
 * A table of models or keys.
 *
 * The sums per model or key. A click filters the view by it.
 */
function UsageTable({ usage, group, colourOf, words }: UsageTableProps) {
  const scope = useScope()
  const { fromMs, toMs } = usage
  return (
    <Block title={group === 'model' ? 'By model' : 'By key'} note={words}>
      <DataTable
        caption={`Usage by ${group}`}
        columns={columnsOf(group, colourOf)}
        rows={usage.groups}
        keyOf={({ id }) => id}
        open={({ id }) => (id === 'other' ? undefined : setQuery({ [group]: id }))}
        actions={({ id, label }) =>
          id === 'other' ? null : (
            <IconButton
              icon="requests"
              label={`Requests of ${label}`}
              onClick={() =>
                go(withScope(`/requests?${group}=${id}&fromMs=${fromMs}&toMs=${toMs}`, scope))
              }
            />
          )
        }
      />
    </Block>
  )
}
