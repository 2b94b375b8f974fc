/** Usage: what was spent, on what and by whom, against the period before. */
import type { UsageReply } from '../../../../control/dashboard/schema/schema.js'
import { useList, useLive, useOnTraffic, useResource } from '../../api/use-resource.js'
import { SaveCsv } from '../../components/button.js'
import { FilterBar, type ListFilter } from '../../components/filter-bar.js'
import { Filter } from '../../components/form.js'
import { optionsOf } from '../../components/options.js'
import { FirstCall } from '../../components/request-code.js'
import { Pulse, Loaded } from '../../components/loading-states.js'
import { RangePicker, ZoomButtons } from '../../components/range-picker.js'
import { useRange, zoomRange, type Range } from '../../components/time-range.js'
import { count, dollars, percent, plural } from '../../format/number.js'
import { unitsText } from '../../format/units.js'
import { fullTime } from '../../format/time.js'
import { Link, setFilter, useLocation } from '../../routing.js'
import { Page } from '../../shell/page.js'
import { useTree, withScope } from '../../shell/session.js'
import { FIGURE_NAMES, FigureCards } from '../figure-cards.js'
import { useKeyFilters } from '../key-filters.js'
import { Crumbs, GROUPINGS, isAlone, nameOfGrouping, useDrill } from './drill.js'
import { UsageChart } from './usage-chart.js'
import { moverText, UsageTable } from './usage-table.js'

export function UsagePage() {
  const drill = useDrill()
  const { scope } = drill
  const { query } = useLocation()
  const range = useRange('30d')
  const asked = { ...drill.query, ...range.query }
  const first = useResource('/usage', { ...asked, group: drill.group }, { everyMs: range.everyMs })
  // An account without accounts below it is shown by key.
  const isLeaf = drill.group === 'below' && drill.isUsual && first.data !== null && isAlone(first.data.groups)
  const group = isLeaf ? 'key' : drill.group
  const byKey = useResource('/usage', { ...asked, group: 'key' }, { everyMs: range.everyMs, enabled: isLeaf })
  const resource = isLeaf ? byKey : first
  const list = useList(
    '/usage/groups',
    { ...asked, group, search: query.get('search') },
    ({ rows }) => rows,
    { sortable: true, usualSort: '-cost' },
  )
  useOnTraffic(useLive({ account: scope, tree: useTree().isTree ? 'true' : null }, range.isLive), () => {
    resource.reload()
    list.reload()
  })
  const { data } = resource
  const mover = data === null ? null : moverText(data, list.rows)
  const figure = FIGURE_NAMES.find((name) => name === query.get('figure')) ?? 'cost'
  const by = nameOfGrouping(group)
  const filters = useFilters()
  return (
    <Page
      title="Usage"
      purpose={mover ?? 'What was spent, on what, and what changed.'}
      action={<SaveCsv path="/usage.csv" query={{ ...asked, group }} />}
      filters={
        <>
          <RangePicker range={range} withUnit />
          <ZoomButtons range={range} />
          <Link to={withScope('/statement', scope)} className="soft">
            Monthly statement
          </Link>
          <Pulse on={range.isLive} of={[resource]} />
        </>
      }
    >
      <Loaded resource={resource} what="Usage" unaffected="Requests are still counted.">
        {(data) =>
          data.total.requests === 0 && (data.previous?.total.requests ?? 0) === 0 ? (
            <>
              <Crumbs drill={drill} />
              <FirstCall what="Charts of cost, requests, tokens, failures and time to first token." />
            </>
          ) : (
            <div className="stack gap-12">
              <FigureCards
                usage={data}
                chosen={figure}
                choose={(name) => setFilter({ figure: name === 'cost' ? null : name })}
              />
              <UsageChart
                {...{ usage: data, figure, by, words: wordsOf(range, data) }}
                onZoom={(fromMs, toMs) => zoomRange(range, fromMs, toMs)}
              />
              <Savings usage={data} />
              <div className="row spread">
                <Crumbs drill={drill} />
                <span className="row">
                  <GroupBy group={group} labels={data.labels} dimensions={data.dimensions} />
                  <FilterBar filters={filters} search={{ label: `Search by ${by}` }} />
                </span>
              </div>
              <UsageTable key={group} {...{ list, usage: data, group }} />
            </div>
          )
        }
      </Loaded>
    </Page>
  )
}

