/**
 * The counters of a sum (an hour or day of one key and model), for Redis, whose scripts add them up, and for
 * migration.
 */
import { DAY_MS } from '../../base/time-units.js'
import { addNanoUsd, compareNanoUsd, type NanoUsd } from '../../base/nano-usd.js'
import type { LimitedUnit } from '../../base/limit-members.js'
import { CAUSES, causeOf } from '../../errors.js'
import { UNIT_NAMES, unitFigures, unitFiguresIn, unitsIn } from '../../base/unit-counts.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import {
  countersOfParts,
  countersOfTime,
  FIRST_CONTENT_COUNTERS,
  FORMER_COUNTERS,
  partsOfCounters,
} from '../first-content.js'
import {
  PROPERTY_MARK,
  type GroupUse,
  type UsageSum,
  type KeyUse,
  type SumQuery,
  type ZoneOffset,
} from '../usage-queries.js'

/**
 * The counters of one sum, changed in place. Sums in Redis have the indices as field names: first those of
 * `UsageSum` from `requests` to `estimated`, then one that is no longer used, the former intervals of first
 * content, failures by cause in the order of `CAUSES`, `assumed`, the other counters of first content,
 * `cacheHits`, `savedNanoUsd` and the figures of units. Sums of earlier versions lack the last ones. Only the
 * cost may be a bigint.
 */
export type SumCounters = NanoUsd[]

const COST = 7
const HISTOGRAM = 11
const BY_CAUSE = HISTOGRAM + FORMER_COUNTERS
const ASSUMED = BY_CAUSE + CAUSES.length
const PARTS = ASSUMED + 1
const HITS = PARTS + FIRST_CONTENT_COUNTERS.length - FORMER_COUNTERS
const SAVED = HITS + 1
const UNITS = SAVED + 1
const COUNTERS = UNITS + UNIT_NAMES.length

// Fractions and large numbers from the start. A typed array of this size has memory of its own, which costs
// more.
const ZEROES = new Array<number>(COUNTERS).fill(0.5).fill(0)

/** All zero. */
export function newSum(): SumCounters {
  return ZEROES.slice()
}

/** Adds an entry. */
export function addToSum(sum: SumCounters, entry: LedgerEntry): void {
  const { usage, costNanoUsd, hops, source } = entry
  const cause = causeOf(entry.outcome)
  const isUnpriced = costNanoUsd === null && source !== 'none'
  const { input, output, cacheRead, cacheWrite, reasoning } = usage
  const failures = cause === null ? 0 : 1
  const tokens = [input, output, cacheRead, cacheWrite, reasoning]
  const marks = [isUnpriced ? 1 : 0, source === 'estimated' ? 1 : 0]
  addCounters(sum, [1, failures, ...tokens, costNanoUsd ?? 0, ...marks])
  if (source === 'assumed') add(sum, ASSUMED, 1)
  if (cause !== null) add(sum, BY_CAUSE + CAUSES.indexOf(cause), 1)
  if (entry.cacheHit === true) add(sum, HITS, 1)
  add(sum, SAVED, entry.savedNanoUsd ?? 0)
  if (entry.units !== null) {
    const units = unitFiguresIn(entry.units)
    for (const [at, figure] of UNIT_NAMES.entries()) add(sum, UNITS + at, units[figure])
  }
  if (hops.firstContent === undefined) return
  const [former, own] = countersOfTime(hops.firstContent)
  add(sum, HISTOGRAM + former, 1)
  if (own !== null) add(sum, PARTS + own - FORMER_COUNTERS, 1)
}

/** Input and output tokens of the entry for limits of a minute; null: what was reserved. */
export function usedTokens(entry: LedgerEntry): number | null {
  // An assumed maximum would block the limit for many minutes.
  return entry.source === 'assumed' ? (entry.rateTokens ?? null) : chargedTokens(entry)
}

/**
 * Input and output tokens of the entry for limits of a day, week or month and in all, which count an assumed
 * maximum as budgets do; null: what was reserved.
 */
export function chargedTokens({ usage, source }: LedgerEntry): number | null {
  if (source === 'none') return 0
  if (usage.input === undefined && usage.output === undefined) return null
  return (usage.input ?? 0) + (usage.output ?? 0)
}

/** What the entry has of a unit for its limits; null: what was reserved. */
export function usedUnits({ units, source }: LedgerEntry, unit: LimitedUnit): number | null {
  if (source === 'none') return 0
  return unitsIn(units).get(unit) ?? null
}

