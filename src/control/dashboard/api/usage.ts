/** Usage: sums over time and by group, as JSON and as CSV files. */
import { DAY_MS } from '../../../base/time-units.js'
import { compareNanoUsd } from '../../../base/nano-usd.js'
import { csvCell } from '../../../base/csv.js'
import { unitsOfFigures } from '../../../base/unit-counts.js'
import { adminTurns } from '../../../base/turn-queue.js'
import type { UsageSum } from '../../../store/usage-queries.js'
import type { ExactUsage, SumSelection } from '../../../usage/exact-usage.js'
import { type UsageRange } from '../../../usage/ranges.js'
import { sendCsv } from '../../send-csv.js'
import {
  SELF_REPLIED,
  signedRoute,
  type HandlerResult,
  type Reply,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { withExactTimes } from '../exact-first-tokens.js'
import { savedByProviders, selectUsage, usageBefore } from '../select-usage.js'
import { PLAYGROUND, type Services } from '../../services.js'
import { pageOfRows, type SortedRows } from './list-page.js'
import { remainingSums } from '../../../usage/add-sums.js'
import { NONE } from '../../../usage/sums-of-entries.js'
import { manyKeyNames } from '../../../usage/names.js'
import { FIGURE_COLUMNS, shownTotals, sumOfTotals, unitsCell } from '../../../usage/totals.js'
import { figuresOf, OTHER, MAX_GROUPS, pointsOf, restGroup } from '../usage-figures.js'
import {
  groupsIn,
  inOrder,
  isOfRequests,
  labelOfId,
  modelIn,
  shownId,
  sumsOfGroups,
  totalOf,
  type Group,
  type Grouping,
  type GroupsQuery,
} from '../../../usage/usage-groups.js'

/** Sums that make up a group are read for a chart only up to this number. */
const MOST_SOURCES = 500
/** Lines of one part of a file. */
const CSV_LINES = 500

type Query<S extends { parse: (value: unknown) => unknown }> = ReturnType<S['parse']>
type UsageRequest = SignedInRequest<Query<typeof schema.usageQuery>, undefined>

export function usageRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/usage', {
      credential: 'usage',
      query: schema.usageQuery,
      reply: schema.usageReply,
      handle: (request) => usage(services, request),
    }),
    signedRoute('GET', '/usage/groups', {
      credential: 'usage',
      query: schema.usageGroupsQuery,
      reply: schema.usageGroupsReply,
      handle: (request) => usageGroups(services, request),
    }),
    signedRoute('GET', '/usage.csv', {
      credential: 'usage',
      query: schema.usageCsvQuery,
      reply: null,
      handle: (request) => usageCsv(services, request),
    }),
  ]
}

async function usage(services: Services, request: UsageRequest): Promise<HandlerResult> {
  const { session, query } = request
  const { keyId, group = 'none', format } = query
  if (format === 'csv') return usageCsv(services, { ...request, query: { ...query, per: 'range' } })
  const { usage, ...of } = await selectUsage(services, session, query)
  const model = modelIn(query.model)
  const before = await usageBefore(services, usage)
  const { accountId } = of
  const selection: SumSelection = {
    accountId,
    ...(model === undefined ? {} : { model }),
    ...(keyId === undefined ? { per: 'model' } : { keyId }),
  }
  const [sums, previous] = await Promise.all([usage.sums(selection), before?.sums(selection)])
  const grouped = { ...of, keyId, model, group: groupingOf(group) }
  const found = group === 'none' ? [] : await groupsIn(services, usage, grouped)
  const labels = group === 'none' || usage.isOfKeys ? [] : await usage.groups({ accountId, by: 'label' })
  const isReport =
    !['none', 'model', 'key', 'upstream', 'client_format'].includes(group) && !isOfRequests(groupingOf(group))
  const { by, fromMs, toMs, zone, nowMs, stepMs, extendedTo } = usage.range
  const requests = {
    accountId,
    ...(model === undefined ? {} : { model }),
    ...(keyId === undefined ? {} : { keyId }),
  }
  const timed = (of: ExactUsage, found: readonly UsageSum[]) =>
    withExactTimes(services.ledger, of, requests, { total: figuresOf(found), points: pointsOf(found) })
  const [overTime, former] = await Promise.all([
    timed(usage, sums),
    before === null || previous === undefined ? null : timed(before, previous),
  ])
  const json: schema.Sent<typeof schema.usageReply> = {
    ...{ by, fromMs, toMs, zone, starts: [...usage.range.starts.values()], stepMs, nowMs, extendedTo },
    ...overTime,
    units: unitsCell(unitsOfFigures(sumOfTotals(sums))),
    previous:
      before === null || former === null
        ? null
        : { fromMs: before.range.fromMs, toMs: before.range.toMs, total: former.total },
    providerCacheSavedNanoUsd: savedByProviders(services, sums),
    groups: await chartGroups(services, found, { sums, usage, query: grouped }),
    labels: [...new Set(labels.map(({ keyId }) => keyId.slice(0, keyId.indexOf('='))))].sort(),
    dimensions: services.snapshot().config.dimensions.map(({ name }) => name),
    ...(isReport ? { report: reportRows(found, group) } : {}),
  }
  return { status: 200, json }
}

