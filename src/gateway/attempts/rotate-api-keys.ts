/**
 * Rotates the API keys of an upstream: each request gets the next key that is not resting. A key that the
 * provider refuses or throttles rests for a time; a single key never rests.
 */
import { REPORT_INTERVAL_MS } from '../../observe/notification.js'
import type { Clock } from '../../base/rolling-sums.js'
import { pointOf } from '../routing/order-targets.js'

/** One of the keys; null if the upstream needs none. */
interface Credential {
  /** Its index in `UpstreamConfig.apiKeys`. */
  readonly index: number
  readonly key: string | null
}

const DENIED_MS = 60_000
const THROTTLED_MS = 10_000
/** A longer `Retry-After` is reduced to one hour. */
const MAX_REST_MS = 3_600_000

/** The keys of one upstream. */
export class Credentials {
  private readonly all: readonly Credential[]
  private readonly restUntilMs: number[]
  private readonly reportedAtMs: number[]
  private readonly clock: Clock
  private readonly onDenied: (index: number, status: number) => void
  private turn = 0

  /** `onDenied` is called when the provider refuses a key with 401 or 403, at most once an hour for each. */
  constructor(
    keys: readonly string[],
    clock: Clock,
    onDenied: (index: number, status: number) => void = () => undefined,
  ) {
    this.clock = clock
    this.onDenied = onDenied
    this.all = keys.length === 0 ? [{ index: 0, key: null }] : keys.map((key, index) => ({ index, key }))
    this.restUntilMs = this.all.map(() => 0)
    this.reportedAtMs = this.all.map(() => Number.NEGATIVE_INFINITY)
  }

  /**
   * The key for an attempt of a request that has used the keys `tried`; null if no other one may be tried. A
   * first attempt always gets one: if all rest, the one that is ready soonest. Requests rotate through the
   * keys; requests with the same sticky key prefer the same one, because providers keep prompt caches per
   * account.
   */
  next(tried: ReadonlySet<number>, stickyKey: string | null): Credential | null {
    const nowMs = this.clock.now()
    const untried = this.all.filter(({ index }) => !tried.has(index))
    const ready = untried.filter(({ index }) => this.restsUntil(index) <= nowMs)
    if (ready.length > 0) return this.chosen(ready, stickyKey)
    if (tried.size > 0) return null
    const soonest = untried.sort((a, b) => this.restsUntil(a.index) - this.restsUntil(b.index))
    return soonest[0] ?? null
  }

  /**
   * The provider replied 401, 403 or 429 for this key: it rests for `retryAfterMs` (at most an hour), else
   * for 60 seconds after 401 and 403 and 10 seconds after 429.
   */
  refused(index: number, status: number, retryAfterMs: number | null): void {
    if (status !== 429) this.reportDenied(index, status)
    if (this.all.length === 1) return
    const usualMs = status === 429 ? THROTTLED_MS : DENIED_MS
    const restMs = Math.min(MAX_REST_MS, retryAfterMs ?? usualMs)
    this.restUntilMs[index] = Math.max(this.restsUntil(index), this.clock.now() + restMs)
  }

  /** How many keys there are. */
  get size(): number {
    return this.all.length
  }

  /** How many of them rest now. */
  get resting(): number {
    const nowMs = this.clock.now()
    return this.restUntilMs.filter((untilMs) => untilMs > nowMs).length
  }

  private reportDenied(index: number, status: number): void {
    const nowMs = this.clock.now()
    if (nowMs - (this.reportedAtMs[index] ?? 0) < REPORT_INTERVAL_MS) return
    this.reportedAtMs[index] = nowMs
    this.onDenied(index, status)
  }

  private restsUntil(index: number): number {
    return this.restUntilMs[index] ?? 0
  }

  private chosen(ready: readonly Credential[], stickyKey: string | null): Credential | null {
    if (ready.length === 1) return ready[0] ?? null
    if (stickyKey === null) {
      this.turn += 1
      return ready[this.turn % ready.length] ?? null
    }
    const points = ready.map(({ index }) => pointOf(stickyKey, `credential ${index}`))
    return ready[points.indexOf(Math.max(...points))] ?? null
  }
}
