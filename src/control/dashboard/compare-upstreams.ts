/** Adds up the ledger entries of an upstream for a comparison with others. Pure. */
import { isKind, isProviderFailure } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'

/** The figures of a side. Times are in ms; null is unknown. */
export interface ComparedFigures {
  /** Requests that were sent to it at least once. */
  readonly requests: number
  /** Those of them that are shadow requests. */
  readonly shadowRequests: number
  /** Requests whose last attempt on it failed by the rules of circuit breakers. */
  readonly failures: number
  /** Null without requests. */
  readonly failureShare: number | null
  /** Requests that the upstream refused as the client's mistake. */
  readonly rejected: number
  /** Time from the end of the request body to the first content. */
  readonly firstContentP50Ms: number | null
  readonly firstContentP95Ms: number | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanoUsd: number
  /** The mean over requests with a known cost that used tokens. */
  readonly costPerRequestNanoUsd: number | null
  /** Requests that used tokens and have no known price. */
  readonly unpriced: number
}

/** Maximum number of times that are kept. Above it the percentiles are those of a random sample. */
const MAX_TIMES = 50_000

/** Adds up one upstream of the configuration. */
export class ComparedUpstream {
  private readonly upstream: string
  private requests = 0
  private shadowRequests = 0
  private failures = 0
  private rejected = 0
  private inputTokens = 0
  private outputTokens = 0
  private costNanoUsd = 0
  private priced = 0
  private unpriced = 0
  private readonly timesMs: number[] = []
  private timesSeen = 0
  private readonly random: () => number

  /** `random` draws the sample: 0 to below 1. */
  constructor(upstream: string, random: () => number) {
    this.upstream = upstream
    this.random = random
  }

  /** Adds an entry, if any of its attempts was made there. */
  add(row: LedgerEntry): void {
    const outcome = outcomeAt(row, this.upstream)
    if (outcome === null) return
    this.requests += 1
    if (row.shadowOf !== null) this.shadowRequests += 1
    if (isFailure(outcome)) this.failures += 1
    if (outcome === 'upstream_rejected') this.rejected += 1
    if (row.upstream === this.upstream) this.addUsage(row, outcome)
  }

  /** The sums so far. */
  figures(): ComparedFigures {
    const { requests, failures, priced, costNanoUsd } = this
    const times = [...this.timesMs].sort((a, b) => a - b)
    return {
      requests,
      shadowRequests: this.shadowRequests,
      failures,
      failureShare: requests === 0 ? null : failures / requests,
      rejected: this.rejected,
      firstContentP50Ms: quantileOf(times, 0.5),
      firstContentP95Ms: quantileOf(times, 0.95),
      inputTokens: this.inputTokens,
      outputTokens: this.outputTokens,
      costNanoUsd,
      costPerRequestNanoUsd: priced === 0 ? null : Math.round(costNanoUsd / priced),
      unpriced: this.unpriced,
    }
  }

  private addUsage({ usage, source, costNanoUsd, hops }: LedgerEntry, outcome: string): void {
    this.inputTokens += usage.input ?? 0
    this.outputTokens += usage.output ?? 0
    if (source !== 'none' && costNanoUsd === null) this.unpriced += 1
    if (source !== 'none' && costNanoUsd !== null) {
      this.priced += 1
      this.costNanoUsd += costNanoUsd
    }
    if (outcome === 'ok' && hops.firstContent !== undefined) {
      this.addTime(Math.max(0, hops.firstContent - (hops.receive ?? 0)))
    }
  }

  /** Reservoir sampling (Vitter's algorithm R): every time is kept with the same probability. */
  private addTime(ms: number): void {
    this.timesSeen += 1
    if (this.timesMs.length < MAX_TIMES) {
      this.timesMs.push(ms)
      return
    }
    const index = Math.floor(this.random() * this.timesSeen)
    if (index < MAX_TIMES) this.timesMs[index] = ms
  }
}

/**
 * The outcome of the last attempt on the upstream; null if there was none, or a faster attempt replaced it.
 */
function outcomeAt({ attempted, upstream, outcome }: LedgerEntry, name: string): string | null {
  if (attempted === null) return upstream === name ? outcome : null
  const attempts = attempted
    .split(', ')
    .filter((attempt) => attempt.startsWith(`${name}:`) && !attempt.endsWith(':cancelled'))
  return attempts.at(-1)?.slice(name.length + 1) ?? null
}

function isFailure(outcome: string): boolean {
  return isKind(outcome) && isProviderFailure(outcome)
}

/** The quantile of sorted times (nearest rank); null without times. */
export function quantileOf(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
