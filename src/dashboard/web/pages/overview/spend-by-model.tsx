/** The chart of the last month's spend by model. */
import type { UsageReply } from '../../../server/schema/schema.js'
import type { Resource } from '../../api/load-resource.js'
import { bucketsOf, perText, sumsOf } from '../../format/time-buckets.js'
import { dollars } from '../../format/number.js'
import { coloursOf } from '../../components/charts/colours.js'
import { Chart } from '../../components/charts/chart.js'
import { BlockSkeleton, Failed } from '../../components/states/states.js'

/** Nothing if there was no request. */
export function SpendByModel({ month }: { readonly month: Resource<UsageReply> }) {
  const { data, problem, reload } = month
  const colourOf = coloursOf((data?.groups ?? []).map(({ id }) => id))
  if (problem !== null && data === null) {
    return <Failed what="Spend by model" problem={problem} retry={() => reload()} />
  }
  if (data === null) return <BlockSkeleton />
  if (data.total.requests === 0) return null
  const buckets = bucketsOf(data)
  return (
    <Chart
      title="Spend by model"
      note={`${perText(buckets)}, last 30 d`}
      figure={dollars(data.total.spendNanoUsd)}
      kind="area"
      buckets={buckets}
      format={dollars}
      series={data.groups.map(({ id, label, points }) => ({
        id,
        label,
        colour: colourOf(id),
        values: sumsOf(buckets, points, ({ spendNanoUsd }) => spendNanoUsd),
      }))}
    />
  )
}
