/** The filters of the page of requests. They are kept in the address. */
import { useResource } from '../../api/load-resource.js'
import { CAUSE_NAMES, CAUSES, KINDS } from '../../format/failure-texts.js'
import { FORMAT_NAMES } from '../../format/client-formats.js'
import { FILTER_NAMES, isFiltered, type RequestFilters } from '../../format/request-filters.js'
import { inputTime } from '../../format/time.js'
import { Button } from '../../components/actions/button.js'
import { Filter, type Option } from '../../components/forms/field.js'
import { Search } from '../../components/forms/search-field.js'
import { Pulse } from '../../components/states/live-indicator.js'
import { setQuery, useLocation } from '../../routing/location.js'
import { useScope } from '../../shell/shown-account.js'

const STATUSES = [200, 400, 401, 403, 404, 408, 413, 415, 429, 499, 500, 502, 503, 504]

/** Removes all filters from the address. */
export function clearFilters(): void {
  setQuery(Object.fromEntries(FILTER_NAMES.map((name) => [name, null])))
}

/** The row of filters. */
export function RequestFilterRow({ filters }: { readonly filters: RequestFilters }) {
  const { outcome, toMs } = filters
  return (
    <>
      <Search
        label="Search requests"
        hint="Request id or client request id"
        value={filters.search}
      />
      <button
        type="button"
        className="filter toggle"
        aria-pressed={outcome === 'failed'}
        onClick={() => setQuery({ outcome: outcome === 'failed' ? null : 'failed' })}
      >
        Failed only
      </button>
      <OutcomeFilters filters={filters} />
      <ServedFilters filters={filters} />
      <TimeFilter filters={filters} />
      {isFiltered(filters) ? (
        <Button tone="quiet" onClick={clearFilters}>
          Clear filters
        </Button>
      ) : null}
      <Pulse on={toMs === ''} />
    </>
  )
}

function OutcomeFilters({ filters }: { readonly filters: RequestFilters }) {
  return (
    <>
      <Filter
        label="Status"
        all="All statuses"
        value={filters.status}
        options={STATUSES.map((status) => ({ value: String(status), label: `status ${status}` }))}
        onChange={(status) => setQuery({ status })}
      />
      <Filter
        label="Outcome"
        all="All outcomes"
        value={filters.outcome}
        options={[
          { value: 'ok', label: 'succeeded' },
          { value: 'failed', label: 'failed' },
          ...KINDS.map(itself),
        ]}
        onChange={(outcome) => setQuery({ outcome })}
      />
      <Filter
        label="Cause"
        all="All causes"
        value={filters.cause}
        options={CAUSES.map((cause) => ({ value: cause, label: CAUSE_NAMES[cause] }))}
        onChange={(cause) => setQuery({ cause })}
      />
    </>
  )
}

/** Filters by model, upstream, key, label and format. */
function ServedFilters({ filters }: { readonly filters: RequestFilters }) {
  const scope = useScope()
  const { data } = useResource('/models')
  const asked = { account: scope, state: 'all', limit: 500 }
  // Keys can be listed for one account only.
  const keys = useResource('/keys', asked, { enabled: scope !== 'all' }).data?.keys ?? []
  const models = data?.models.map(({ id }) => id) ?? []
  const labels = keys.flatMap((key) =>
    Object.entries(key.labels).map(([name, value]) => `${name}=${value}`),
  )
  return (
    <>
      <Filter
        label="Model"
        all="All models"
        value={filters.model}
        options={models.map(itself)}
        onChange={(model) => setQuery({ model })}
      />
      <Filter
        label="Upstream"
        all="All upstreams"
        value={filters.upstream}
        options={(data?.upstreams ?? []).map(itself)}
        onChange={(upstream) => setQuery({ upstream })}
      />
      <Filter
        label="Key"
        all="All keys"
        value={filters.key}
        options={[
          ...keys.map(({ id, name, lastFour }) => ({ value: id, label: `${name} …${lastFour}` })),
          itself('playground'),
        ]}
        onChange={(key) => setQuery({ key })}
      />
      <Filter
        label="Label"
        all="All labels"
        value={filters.label}
        options={[...new Set(labels)].sort().map(itself)}
        onChange={(label) => setQuery({ label })}
      />
      <Filter
        label="Client format"
        all="All formats"
        value={filters.format}
        options={Object.entries(FORMAT_NAMES).map(([value, label]) => ({ value, label }))}
        onChange={(format) => setQuery({ format })}
      />
    </>
  )
}

const TIMES: readonly Option[] = [
  { value: '15m', label: 'Last 15 min' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 h' },
  { value: '7d', label: 'Last 7 d' },
  { value: 'custom', label: 'From … to …' },
]

function TimeFilter({ filters: { fromMs, toMs } }: { readonly filters: RequestFilters }) {
  const { query } = useLocation()
  const since = query.get('since')
  const isCustom = since === 'custom' || (since === null && (fromMs !== '' || toMs !== ''))
  return (
    <>
      <Filter
        label="Time"
        all="All times"
        value={isCustom ? 'custom' : (since ?? '')}
        options={TIMES}
        onChange={(value) => setQuery({ since: value, fromMs: null, toMs: null })}
      />
      {isCustom ? (
        <>
          <Moment label="From" name="fromMs" value={fromMs} />
          <Moment label="To" name="toMs" value={toMs} />
        </>
      ) : null}
    </>
  )
}

interface MomentProps {
  readonly label: string
  readonly name: 'fromMs' | 'toMs'
  readonly value: string
}

/** A time in the user's time zone. */
function Moment({ label, name, value }: MomentProps) {
  return (
    <input
      type="datetime-local"
      className="filter"
      aria-label={label}
      value={value === '' ? '' : inputTime(Number(value))}
      onChange={(event) => {
        const ms = new Date(event.target.value).getTime()
        setQuery({ [name]: Number.isNaN(ms) ? null : String(ms) }, { replace: true })
      }}
    />
  )
}

function itself(value: string): Option {
  return { value, label: value }
}
