/** The overview: first steps, figures, limits and budgets, errors, spend by model, the latest requests. */
import { lazy, Suspense } from 'react'
import type { Figures, UsagePoint, UsageReply } from '../../server/schema/schema.js'
import { useLive, useOnTraffic, useResource } from '../api/use-resource.js'
import { coloursOf, Chart, groupName } from '../components/chart.js'
import { Limits, useLimits } from '../components/limits.js'
import { FirstCall } from '../components/request-code.js'
import { Loaded, Pulse, TableSkeleton } from '../components/loading-states.js'
import { RangePicker, useRange } from '../components/time-range.js'
import { count, dollars, duration, exactCount, exactDollars, percent } from '../format/number.js'
import { barsOf, bucketsOf, sumsOf, valuesOf, perText } from '../format/time-buckets.js'
import { Link } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useScope, withScope } from '../shell/session.js'
import { OpenedRequest, RequestTable } from './request-table.js'
import { ErrorsChart } from './errors-chart.js'

const LATEST = 10

const Checklist = lazy(() => import('./checklist.js').then((module) => ({ default: module.Checklist })))

export function OverviewPage() {
  const scope = useScope()
  const range = useRange('24h')
  const usage = useResource('/usage', { account: scope, ...range.query }, { everyMs: range.everyMs })
  const month = useResource('/usage', { account: scope, range: '30d', by: 'day', group: 'model' })
  const limits = useLimits(scope)
  const live = useLive(scope, true)
  useOnTraffic(live, () => {
    usage.reload()
    month.reload()
  })
  return (
    <Page
      title="Overview"
      purpose={`Traffic, spend and errors, ${range.words}.`}
      scoped
      filters={
        <>
          <RangePicker range={range} />
          <Pulse on={range.isLive} of={[usage, live]} />
        </>
      }
    >
      <Suspense fallback={null}>
        <Checklist />
      </Suspense>
      <Loaded resource={usage} what="The figures">
        {(data) => <Cards data={data} />}
      </Loaded>
      <Limits limits={limits} />
      {usage.data === null || usage.data.total.errors === 0 ? null : (
        <ErrorsChart usage={usage.data} words={range.words} />
      )}
      <Loaded resource={month} what="Spend by model">
        {(data) => <SpendByModel month={data} />}
      </Loaded>
      <Block
        title="Latest requests"
        action={<Link to={withScope('/requests', scope)}>See all requests</Link>}
      >
        <Loaded
          resource={live}
          what="The latest requests"
          unaffected="Requests are still served and recorded."
          skeleton={<TableSkeleton rows={LATEST} />}
        >
          {({ rows }) =>
            rows.length === 0 ? (
              <FirstCall what="Each request with its model, tokens, cost and timing." />
            ) : (
              <RequestTable rows={rows.slice(0, LATEST)} />
            )
          }
        </Loaded>
      </Block>
      <OpenedRequest />
    </Page>
  )
}

interface Card {
  readonly name: string
  readonly text: (figures: Figures) => string
  readonly exact: (figures: Figures) => string
  readonly pick: (point: UsagePoint) => number | null
  /** A quantile, which cannot be summed. */
  readonly isQuantile?: true
}

const CARDS: readonly Card[] = [
  {
    name: 'Requests',
    text: ({ requests }) => count(requests),
    exact: ({ requests }) => `${exactCount(requests)} requests`,
    pick: ({ requests }) => requests,
  },
  {
    name: 'Spend',
    text: ({ spendNanoUsd, unpricedRequests }) => dollars(spendNanoUsd) + (unpricedRequests === 0 ? '' : '+'),
    exact: ({ spendNanoUsd }) => exactDollars(spendNanoUsd),
    pick: ({ spendNanoUsd }) => spendNanoUsd,
  },
  {
    name: 'Tokens',
    text: ({ inputTokens, outputTokens }) => count(inputTokens + outputTokens),
    exact: ({ inputTokens, outputTokens }) =>
      `${exactCount(inputTokens)} in, ${exactCount(outputTokens)} out`,
    pick: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  },
  {
    name: 'Errors',
    text: ({ errors, requests }) => percent(requests === 0 ? 0 : errors / requests),
    exact: ({ errors, requests }) => `${exactCount(errors)} of ${exactCount(requests)} requests`,
    pick: ({ errors }) => errors,
  },
  {
    name: 'First token p95',
    text: ({ firstTokenP95Ms }) => (firstTokenP95Ms === null ? '–' : duration(firstTokenP95Ms)),
    exact: ({ firstTokenP50Ms, firstTokenP95Ms }) =>
      firstTokenP95Ms === null
        ? 'No request had content'
        : `p50 ${duration(firstTokenP50Ms ?? 0)}, p95 ${duration(firstTokenP95Ms)}`,
    pick: ({ firstTokenP95Ms }) => firstTokenP95Ms,
    isQuantile: true,
  },
]

function Cards({ data }: { readonly data: UsageReply }) {
  const [bars, buckets] = [barsOf(data), bucketsOf(data)]
  return (
    <dl className="cards panel">
      {CARDS.map(({ name, text, exact, pick, isQuantile }) => (
        <div key={name} className="card">
          <dt className="note">{name}</dt>
          <dd title={exact(data.total)}>{text(data.total)}</dd>
          <Spark
            values={
              isQuantile === true
                ? valuesOf(buckets, data.points, pick)
                : sumsOf(bars, data.points, (point) => pick(point) ?? 0)
            }
          />
        </div>
      ))}
    </dl>
  )
}

/** Nothing if there was no request. */
function SpendByModel({ month: data }: { readonly month: UsageReply }) {
  const colourOf = coloursOf(data.groups.map(({ id }) => id))
  if (data.total.requests === 0) return null
  const buckets = bucketsOf(data)
  return (
    <Chart
      title="Spend by model"
      note={`${perText(buckets)}, last 30 d`}
      figure={dollars(data.total.spendNanoUsd)}
      kind="bars"
      buckets={buckets}
      format={dollars}
      series={data.groups.map((group) => ({
        id: group.id,
        label: groupName(group),
        colour: colourOf(group.id),
        values: sumsOf(buckets, group.points, ({ spendNanoUsd }) => spendNanoUsd),
      }))}
    />
  )
}

const WIDTH = 120
const HEIGHT = 28

/** Starts at zero; gaps stay gaps. */
function Spark({ values }: { readonly values: readonly (number | null)[] }) {
  const top = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE)
  const step = WIDTH / Math.max(values.length - 1, 1)
  let path = ''
  let pen = false
  values.forEach((value, index) => {
    if (value === null) {
      pen = false
      return
    }
    const y = HEIGHT - 1 - (value / top) * (HEIGHT - 3)
    path += `${pen ? 'L' : 'M'}${(index * step).toFixed(1)} ${y.toFixed(1)}`
    pen = true
  })
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}
