/** Comparison of upstreams, canaries and shadows, for administrators. */
import type { CanaryView, ProvidersReply, ProviderSide } from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { IconButton } from '../components/button.js'
import { Chart, coloursOf } from '../components/chart.js'
import { duration, percent } from '../format/number.js'
import { RangePicker } from '../components/range-picker.js'
import { useRange } from '../components/time-range.js'
import { bucketsOf, perText, valuesOf } from '../format/time-buckets.js'
import { Loaded } from '../components/loading-states.js'
import { amounts, counts, durations, names } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent, Ago, Name, TwoLines } from '../components/values.js'
import { go } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { idOfModel, SideBySide, tickColumn, useCompared, type ModelRow } from './compare-models.js'

export function ProvidersPage() {
  const range = useRange('1h')
  const compared = useCompared()
  const resource = useResource(
    '/providers',
    { ...range.query, compare: compared.join(',') },
    // Another tick changes no figure of the tables.
    { everyMs: range.everyMs, partOf: urlOf('/providers', range.query) },
  )
  return (
    <Page
      title="Providers"
      purpose="Upstreams compared: failures, time to first token, tokens and cost."
      filters={<RangePicker range={range} />}
    >
      <Loaded resource={resource} what="The comparison" unaffected="Requests are still recorded.">
        {(data) => (
          <>
            <SideBySide data={data} />
            <FirstToken data={data} />
            <Block title="Upstreams" note={<Since fromMs={data.fromMs} />}>
              <DataTable
                caption="Upstreams"
                columns={[NAME, ...FIGURES]}
                rows={data.upstreams}
                keyOf={({ upstream }) => upstream}
                usualSort="-requests"
              />
            </Block>
            <Block title="By model" note="tick two or more to see them side by side">
              <DataTable
                caption="Upstreams by model"
                name="model."
                columns={[MODEL, ...MODEL_FIGURES, tickColumn(compared)]}
                rows={data.upstreams.flatMap(({ models }) => models)}
                keyOf={idOfModel}
                usualSort="model"
                actions={(row) => <ModelActions row={row} />}
              />
            </Block>
            <Canaries canaries={data.canaries} />
            <Block title="Shadows" note="the same requests, as clients got them and as copies">
              {data.shadows.length === 0 ? (
                <p className="soft">
                  No copied requests. Give a route <code>shadow</code> to copy some to another upstream.
                </p>
              ) : (
                <DataTable
                  caption="Shadows"
                  columns={[PART, ...FIGURES]}
                  rows={data.shadows.flatMap(({ primary, shadow }) => [
                    { ...primary, part: 'client' },
                    { ...shadow, part: 'copy' },
                  ])}
                  keyOf={({ upstream, part }) => `${upstream} ${part}`}
                />
              )}
            </Block>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Since({ fromMs }: { readonly fromMs: number }) {
  return (
    <>
      all requests since <Ago ms={fromMs} />
    </>
  )
}

function Canaries({ canaries }: { readonly canaries: readonly CanaryView[] | null }) {
  return (
    <Block title="Canaries" note="targets with abort, all workers together">
      {canaries === null ? (
        <p className="soft">Unknown: the process that reads the configuration does not respond.</p>
      ) : canaries.length === 0 ? (
        <p className="soft">
          None. Give a target <code>abort</code> to take it out of use when it fails too often.
        </p>
      ) : (
        <DataTable caption="Canaries" columns={CANARY} rows={canaries} keyOf={({ id }) => id} />
      )}
    </Block>
  )
}

function CanaryStatus({ canary }: { readonly canary: CanaryView }) {
  const { abortedAtMs, attempts, minRequests, weight } = canary
  if (abortedAtMs !== null) {
    return (
      <span className="status bad">
        aborted <Ago ms={abortedAtMs} />
      </span>
    )
  }
  if (weight === 0) return <span className="soft">weight 0</span>
  if (attempts < minRequests) {
    return (
      <span className="status warn">
        {attempts} of {minRequests} requests
      </span>
    )
  }
  return <span className="status good">in use</span>
}

const CANARY: readonly Column<CanaryView>[] = [
  {
    id: 'name',
    head: 'Canary',
    cell: ({ upstream, model }) => (
      <span className="strong">{model === null ? upstream : `${upstream}, ${model}`}</span>
    ),
    text: true,
  },
  { id: 'route', head: 'Route', cell: ({ route }) => <code>{route}</code>, extra: true },
  { id: 'state', head: 'State', cell: (canary) => <CanaryStatus canary={canary} /> },
  {
    id: 'share',
    head: 'Share',
    cell: (one) => percent(one.abortedAtMs === null ? one.percent / 100 : 0),
    numeric: true,
  },
  {
    id: 'failures',
    head: 'Failed',
    cell: ({ attempts, failures }) => `${failures} of ${attempts}`,
    numeric: true,
  },
  {
    id: 'limit',
    head: 'Aborted from',
    cell: ({ errorRate }) => percent(errorRate),
    numeric: true,
    minor: true,
  },
]

/** The time to first token of each upstream. */
function FirstToken({ data }: { readonly data: ProvidersReply }) {
  const used = data.upstreams.filter(({ points }) => points.length > 0)
  if (used.length === 0) return null
  const buckets = bucketsOf(data)
  const colourOf = coloursOf(used.map(({ upstream }) => upstream))
  const series = used.map(({ upstream, points }) => {
    const values = valuesOf(buckets, points, ({ firstTokenP95Ms }) => firstTokenP95Ms)
    return { id: upstream, label: upstream, colour: colourOf(upstream), values }
  })
  return (
    <Chart
      title="Time to first token, p95"
      note={perText(buckets)}
      kind="lines"
      buckets={buckets}
      format={duration}
      canLog
      series={series}
    />
  )
}

/** Who uses the model, and its failures at the upstream. */
function ModelActions({ row: { model, upstream, failures } }: { readonly row: ModelRow }) {
  const account = 'all'
  return (
    <>
      <IconButton
        icon="usage"
        label={`Who uses ${model}`}
        onClick={() => go(urlOf('/usage', { account, model, group: 'key' }))}
      />
      {failures === 0 ? null : (
        <IconButton
          icon="requests"
          label={`Failures of ${model} at ${upstream}`}
          onClick={() => go(urlOf('/requests', { account, model, upstream, cause: 'provider' }))}
        />
      )}
    </>
  )
}

/** The model, its upstream below it. */
const MODEL: Column<ModelRow> = {
  ...names<ModelRow>('model', 'Model', ({ model }) => model),
  cell: ({ model, upstream }) => <TwoLines first={<Name text={model} strong />} second={upstream} />,
}

type Part = ProviderSide & { readonly part: string }

const NAME = names<ProviderSide>('name', 'Upstream', ({ upstream }) => upstream, { strong: true })

const PART: Column<Part> = {
  id: 'name',
  head: 'Upstream',
  cell: ({ upstream, part }) => (
    <span className="strong">
      {upstream} <span className="soft">{part}</span>
    </span>
  ),
  text: true,
}

const FIGURES: readonly Column<ProviderSide>[] = [
  counts('requests', 'Requests', ({ requests }) => requests),
  {
    id: 'failed',
    head: 'Failed',
    cell: ({ failures, failureShare }) =>
      failureShare === null ? (
        <Absent />
      ) : (
        <span title={`${failures} requests`}>{percent(failureShare)}</span>
      ),
    value: ({ failureShare }) => failureShare,
    numeric: true,
  },
  counts('rejected', 'Client failures', ({ rejected }) => rejected, { minor: true }),
  durations('p50', 'First token p50', (side) => side.firstTokenP50Ms, { extra: true }),
  durations('p95', 'p95', ({ firstTokenP95Ms }) => firstTokenP95Ms, { minor: true }),
  counts('input', 'Tokens in', ({ inputTokens }) => inputTokens, { minor: true }),
  counts('output', 'Tokens out', ({ outputTokens }) => outputTokens, { minor: true }),
  amounts('cost', 'Cost per request', ({ requestNanoUsd }) => requestNanoUsd),
]

/** Of models, whose names need the width. */
const MODEL_FIGURES = FIGURES.map((column) => {
  return column.id === 'rejected' ? { ...column, isOptional: true } : column
})
