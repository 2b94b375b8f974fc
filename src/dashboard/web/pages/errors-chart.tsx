/** Failed requests by cause. A click opens these requests. */
import type { UsageReply } from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { barsOf, perText, sumsOf } from '../format/time-buckets.js'
import { CAUSE_NAMES, CAUSES } from '../format/failure-texts.js'
import { count, exactCount, percent } from '../format/number.js'
import { Chart } from '../components/chart.js'
import type { ChartMark, ChartZoom, Colour, Series } from '../components/chart-series.js'
import { go, useLocation } from '../routing.js'
import { useScope } from '../shell/session.js'

const COLOURS: Readonly<Record<(typeof CAUSES)[number], Colour>> = {
  client: '--series-7',
  limits: '--series-5',
  gateway: '--series-4',
  provider: '--bad',
}
/** The series of failures without a recorded cause, from earlier versions of the gateway. */
const OLD = 'not recorded'

interface ErrorsChartProps {
  readonly usage: UsageReply
  /** The time range as a text. */
  readonly words: string
  readonly onZoom?: ChartZoom
  readonly marks?: readonly ChartMark[]
}

/** Stacked bars of the causes over time. */
export function ErrorsChart({ usage, words, ...more }: ErrorsChartProps) {
  const account = useScope()
  const { query } = useLocation()
  const [model, key] = [query.get('model'), query.get('key')]
  const buckets = barsOf(usage)
  const { total, points, fromMs, toMs } = usage
  const requestsOf = (cause: string | null, span: { fromMs: number; toMs: number }): string => {
    const isCause = CAUSES.some((each) => each === cause)
    return urlOf('/requests', {
      ...{ account, model, key, outcome: 'failed', cause: isCause ? cause : null },
      ...{ from: span.fromMs, to: span.toMs },
    })
  }
  return (
    <Chart
      {...more}
      title="Failed requests"
      figure={
        <span title={`${exactCount(total.failed)} of ${exactCount(total.requests)} requests`}>
          {percent(total.failed / Math.max(total.requests, 1))}
        </span>
      }
      note={`by cause, ${perText(buckets)}, ${words}`}
      kind="bars"
      buckets={buckets}
      format={count}
      onPick={(from, to, cause) => go(requestsOf(cause, { fromMs: from, toMs: to }))}
      seriesLink={(cause) => requestsOf(cause, { fromMs, toMs })}
      series={seriesOf(usage, (pick) => sumsOf(buckets, points, pick))}
    />
  )
}

type Points = UsageReply['points'][number]

function seriesOf({ total }: UsageReply, values: (pick: (point: Points) => number) => number[]): Series[] {
  const series = CAUSES.map((cause): Series => {
    const colour = COLOURS[cause]
    return {
      id: cause,
      label: CAUSE_NAMES[cause],
      colour,
      values: values((one) => one.byCause[cause]),
    }
  })
  const others = ({ failed, byCause }: Pick<Points, 'failed' | 'byCause'>): number =>
    Math.max(0, failed - CAUSES.reduce((sum, cause) => sum + byCause[cause], 0))
  if (others(total) === 0) return series
  return [...series, { id: OLD, label: 'Cause not recorded', colour: '--soft', values: values(others) }]
}
