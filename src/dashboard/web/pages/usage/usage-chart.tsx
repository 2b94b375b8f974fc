/** The large chart of Usage: the chosen figure over time, by group where that adds up. */
import type { AuditReply, UsagePoint, UsageReply } from '../../../../control/dashboard/schema/schema.js'
import { urlOf } from '../../api/client.js'
import { useResource } from '../../api/use-resource.js'
import { Chart, groupSeries } from '../../components/chart.js'
import type { ChartMark, ChartPick, ChartZoom, Colour, Series } from '../../components/chart-series.js'
import { count, dollars, duration } from '../../format/number.js'
import { barsOf, bucketsOf, perText, sumsOf, valuesOf, type Buckets } from '../../format/time-buckets.js'
import { HOUR_MS } from '../../format/time.js'
import { go, useLocation } from '../../routing.js'
import { useRights, useScope } from '../../shell/session.js'
import { ErrorsChart } from '../errors-chart.js'
import type { FigureName } from '../figure-cards.js'

interface ChartProps {
  readonly usage: UsageReply
  readonly figure: FigureName
  /** The grouping in words. */
  readonly by: string
  /** The range in words. */
  readonly words: string
  readonly onZoom: ChartZoom
}

/** The chart with the marks of changes; dragging over it zooms, a click opens the requests of a bar. */
export function UsageChart({ usage, figure, by, words, onZoom }: ChartProps) {
  const onPick = useLookAt()
  const marks = useMarks(usage)
  const [bars, lines] = [barsOf(usage), bucketsOf(usage)]
  const grouped = (pick: (point: UsagePoint) => number): Series[] =>
    usage.groups.length === 0
      ? [{ id: 'all', label: 'all', colour: '--series-1', values: sumsOf(bars, usage.points, pick) }]
      : groupSeries(usage, bars, pick)
  const shared = { marks, onZoom, onPick }
  const sums = { ...shared, buckets: bars, note: `${perText(bars)}, ${words}`, kind: 'bars' } as const
  if (figure === 'failed') return <ErrorsChart {...{ usage, words, marks, onZoom }} />
  if (figure === 'first-token') {
    return (
      <Chart
        {...shared}
        title="Time to first token"
        note={`${perText(lines)}, ${words}`}
        kind="lines"
        buckets={lines}
        format={duration}
        canLog
        series={speedSeries(lines, usage.points)}
      />
    )
  }
  if (figure === 'tokens') {
    return <Chart {...sums} title="Tokens" format={count} series={tokenSeries(bars, usage.points)} />
  }
  if (figure === 'requests') {
    const series = grouped(({ requests }) => requests)
    return <Chart {...sums} title={`Requests by ${by}`} format={count} series={series} />
  }
  const series = grouped(({ costNanoUsd }) => costNanoUsd)
  return <Chart {...sums} title={`Cost by ${by}`} format={dollars} series={series} />
}

/** Marks of more changes would cover the axis. */
const MOST_MARKS = 30
/** Changes of accounts, and of keys, among which those of budgets are looked for. */
const MOST_CHANGES = 200
/** Paths of budgets in changes of accounts and keys. */
const BUDGET = /(?:^|\.)usd_/

/** The generations of the configuration, and changes of budgets, in the range, for those who may see them. */
function useMarks({ fromMs, toMs }: UsageReply): readonly ChartMark[] {
  const { readsGateway } = useRights()
  const { data } = useResource('/configuration', {}, { enabled: readsGateway })
  const changes = [...useChanges('account.', fromMs), ...useChanges('key.', fromMs)]
  const generations = (data?.generations ?? [])
    .filter(({ origin }) => origin !== 'start')
    .map(({ atMs, generation, author }) => ({ atMs, text: `generation ${generation}, ${author}` }))
  const budgets = changes.flatMap((entry) => {
    const changed = entry.changes.filter(({ path }) => BUDGET.test(path))
    const values = changed.map(({ before, after }) => `${before ?? 'none'} → ${after ?? 'none'}`)
    // The detail of a change of a key begins with its name.
    const name = entry.action.startsWith('key.') ? entry.detail.split('; ')[0] : entry.accountName
    const text = `budget of ${name ?? entry.detail}: ${values.join(', ')}, ${entry.actor}`
    return changed.length === 0 ? [] : [{ atMs: entry.atMs, text }]
  })
  return [...generations, ...budgets]
    .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
    .sort((a, b) => b.atMs - a.atMs)
    .slice(0, MOST_MARKS)
}

/** The latest changes since a time whose actions begin so. */
function useChanges(action: string, fromMs: number): AuditReply['entries'] {
  const account = useScope()
  const { readsMembers } = useRights()
  // Whole hours: the query of a range that ends now stays the same for an hour.
  const since = Math.floor(fromMs / HOUR_MS) * HOUR_MS
  const query = { account, action, fromMs: since, limit: MOST_CHANGES }
  return useResource('/audit', query, { enabled: readsMembers }).data?.entries ?? []
}

/** Opens the requests of a clicked bar, with the filters of the view. */
function useLookAt(): ChartPick {
  const account = useScope()
  const { query } = useLocation()
  const [model, key, member] = [query.get('model'), query.get('key'), query.get('member')]
  return (fromMs, toMs) => go(urlOf('/requests', { account, model, key, member, from: fromMs, to: toMs }))
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
