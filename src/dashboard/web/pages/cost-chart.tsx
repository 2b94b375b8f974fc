/** The cost of some days by group, as bars. */
import type { UsageReply } from '../../../control/dashboard/schema/schema.js'
import { Chart, groupSeries } from '../components/chart.js'
import { dollars } from '../format/number.js'
import { bucketsOf, perText } from '../format/time-buckets.js'

/** The chart of the last 30 days; nothing without requests. */
export function CostChart({ title, usage }: { readonly title: string; readonly usage: UsageReply }) {
  if (usage.total.requests === 0) return null
  const buckets = bucketsOf(usage)
  return (
    <Chart
      title={title}
      note={`${perText(buckets)}, last 30 d`}
      figure={dollars(usage.total.costNanoUsd)}
      kind="bars"
      buckets={buckets}
      format={dollars}
      series={groupSeries(usage, buckets, ({ costNanoUsd }) => costNanoUsd)}
    />
  )
}