interface ChartData {
  /** The sums of all groups. */
  readonly sums: readonly UsageSum[]
  readonly usage: ExactUsage
  readonly query: GroupsQuery
}

/** The largest groups with their points, and one with all others. */
async function chartGroups(
  services: Services,
  all: readonly Group[],
  { sums, usage, query }: ChartData,
): Promise<schema.Sent<typeof schema.usageGroup>[]> {
  const { group } = query
  const charted = isOfRequests(group)
    ? all.filter(({ id }) => id !== NONE)
    : all.filter(({ sources }) => sources.length > 0 && sources.length <= MOST_SOURCES)
  const largest = charted.sort(byCost).slice(0, MAX_GROUPS)
  const own = await sumsOfGroups(usage, largest, query)
  const shown = await Promise.all(
    largest.map(async (group, at) => {
      const found = own[at] ?? []
      const label = await labelOf(services.store, group)
      return { id: shownId(group), label, total: figuresOf(found), points: pointsOf(found) }
    }),
  )
  if (all.length === largest.length) return shown
  const rest = remainingSums(sums, own.flat(), OTHER)
  if (rest.length === 0) return shown
  const isNone = all.length === largest.length + 1 && all.some(({ id }) => id === NONE)
  if (!isNone) return [...shown, restGroup(rest)]
  return [...shown, { id: NONE, label: NONE, total: figuresOf(rest), points: pointsOf(rest) }]
}

function byCost(a: Group, b: Group): number {
  const [one, other] = [a.total, b.total]
  return (
    compareNanoUsd(other.costNanoUsd, one.costNanoUsd) ||
    other.requests - one.requests ||
    (a.id < b.id ? -1 : 1)
  )
}

/** The names of all keys, if they are read already. */
type AllNames = Awaited<ReturnType<typeof manyKeyNames>>

/** The name of a key, and the id of every other group. */
async function labelOf(store: Services['store'], group: Group): Promise<string> {
  const { id, accountId } = group
  const known = knownLabel(group, null)
  return known ?? (await store.keyById(accountId ?? '', id))?.name ?? id
}

/** The same without waiting; null for a key that must be read from the store. */
function knownLabel(group: Group, names: AllNames): string | null {
  const { id, accountId } = group
  if (id === PLAYGROUND || accountId === null || accountId === '') return labelOfId(group)
  return names === null ? null : (names.get(id)?.name ?? id)
}

function groupingOf(group: string): Grouping {
  // The schema of the query has checked it.
  return group as Grouping
}

function reportRows(groups: readonly Group[], by: string): schema.Sent<typeof schema.usageReply>['report'] {
  return inOrder(groups, by).map(({ id, total }) => ({ group: id, ...shownTotals(total) }))
}

/** A group with the text that the page shows. */
interface NamedGroup extends Group {
  readonly label: string
}

const GROUPS: SortedRows<
  NamedGroup,
  'name' | 'requests' | 'failed' | 'inputTokens' | 'outputTokens' | 'cost'
