/**
 * What the ledger has on one side of a comparison: an upstream, or one model of it. Pure; fed entry by entry.
 */
import { isProviderFailure, type ErrorKind } from '../errors.js'
import { isSameModel } from './find-price.js'
import type { LedgerEntry } from './entry.js'

/** An upstream of the configuration, and one of its models or all of them (null). */
export interface ComparedName {
  readonly upstream: string
  readonly model: string | null
}

/** The figures of a side. Times are in ms; null is unknown. */
export interface ComparedFigures {
  /** Requests that were sent to it at least once. */
  readonly requests: number
  /** Of these the copies that `shadow` made. */
  readonly shadowRequests: number
  /** Requests whose last attempt on it failed, as circuit breakers count failures. */
  readonly errors: number
  /** Null without requests. */
  readonly errorRate: number | null
  /** Requests that it refused as the client's mistake. */
  readonly rejected: number
  /** From the end of the request's arrival to the first content. */
  readonly firstContentP50Ms: number | null
  readonly firstContentP95Ms: number | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanoUsd: number
  /** The mean over requests with a known cost that used tokens. */
  readonly costPerRequestNanoUsd: number | null
  /** Requests that used tokens and whose price is not known. */
  readonly unpriced: number
  /** Requests whose tokens are estimated. */
  readonly estimated: number
}

/** Above this many times the percentiles are those of a random sample. */
const MAX_TIMES = 50_000

/** `UPSTREAM` or `UPSTREAM/MODEL`. The names of upstreams have no slash. */
export function comparedNameOf(text: string): ComparedName {
  const at = text.indexOf('/')
  if (at === -1) return { upstream: text, model: null }
  return { upstream: text.slice(0, at), model: text.slice(at + 1) }
}

/** Sums up one side. */
export class ComparedUpstream {
  readonly name: ComparedName
  private requests = 0
  private shadowRequests = 0
  private errors = 0
  private rejected = 0
  private inputTokens = 0
  private outputTokens = 0
  private costNanoUsd = 0
  private priced = 0
  private unpriced = 0
  private estimated = 0
  private readonly timesMs: number[] = []
  private timesSeen = 0
  private readonly random: () => number

  /** `random` draws the sample: 0 to below 1. */
  constructor(name: ComparedName, random: () => number) {
    this.name = name
    this.random = random
  }

  /** Adds an entry, if any of its attempts was made on this side. */
  add(row: LedgerEntry): void {
    const { upstream, model } = this.name
    const isLast = row.upstream === upstream
    // Which model an earlier attempt asked for is not in the entry.
    if (model !== null && !(isLast && isSameModel(row.modelAnswered ?? '', model))) return
    const outcome = outcomeAt(row, upstream)
    if (outcome === null) return
    this.requests += 1
    if (row.shadowOf !== null) this.shadowRequests += 1
    if (isFailure(outcome)) this.errors += 1
    if (outcome === 'upstream_rejected') this.rejected += 1
    if (isLast) this.addUse(row, outcome)
  }

  /** The sums so far. */
  figures(): ComparedFigures {
    const { requests, errors, priced, costNanoUsd } = this
    const times = [...this.timesMs].sort((a, b) => a - b)
    return {
      requests,
      shadowRequests: this.shadowRequests,
      errors,
      errorRate: requests === 0 ? null : errors / requests,
      rejected: this.rejected,
      firstContentP50Ms: quantileOf(times, 0.5),
      firstContentP95Ms: quantileOf(times, 0.95),
      inputTokens: this.inputTokens,
      outputTokens: this.outputTokens,
      costNanoUsd,
      costPerRequestNanoUsd: priced === 0 ? null : Math.round(costNanoUsd / priced),
      unpriced: this.unpriced,
      estimated: this.estimated,
    }
  }

  private addUse({ usage, source, costNanoUsd, hops }: LedgerEntry, outcome: string): void {
    this.inputTokens += usage.input ?? 0
    this.outputTokens += usage.output ?? 0
    if (source === 'estimated') this.estimated += 1
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
    const at = Math.floor(this.random() * this.timesSeen)
    if (at < MAX_TIMES) this.timesMs[at] = ms
  }
}

/** How the last attempt on the upstream ended; null if none was made there, or it was cancelled for a faster one. */
function outcomeAt({ attempted, upstream, outcome }: LedgerEntry, name: string): string | null {
  if (attempted === null) return upstream === name ? outcome : null
  const own = attempted
    .split(', ')
    .filter((each) => each.startsWith(`${name}:`) && !each.endsWith(':cancelled'))
  return own.at(-1)?.slice(name.length + 1) ?? null
}

function isFailure(outcome: string): boolean {
  return outcome !== 'ok' && outcome !== 'lost' && isProviderFailure(outcome as ErrorKind)
}

/** The smallest time that at least this share of the times does not exceed; null without times. */
function quantileOf(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