/** The charge of the request to budgets, in nano-dollars; null: what was reserved. */
export function chargedNanoUsd({ costNanoUsd, budgetNanoUsd }: LedgerEntry): number | null {
  return costNanoUsd ?? budgetNanoUsd ?? null
}

/** What an entry adds to each counter. */
export function countersOf(entry: LedgerEntry): SumCounters {
  const sum = newSum()
  addToSum(sum, entry)
  return sum
}

/** The properties of an entry, as `keyId` of their sums. */
export function propertiesOf(
  entry: Pick<LedgerEntry, 'accountId' | 'accountPath' | 'upstream' | 'ingress' | 'labels' | 'shadowOf'>,
): string[] {
  const { accountId, accountPath, upstream, ingress, labels, shadowOf } = entry
  const properties = [`account=${accountId} ${accountPath ?? ''}`]
  if (upstream !== null) properties.push(`upstream=${upstream}`)
  if (upstream !== null && shadowOf !== null) properties.push(`shadow=${upstream}`)
  if (ingress !== null) properties.push(`format=${ingress}`)
  if (labels !== null && labels !== '') {
    properties.push(...labels.split(' ').map((label) => `label=${label}`))
  }
  return properties.map((property) => PROPERTY_MARK + property)
}

/** Whether a sum is one by this property: `upstream`, `upstream=openai`, or a prefix `label=team=`. */
export function isOfProperty(keyId: string, property: string): boolean {
  const name = PROPERTY_MARK + property
  if (!property.includes('=')) return keyId.startsWith(`${name}=`)
  return property.endsWith('=') ? keyId.startsWith(name) : keyId === name
}

/** Adds to one counter, as `countersOf` numbers them. */
export function addCounter(sum: SumCounters, index: number, count: NanoUsd): void {
  const before = sum[index]
  if (before === undefined) return
  if (index === COST) sum[index] = addNanoUsd(before, count)
  else sum[index] = Math.min(Number.MAX_SAFE_INTEGER, Number(before) + Number(count))
}

/** The counters of groups: requests, failed ones, input and output tokens, cost, unpriced requests, units. */
export const GROUP_COUNTERS: readonly number[] = [0, 1, 2, 3, 7, 8, ...UNIT_NAMES.map((_, at) => UNITS + at)]

/** The sum in the form of the `Ledger` interface. */
export function sumFromCounters(
  sum: SumCounters,
  { startMs, accountId, keyId, model }: Pick<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'>,
): UsageSum {
  const counts = sum.map(Number)
  const [requests = 0, failed = 0, inputTokens = 0, outputTokens = 0, cacheReadTokens = 0] = counts
  const [cacheWriteTokens = 0, reasoningTokens = 0] = counts.slice(5)
  const [unpriced = 0, estimated = 0] = counts.slice(8)
  const [client = 0, limits = 0, gateway = 0, provider = 0, assumed = 0] = counts.slice(BY_CAUSE)
  const costNanoUsd = sum[COST] ?? 0
  return {
    ...{ startMs, accountId, keyId, model, requests, failed, inputTokens, outputTokens },
    ...{ cacheReadTokens, cacheWriteTokens, reasoningTokens, costNanoUsd, unpriced, estimated },
    assumed,
    firstContent: partsOfCounters([...counts.slice(HISTOGRAM, BY_CAUSE), ...counts.slice(PARTS, HITS)]),
    byCause: { client, limits, gateway, provider },
    ...{ cacheHits: counts[HITS] ?? 0, savedNanoUsd: counts[SAVED] ?? 0 },
    ...unitFigures((figure) => counts[UNITS + UNIT_NAMES.indexOf(figure)] ?? 0),
  }
}

function countersFromSum(sum: UsageSum): SumCounters {
  const firstContent = countersOfParts(sum.firstContent)
  return [
    ...[sum.requests, sum.failed, sum.inputTokens, sum.outputTokens, sum.cacheReadTokens],
    ...[sum.cacheWriteTokens, sum.reasoningTokens, sum.costNanoUsd, sum.unpriced, sum.estimated],
    0,
    ...firstContent.slice(0, FORMER_COUNTERS),
    ...CAUSES.map((cause) => sum.byCause[cause]),
    sum.assumed,
    ...firstContent.slice(FORMER_COUNTERS),
    ...[sum.cacheHits, sum.savedNanoUsd],
    ...UNIT_NAMES.map((figure) => sum[figure]),
  ]
}