> = {
  columns: {
    name: ({ label }) => label.toLowerCase(),
    requests: ({ total }) => total.requests,
    failed: ({ total }) => total.failed,
    inputTokens: ({ total }) => total.inputTokens,
    outputTokens: ({ total }) => total.outputTokens,
    cost: ({ total }) => Number(total.costNanoUsd),
  },
  usual: '-cost',
  idOf: ({ id, accountId }) => `${id} ${accountId ?? ''}`,
  limit: 50,
}

async function usageGroups(
  services: Services,
  { session, query }: SignedInRequest<Query<typeof schema.usageGroupsQuery>, undefined>,
): Promise<Reply> {
  const { search = '', sort = GROUPS.usual } = query
  const { usage, ...of } = await selectUsage(services, session, query)
  const { fromMs, toMs, zone } = usage.range
  const group = groupingOf(query.group)
  const grouped = { ...of, keyId: query.keyId, model: modelIn(query.model), group }
  const before = await usageBefore(services, usage)
  const [found, former] = await Promise.all([
    groupsIn(services, usage, grouped),
    before === null ? null : groupsIn(services, before, grouped),
  ])
  const spentBefore = former && new Map(former.map((each) => [GROUPS.idOf(asNamed(each)), each.total]))
  const needsNames = search !== '' || sort.endsWith('name')
  const count = needsNames ? found.length : 0
  const names = await keyNamesFor(services, query.group, of.accountId, count)
  const all = needsNames || group !== 'key' ? await withNames(services, found, names) : found.map(asNamed)
  const text = search.toLowerCase()
  const matching =
    text === '' ? all : all.filter(({ id, label }) => `${label} ${id}`.toLowerCase().includes(text))
  const page = pageOfRows(matching, query, GROUPS)
  const json: schema.Sent<typeof schema.usageGroupsReply> = {
    ...{ fromMs, toMs, zone, next: page.next, total: matching.length },
    rows: await Promise.all(
      page.rows.map(async (row) => ({
        ...(await groupView(services, row)),
        previousCostNanoUsd: spentBefore && (spentBefore.get(GROUPS.idOf(row))?.costNanoUsd ?? 0),
      })),
    ),
  }
  return { status: 200, json }
}

function asNamed(group: Group): NamedGroup {
  return { ...group, label: labelOfId(group) }
}

/** Groups named without giving way to other work. */
const NAMED_AT_ONCE = 100

/** The names of all keys if there are many groups of keys, else null. */
async function keyNamesFor(
  services: Services,
  group: string,
  accountId: string | null,
  count: number,
): Promise<AllNames> {
  return group === 'key' ? manyKeyNames(services.store, accountId, count) : null
}

async function withNames(
  services: Services,
  groups: readonly Group[],
  names: AllNames,
): Promise<NamedGroup[]> {
  const named: NamedGroup[] = []
  for (let at = 0; at < groups.length; at += NAMED_AT_ONCE) {
    for (const group of groups.slice(at, at + NAMED_AT_ONCE)) {
      const label = knownLabel(group, names) ?? (await labelOf(services.store, group))
      named.push({ ...group, label })
    }
    await adminTurns.next()
  }
  return named
}

async function groupView(
  services: Services,
  group: NamedGroup,
): Promise<Omit<schema.Sent<typeof schema.groupRow>, 'previousCostNanoUsd'>> {
  const { total, accountId } = group
  const account = accountId === null || accountId === '' ? null : await services.store.accountById(accountId)
  return {
    id: shownId(group),
    label: await labelOf(services.store, group),
    accountId: accountId === '' ? null : accountId,
    accountName: account?.name ?? null,
    requests: total.requests,
    failed: total.failed,
    inputTokens: total.inputTokens,
    outputTokens: total.outputTokens,
    costNanoUsd: total.costNanoUsd,
    unpricedRequests: total.unpriced,
    units: unitsCell(unitsOfFigures(total)),
  }
}

type CsvQuery = Omit<Query<typeof schema.usageCsvQuery>, 'group'> & { group?: string | undefined }