/** The range as a text, with what was changed because parts of the ledger are no longer kept. */
function wordsOf({ by, words, zone }: Range, { zone: shownZone, extendedTo, fromMs }: UsageReply): string {
  const from = `${words}; from ${fullTime(fromMs)}`
  if (extendedTo === 'hour') return `${from}, because single requests are no longer kept`
  if (extendedTo === 'day') return `${from}, because hours are no longer kept`
  return by === 'day' && shownZone !== zone ? `${words}; days of UTC, because hours end earlier` : words
}

/** What caches saved, and the requests that the sums exclude or estimate. */
function Savings({ usage }: { readonly usage: UsageReply }) {
  const { total, units, providerCacheSavedNanoUsd: saved } = usage
  const { unpricedRequests, estimatedRequests, assumedRequests, inputTokens, cachedTokens } = total
  const { requests, cacheHits, cacheSavedNanoUsd } = total
  const cached = `${count(cachedTokens)} input tokens from the caches of providers (${percent(cachedTokens / Math.max(inputTokens, 1))})`
  const texts = [
    cachedTokens === 0 ? '' : saved > 0 ? `${cached} saved about ${dollars(saved)}.` : `${cached}.`,
    cacheHits === 0
      ? ''
      : `${plural(cacheHits, 'request')} from the cache of the gateway (${percent(cacheHits / Math.max(requests, 1))}) saved ${dollars(cacheSavedNanoUsd)}.`,
    units === '' ? '' : `Beside text: ${unitsText(units)}.`,
    unpricedRequests === 0
      ? ''
      : `The cost leaves out ${plural(unpricedRequests, 'request')} of unknown price.`,
    estimatedRequests === 0
      ? ''
      : `Tokens of ${plural(estimatedRequests, 'request')} are estimated: the provider reported none.`,
    assumedRequests === 0
      ? ''
      : `${plural(assumedRequests, 'request')} whose end was not received count with the maximum that they may have used.`,
  ].filter((text) => text !== '')
  return texts.length === 0 ? null : <p className="soft small">{texts.join(' ')}</p>
}

/** Filters by model, key and member. */
function useFilters(): readonly ListFilter[] {
  const models = useResource('/models').data?.models ?? []
  const { key, maker } = useKeyFilters()
  return [
    {
      name: 'model',
      label: 'Model',
      options: [...optionsOf(models.map(({ id }) => id)), { value: '(unknown)', label: 'unknown models' }],
      isFree: true,
    },
    { ...key, isFree: true },
    { ...maker, name: 'member', label: 'Member' },
  ]
}

interface GroupByProps {
  readonly group: string
  /** The names of the labels in use. */
  readonly labels: readonly string[]
  readonly dimensions: readonly string[]
}

function GroupBy({ group, labels, dimensions }: GroupByProps) {
  const named = labels.map((name) => ({ value: `label:${name}`, label: `label ${name}` }))
  const below = dimensions.map((name) => ({ value: `dimension:${name}`, label: name }))
  const all = [...GROUPINGS, ...below, ...named]
  const isKnown = all.some(({ value }) => value === group)
  const known = isKnown ? all : [{ value: group, label: nameOfGrouping(group) }, ...all]
  return (
    <Filter
      label="Group by"
      value={group}
      options={known.map(({ value, label }) => ({ value, label: `by ${label}` }))}
      onChange={(value) => setFilter({ group: value, search: null, sort: null })}
    />
  )
}
