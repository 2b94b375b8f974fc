/**
 * The counters of a sum (an hour or day of one key and model), for Redis, whose scripts add them up, and for migration.
 */
import { CAUSES, causeOf } from '../../error-cause.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { FIRST_CONTENT_BOUNDS_MS, type UsageSum } from '../ledger.js'

/** The index of each counter; the histogram of first content and the causes of failures follow the last. */
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
/** Index 10 is no longer used; sums in Redis have the indices as field names. */
const HISTOGRAM = 11
/** Failures by cause, in the order of `CAUSES`; sums of earlier versions have none. */
const BY_CAUSE = HISTOGRAM + FIRST_CONTENT_BOUNDS_MS.length + 1
const COUNTERS = BY_CAUSE + CAUSES.length

/** The counters of one sum; changed in place. */
export type SumCounters = number[]

// Fractions and large numbers from the start. A typed array of this size has memory of its own, which costs more.
const ZEROES = new Array<number>(COUNTERS).fill(0.5).fill(0)

/** All zero. */
export function newSum(): SumCounters {
  return ZEROES.slice()
}

/** Adds an entry. */
export function addToSum(sum: SumCounters, entry: LedgerEntry): void {
  const { usage, costNanoUsd, hops } = entry
  add(sum, REQUESTS, 1)
  const cause = causeOf(entry.outcome)
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
  add(sum, UNPRICED, unpricedOf(entry))
  if (entry.source === 'estimated') add(sum, ESTIMATED, 1)
  if (hops.firstContent !== undefined) add(sum, HISTOGRAM + bucketOf(hops.firstContent), 1)
}

/** Input and output tokens of the entry; null if they are unknown. */
export function usedTokens({ usage, source }: LedgerEntry): number | null {
  if (source === 'none') return 0
  if (usage.input === undefined && usage.output === undefined) return null
  return (usage.input ?? 0) + (usage.output ?? 0)
}

/** The charge of the request to budgets, in nano-dollars; null: what was reserved. */
export function chargedNanoUsd({ costNanoUsd, budgetNanoUsd }: LedgerEntry): number | null {
  return costNanoUsd ?? budgetNanoUsd ?? null
}

/** 1 if the entry used tokens whose price is unknown. */
function unpricedOf({ costNanoUsd, source }: LedgerEntry): 0 | 1 {
  return costNanoUsd === null && source !== 'none' ? 1 : 0
}

/**
 * What an entry adds to each counter: index and count by turns, requests first.
 */
export function countersOf(entry: LedgerEntry): number[] {
  OF_ROW.fill(0)
  addToSum(OF_ROW, entry)
  const counters: number[] = []
  for (let index = 0; index < COUNTERS; index += 1) {
    const count = OF_ROW[index] ?? 0
    if (count !== 0) counters.push(index, count)
  }
  return counters
}

const OF_ROW = newSum()

/** Sets one counter, as `countersOf` numbers them. */
export function setCounter(sum: SumCounters, index: number, count: number): void {
  if (index in sum) sum[index] = Math.min(Number.MAX_SAFE_INTEGER, count)
}

/** The sum in the form of the `Ledger` interface. */
export function sumFromCounters(
  sum: SumCounters,
  at: Pick<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'>,
): UsageSum {
  const count = (index: number) => sum[index] ?? 0
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

/** Adds the counters of one sum to another's. */
export function addSum(to: SumCounters, sum: SumCounters): void {
  for (const [at, count] of sum.entries()) add(to, at, count)
}

/** The counters of a sum. */
export function countersFromSum(sum: UsageSum): SumCounters {
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
  sum.firstContent.slice(0, BY_CAUSE - HISTOGRAM).forEach((count, at) => {
    counters[HISTOGRAM + at] = count
  })
  CAUSES.forEach((cause, at) => (counters[BY_CAUSE + at] = sum.byCause[cause]))
  return counters
}

/** Every counter of a sum with its index. */
export function numberedCounters(sum: UsageSum): [index: number, count: number][] {
  return [...countersFromSum(sum).entries()]
}

/** Counters stay below 2^53: larger numbers are not exact. */
function add(sum: SumCounters, index: number, value: number | undefined): void {
  if (value === undefined || !(value > 0)) return
  sum[index] = Math.min(Number.MAX_SAFE_INTEGER, (sum[index] ?? 0) + Math.floor(value))
}

function bucketOf(firstContentMs: number): number {
  const index = FIRST_CONTENT_BOUNDS_MS.findIndex((bound) => firstContentMs <= bound)
  return index < 0 ? FIRST_CONTENT_BOUNDS_MS.length : index
}