/** All groups: of the whole range, or of each hour or day; the last line is the total. */
async function usageCsv(
  services: Services,
  request: Omit<SignedInRequest<unknown, undefined>, 'query'> & { readonly query: CsvQuery },
): Promise<HandlerResult> {
  const { query, session } = request
  const { per = 'range', group = 'model' } = query
  const asked = per === 'range' ? query : { ...query, by: per }
  const { usage, ...of } = await selectUsage(services, session, asked)
  const grouping = groupingOf(group === 'none' ? 'model' : group)
  const grouped = { ...of, keyId: query.keyId, model: modelIn(query.model), group: grouping }
  const parts = csvParts(services, usage, { ...grouped, per })
  await sendCsv(request, { name: nameOfFile(usage.range, grouping), parts, mayZip: true })
  return SELF_REPLIED
}

/** `usage-2026-10-by-account-UTC`: a month, a day, or the times of its ends. */
function nameOfFile({ fromMs, toMs, zone }: UsageRange, group: string): string {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' })
  const [from = '', to = ''] = [fromMs, toMs].map((atMs) => clock.format(atMs).replace(' ', 'T'))
  const [start = 0, end = 0] = [from, to].map((text) => Date.parse(`${text}Z`))
  const [day, midnight] = [from.slice(0, 10), 'T00:00']
  const next = new Date(start)
  next.setUTCMonth(next.getUTCMonth() + 1)
  const isWhole = from.endsWith(midnight) && to.endsWith(midnight)
  const period =
    isWhole && day.endsWith('-01') && end === next.getTime()
      ? day.slice(0, 7)
      : isWhole && end - start === DAY_MS
        ? day
        : `${from}--${to}`.replaceAll(':', '')
  const by = group === 'below' ? 'account' : group
  return `usage-${period}-by-${by}-${zone}`.replaceAll(/[^\w.+-]/g, '-')
}

const CSV_COLUMNS = [
  'group',
  ...FIGURE_COLUMNS,
  ...['name', 'period_from', 'period_to', 'zone', 'currency', 'units'],
].join(',')

async function* csvParts(
  services: Services,
  usage: ExactUsage,
  query: GroupsQuery & { per: 'range' | 'hour' | 'day' },
): AsyncGenerator<string> {
  const { per, ...of } = query
  const { range } = usage
  yield `${per === 'range' ? '' : `${per},`}${CSV_COLUMNS}\r\n`
  const starts = per === 'range' ? [range.fromMs] : [...range.starts.values()]
  let total = totalOf([])
  let names: AllNames = null
  for (const [at, startMs] of starts.entries()) {
    const fromMs = Math.max(startMs, range.fromMs)
    const toMs = Math.min(starts[at + 1] ?? range.toMs, range.toMs)
    if (fromMs > range.nowMs) break
    const part = usage.over({ ...range, fromMs, toMs })
    const groups = (await groupsIn(services, part, of)).sort(
      of.group === 'month' ? (a, b) => (a.id < b.id ? -1 : 1) : byCost,
    )
    const start = per === 'range' ? '' : `${new Date(startMs).toISOString()},`
    names ??= await keyNamesFor(services, of.group, of.accountId, groups.length)
    for (let line = 0; line < groups.length; line += CSV_LINES) {
      const named = await withNames(services, groups.slice(line, line + CSV_LINES), names)
      yield named
        .map(
          (group) => `${start}${csvLine({ ...group, id: shownId(group) }, { ...range, fromMs, toMs })}\r\n`,
        )
        .join('')
    }
    total = totalOf([{ total }, ...groups])
  }
  // By hour or day, the first column is the time.
  const group = { id: per === 'range' ? 'total' : '', label: 'total', total }
  yield `${per === 'range' ? '' : 'total,'}${csvLine(group, range)}\r\n`
}

function csvLine(
  { id, label, total }: Pick<NamedGroup, 'id' | 'label' | 'total'>,
  { fromMs, toMs, zone }: UsageRange,
): string {
  const figures = shownTotals(total)
  const period = [fromMs, toMs].map((atMs) => new Date(atMs).toISOString())
  const counts = FIGURE_COLUMNS.map((name) => figures[name])
  return [id, ...counts, label, ...period, zone, 'USD', unitsCell(figures.units)].map(csvCell).join(',')
}
