/**
 * What the ledger adds up of each hour and day for a key and a model, for engines that count in TypeScript or in
 * scripts of their own.
 */
import { CAUSES, causeOf } from '../../error-cause.js'
import type { UsageRow } from '../../ledger/row.js'
import { FIRST_CONTENT_BOUNDS_MS, type UsageSum } from '../ledger.js'

/** Where each counter is; the histogram of first content and the causes of failures follow the last. */
const REQUESTS = 0
const ERRORS = 1
const INPUT = 2
const OUTPUT = 3
const CACHE_READ = 4
const CACHE_WRITE = 5
const REASONING = 6
const COST = 7
const UNPRICED = 8
const ESTIMATED = 9
const LAST_AT = 10
const HISTOGRAM = 11
/** Failures by cause, in the order of `CAUSES`; stores of earlier versions have no such counts. */
const BY_CAUSE = HISTOGRAM + FIRST_CONTENT_BOUNDS_MS.length + 1
const COUNTERS = BY_CAUSE + CAUSES.length

/** Counters of one bucket; changed in place. */
export type SumCounters = number[]

// Fractions and large numbers from the start. A typed array of this size has memory of its own, which costs more.
const ZEROES = new Array<number>(COUNTERS).fill(0.5).fill(0)

/** All zero. */
export function newSum(): SumCounters {
  return ZEROES.slice()
}

/** Counts a row in. */
export function addToSum(sum: SumCounters, row: UsageRow): void {
  const { usage, costNanoUsd, hops } = row
  add(sum, REQUESTS, 1)
  const cause = causeOf(row.outcome)
  if (cause !== null) {
    add(sum, ERRORS, 1)
    add(sum, BY_CAUSE + CAUSES.indexOf(cause), 1)
  }
  add(sum, INPUT, usage.input)
  add(sum, OUTPUT, usage.output)
  add(sum, CACHE_READ, usage.cacheRead)
  add(sum, CACHE_WRITE, usage.cacheWrite)
  add(sum, REASONING, usage.reasoning)
  add(sum, COST, costNanoUsd ?? 0)
  add(sum, UNPRICED, unpricedOf(row))
  if (row.source === 'estimated') add(sum, ESTIMATED, 1)
  if (row.atMs > (sum[LAST_AT] ?? 0)) sum[LAST_AT] = Math.floor(row.atMs)
  if (hops.firstContent !== undefined) add(sum, HISTOGRAM + placeOf(hops.firstContent), 1)
}

/** The row's tokens, in and out; null where nobody knows. */
export function usedTokens({ usage, source }: UsageRow): number | null {
  if (source === 'none') return 0
  if (usage.input === undefined && usage.output === undefined) return null
  return (usage.input ?? 0) + (usage.output ?? 0)
}

/** What budgets are charged for the request, in nano-dollars; null: what was reserved. */
export function chargedNanoUsd({ costNanoUsd, budgetNanoUsd }: UsageRow): number | null {
  return costNanoUsd ?? budgetNanoUsd ?? null
}

/** 1 where the row used tokens and nobody knows their price. */
function unpricedOf({ costNanoUsd, source }: UsageRow): 0 | 1 {
  return costNanoUsd === null && source !== 'none' ? 1 : 0
}

/**
 * What a row adds to each counter, for engines that count by themselves: place and count by turns, requests first.
 * The time is no counter.
 */
export function countersOf(row: UsageRow): number[] {
  OF_ROW.fill(0)
  addToSum(OF_ROW, row)
  const counters: number[] = []
  for (let place = 0; place < COUNTERS; place += 1) {
    const count = OF_ROW[place] ?? 0
    if (count !== 0 && place !== LAST_AT) counters.push(place, count)
  }
  return counters
}

const OF_ROW = newSum()

/** Takes over a counter of `countersOf` as another engine has added it up. */
export function setCounter(sum: SumCounters, place: number, count: number): void {
  if (place in sum) sum[place] = Math.min(Number.MAX_SAFE_INTEGER, count)
}

/** As the ledger shows it. */
export function sumFromCounters(
  sum: SumCounters,
  at: Pick<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'>,
): UsageSum {
  const count = (place: number) => sum[place] ?? 0
  return {
    startMs: at.startMs,
    accountId: at.accountId,
    keyId: at.keyId,
    model: at.model,
    requests: count(REQUESTS),
    errors: count(ERRORS),
    inputTokens: count(INPUT),
    outputTokens: count(OUTPUT),
    cacheReadTokens: count(CACHE_READ),
    cacheWriteTokens: count(CACHE_WRITE),
    reasoningTokens: count(REASONING),
    costNanoUsd: count(COST),
    unpriced: count(UNPRICED),
    estimated: count(ESTIMATED),
    firstContent: sum.slice(HISTOGRAM, BY_CAUSE),
    byCause: {
      client: count(BY_CAUSE),
      limits: count(BY_CAUSE + 1),
      gateway: count(BY_CAUSE + 2),
      provider: count(BY_CAUSE + 3),
    },
  }
}

/** Adds the counters of one sum to another's, or with -1 takes them away; never below nothing. */
export function addSum(to: SumCounters, sum: SumCounters, factor: 1 | -1 = 1): void {
  for (let place = 0; place < COUNTERS; place += 1) {
    const count = sum[place] ?? 0
    if (count === 0) continue
    const before = to[place] ?? 0
    if (place === LAST_AT) to[place] = Math.max(before, count)
    else to[place] = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, before + factor * count))
  }
}

/** The counters of a sum as the ledger shows it, which does not tell when its last request arrived. */
export function countersFromSum(sum: UsageSum, atMs: number): SumCounters {
  const counters = newSum()
  counters[REQUESTS] = sum.requests
  counters[ERRORS] = sum.errors
  counters[INPUT] = sum.inputTokens
  counters[OUTPUT] = sum.outputTokens
  counters[CACHE_READ] = sum.cacheReadTokens
  counters[CACHE_WRITE] = sum.cacheWriteTokens
  counters[REASONING] = sum.reasoningTokens
  counters[COST] = sum.costNanoUsd
  counters[UNPRICED] = sum.unpriced
  counters[ESTIMATED] = sum.estimated
  counters[LAST_AT] = Math.floor(atMs)
  sum.firstContent.slice(0, BY_CAUSE - HISTOGRAM).forEach((count, at) => {
    counters[HISTOGRAM + at] = count
  })
  CAUSES.forEach((cause, at) => (counters[BY_CAUSE + at] = sum.byCause[cause]))
  return counters
}

/** What engines that count by themselves keep of it: every counter, the time apart. */
export function numberedCounters(sum: UsageSum): [place: number, count: number][] {
  const places = countersFromSum(sum, 0).map((count, at): [number, number] => [at, count])
  return places.filter(([place]) => place !== LAST_AT)
}

/** Counters stay whole numbers that can be written; one beyond 2^53 would be none. */
function add(sum: SumCounters, place: number, value: number | undefined): void {
  if (value === undefined || !(value > 0)) return
  sum[place] = Math.min(Number.MAX_SAFE_INTEGER, (sum[place] ?? 0) + Math.floor(value))
}

function placeOf(firstContentMs: number): number {
  const place = FIRST_CONTENT_BOUNDS_MS.findIndex((bound) => firstContentMs <= bound)
  return place < 0 ? FIRST_CONTENT_BOUNDS_MS.length : place
}
