/** Usage: charts over time, and sums per model and key. */
import type { UsageReply } from '../../../server/schema/schema.js'
import { useLive, useOnTraffic } from '../../api/poll-live.js'
import { useResource } from '../../api/load-resource.js'
import { csvOf, saveFile } from '../../format/csv.js'
import { plural } from '../../format/number.js'
import { Button } from '../../components/actions/button.js'
import { coloursOf } from '../../components/charts/colours.js'
import { Filter } from '../../components/forms/field.js'
import { FirstCall } from '../../components/states/first-call.js'
import { Pulse } from '../../components/states/live-indicator.js'
import { RangePicker, useRange } from '../../components/forms/time-range.js'
import { Loaded } from '../../components/states/states.js'
import { setQuery, useLocation } from '../../routing/location.js'
import { Page } from '../../shell/page.js'
import { useScope } from '../../shell/shown-account.js'
import { UsageCharts } from './usage-charts.js'
import { UsageTable } from './usage-table.js'

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
  useOnTraffic(useLive(scope, range.isLive), () => resource.reload(true))
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