/** Every counter of a sum with its index. */
export function numberedCounters(sum: UsageSum): [index: number, count: NanoUsd][] {
  return [...countersFromSum(sum).entries()]
}

/** Adds counters to those of a sum; unknown ones add nothing. */
function addCounters(sum: SumCounters, counters: readonly (NanoUsd | undefined)[]): void {
  counters.forEach((count, index) => add(sum, index, count))
}

/** Counters other than the cost stay below 2^53: larger numbers are not exact. */
function add(sum: SumCounters, index: number, value: NanoUsd | undefined): void {
  if (value === undefined || !(value > 0)) return
  addCounter(sum, index, typeof value === 'number' ? Math.floor(value) : value)
}

/**
 * The sums that match the query, grouped as it requires, for engines that store sums by account only. Pure.
 */
export function selectSums(sums: readonly UsageSum[], query: SumQuery): UsageSum[] {
  const { offsets } = query
  const found = selected(sums, query)
  if (offsets === undefined) return found
  return addedUp(found, (sum) => ({ ...sum, startMs: dayOfHour(sum.startMs, offsets) }))
}

/** The start of an hour's day as if its local time were UTC. */
export function dayOfHour(startMs: number, offsets: readonly ZoneOffset[]): number {
  const { offsetMs } = offsets.findLast(({ fromMs }) => startMs >= fromMs) ?? { offsetMs: 0 }
  return Math.floor((startMs + offsetMs) / DAY_MS) * DAY_MS
}

function selected(
  sums: readonly UsageSum[],
  { accountId, keyId, model, per, property, accounts }: SumQuery,
): UsageSum[] {
  const names = accounts && new Set(accounts.map((value) => `${PROPERTY_MARK}account=${value}`))
  const found = sums.filter((sum) => {
    return (
      (names === undefined || names.has(sum.keyId)) &&
      (keyId === undefined || sum.keyId === keyId) &&
      (model === undefined || sum.model === model) &&
      (property === undefined || isOfProperty(sum.keyId, property))
    )
  })
  if (names !== undefined) return addedUp(found, (sum) => ({ ...sum, accountId: '', keyId: '' }))
  if (property !== undefined) {
    const isOfEach = accountId !== null || property.startsWith('account')
    return isOfEach ? found : addedUp(found, (sum) => ({ ...sum, accountId: '' }))
  }
  if (per !== 'model') return found
  return addedUp(found, (sum) => ({ ...sum, accountId: accountId ?? '', keyId: '' }))
}

/** Adds up the sums with the same start, model, account and key after a change of these. */
export function addedUp(sums: readonly UsageSum[], changed: (sum: UsageSum) => UsageSum): UsageSum[] {
  const groups = new Map<string, { at: UsageSum; counters: SumCounters }>()
  for (const sum of sums) {
    const at = changed(sum)
    const name = JSON.stringify([at.startMs, at.model, at.accountId, at.keyId])
    const group = groups.get(name) ?? { at, counters: newSum() }
    addCounters(group.counters, countersFromSum(sum))
    groups.set(name, group)
  }
  return Array.from(groups.values(), ({ at, counters }) => sumFromCounters(counters, at))
}

/** The keys that cost most first; of the same cost, those with most requests. */
export function byCost(a: KeyUse, b: KeyUse): number {
  return compareNanoUsd(b.costNanoUsd, a.costNanoUsd) || b.requests - a.requests
}

/** Adds the use of a group to `uses`, which has them by name. */
export function addUse(uses: Map<string, GroupUse>, use: GroupUse): void {
  const { accountId, keyId } = use
  const name = `${accountId} ${keyId}`
  const before = uses.get(name)
  if (before === undefined) {
    uses.set(name, use)
    return
  }
  uses.set(name, {
    accountId,
    keyId,
    requests: before.requests + use.requests,
    failed: before.failed + use.failed,
    inputTokens: before.inputTokens + use.inputTokens,
    outputTokens: before.outputTokens + use.outputTokens,
    costNanoUsd: addNanoUsd(before.costNanoUsd, use.costNanoUsd),
    unpriced: before.unpriced + use.unpriced,
    ...unitFigures((figure) => before[figure] + use[figure]),
  })
}

/** The start of the bucket that contains a time, both in ms. */
export function bucketOf(atMs: number, lengthMs: number): number {
  return Math.floor(Math.max(0, atMs) / lengthMs) * lengthMs
}
