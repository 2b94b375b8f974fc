/** The five charts of usage. Groups have the same colour in all of them. */
import type { UsagePoint, UsageReply } from '../../../server/schema/schema.js'
import { urlOf } from '../../api/client.js'
import {
  barsOf,
  bucketsOf,
  perText,
  sumsOf,
  valuesOf,
  type Buckets,
} from '../../format/time-buckets.js'
import { count, dollars, duration } from '../../format/number.js'
import { Chart, type Pick, type Series } from '../../components/charts/chart.js'
import type { Colour } from '../../components/charts/colours.js'
import { go, useLocation } from '../../routing/location.js'
import { useScope } from '../../shell/shown-account.js'
import { ErrorsChart } from './errors-chart.js'

interface ChartsProps {
  readonly usage: UsageReply
  readonly colourOf: (id: string) => Colour
  readonly words: string
}

/** Requests, spend, tokens, errors, time to first token. */
export function UsageCharts({ usage, colourOf, words }: ChartsProps) {
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
function useLookAt(): Pick {
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
