/** The five charts of usage; groups keep their colour through all of them. */
import type { UsagePoint, UsageReply } from '../../../server/schema/schema.js'
import { urlOf } from '../../api/client.js'
import { bucketsOf, valuesOf, type Buckets } from '../../format/buckets.js'
import { count, dollars, duration, percent } from '../../format/number.js'
import { Chart, type Series } from '../../parts/charts/chart.js'
import type { Colour } from '../../parts/charts/colours.js'
import { go, usePlace } from '../../routing/place.js'
import { useScope } from '../../shell/scope.js'

interface ChartsProps {
  readonly usage: UsageReply
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

/** Requests, spend, tokens, errors, time to first token. */
export function UsageCharts({ usage, colourOf, words }: ChartsProps) {
  const lookAt = useLookAt()
  const buckets = bucketsOf(usage)
  const { total, points } = usage
  const grouped = (pick: (point: UsagePoint) => number): Series[] =>
    usage.groups.map((group) => ({
      id: group.id,
      label: group.label,
      colour: colourOf(group.id),
      values: valuesOf(buckets, group.points, pick, 0),
    }))
  const note = `per ${usage.by}${usage.by === 'day' ? ' (UTC)' : ''}, ${words}`
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
      <Chart
        {...bars}
        title="Errors"
        figure={percent(total.errors / Math.max(total.requests, 1))}
        format={count}
        onPick={(fromMs, toMs) => lookAt(fromMs, toMs, 'failed')}
        series={[seriesOf(buckets, points, 'Errors', '--bad', ({ errors }) => errors, 0)]}
      />
      <Chart
        {...bars}
        kind="lines"
        title="Time to first token"
        figure={p95 === null ? '–' : `p95 ${duration(p95)}`}
        format={duration}
        canLog
        series={speedSeries(buckets, points)}
      />
    </div>
  )
}

/** Leads from a spike to the requests that made it, under the filters of the view. */
function useLookAt(): (fromMs: number, toMs: number, outcome?: string) => void {
  const account = useScope()
  const { query } = usePlace()
  const [model, key] = [query.get('model'), query.get('key')]
  return (fromMs, toMs, outcome = '') =>
    go(urlOf('/requests', { account, model, key, outcome, fromMs, toMs }))
}

function seriesOf(
  buckets: Buckets,
  points: readonly UsagePoint[],
  label: string,
  colour: Colour,
  pick: (point: UsagePoint) => number | null,
  missing: 0 | null,
): Series {
  return { id: label, label, colour, values: valuesOf(buckets, points, pick, missing) }
}

function speedSeries(buckets: Buckets, points: readonly UsagePoint[]): Series[] {
  const p50 = (one: UsagePoint): number | null => one.firstTokenP50Ms
  const p95 = (one: UsagePoint): number | null => one.firstTokenP95Ms
  return [
    seriesOf(buckets, points, 'p50: half are faster', '--series-1', p50, null),
    seriesOf(buckets, points, 'p95: 95 of 100 are faster', '--series-2', p95, null),
  ]
}

/** Four kinds that add up: cached is a part of input, reasoning a part of output. */
function tokenSeries(buckets: Buckets, points: readonly UsagePoint[]): Series[] {
  const kinds: readonly (readonly [string, Colour, (point: UsagePoint) => number])[] = [
    ['Input', '--series-1', (one) => Math.max(one.inputTokens - one.cachedTokens, 0)],
    ['Cached input', '--series-8', (one) => one.cachedTokens],
    ['Output', '--series-2', (one) => Math.max(one.outputTokens - one.reasoningTokens, 0)],
    ['Reasoning', '--series-4', (one) => one.reasoningTokens],
  ]
  return kinds.map(([label, colour, pick]) => seriesOf(buckets, points, label, colour, pick, 0))
}
