/**
 * The state of upstreams between requests: circuit breakers, retry budgets, resting credentials, latencies;
 * and of routes: the spending on hedges. Each part survives a reload if the settings that it depends on did
 * not change.
 */
import type { Config, UpstreamConfig, RouteConfig } from '../../config/config.js'
import { expiryOf } from '../../http/read-tls-files.js'
import { PeakEwma } from '../routing/latency-average.js'
import type { RouteTarget } from '../routing/router.js'
import type { UpstreamGauges } from '../../observe/metrics/gauges.js'
import { Breaker, BREAKER_LEVELS, type BreakerState } from './breaker.js'
import { SYSTEM_CLOCK, type Clock } from '../rolling-sums.js'
import { HedgeBudget, RetryBudget } from './retry-and-hedge-budgets.js'
import { pointOf } from '../routing/order-targets.js'
import { REPORT_INTERVAL_MS } from '../../observe/notification.js'

/** A key of an upstream that the provider refused with 401 or 403. */
export interface DeniedKey {
  readonly upstream: string
  /** Its index in `UpstreamConfig.apiKeys`. */
  readonly index: number
  readonly status: number
}

/** Callbacks that the upstreams of all generations share. */
export interface UpstreamWatch {
  /** A breaker opens, closes, or lets a request test its upstream. */
  onChange: (upstream: string, state: BreakerState) => void
  onDenied: (denied: DeniedKey) => void
}

function newBreaker(
  { name, breaker }: UpstreamConfig,
  clock: Clock,
  watch: UpstreamWatch,
): Breaker {
  return new Breaker(breaker, clock, (state) => watch.onChange(name, state))
}

/** The state of one upstream. */
export class UpstreamState {
  readonly breaker: Breaker
  readonly retries: RetryBudget
  readonly credentials: Credentials
  /** When the client certificate for the upstream expires, in Unix time in seconds; null if it has none. */
  readonly certificateExpiry: number | null
  private readonly latencies: Map<string, PeakEwma>
  private readonly settings: { readonly breaker: string; readonly keys: string }

  /** `previous` is the state in the generation before, null if there is none. */
  constructor(
    config: UpstreamConfig,
    previous: UpstreamState | null,
    { clock, watch }: Pick<UpstreamStates, 'clock' | 'watch'>,
  ) {
    const { apiKeys, baseUrl } = config
    const breaker = JSON.stringify([baseUrl, config.breaker])
    const keys = JSON.stringify([baseUrl, apiKeys])
    this.settings = { breaker, keys }
    const former = previous?.settings
    const hasSameBreaker = previous !== null && former?.breaker === breaker
    this.breaker = hasSameBreaker ? previous.breaker : newBreaker(config, clock, watch)
    const certificate = config.tls?.cert ?? null
    this.certificateExpiry = certificate === null ? null : expiryOf(certificate)
    this.retries = previous?.retries ?? new RetryBudget(clock)
    this.latencies = hasSameBreaker ? previous.latencies : new Map<string, PeakEwma>()
    const hasSameKeys = previous !== null && former?.keys === keys
    const { name } = config
    const onDenied = (index: number, status: number): void =>
      watch.onDenied({ upstream: name, index, status })
    this.credentials = hasSameKeys
      ? previous.credentials
      : new Credentials(apiKeys, clock, onDenied)
  }

  /** The latency of a target's model; targets without a model share one. */
  latency({ model }: Pick<RouteTarget, 'model'>): PeakEwma {
    const name = model ?? ''
    const existing = this.latencies.get(name)
    if (existing !== undefined) return existing
    const created = new PeakEwma()
    this.latencies.set(name, created)
    return created
  }
}

/** The state of all upstreams and routes of a generation. */
export class UpstreamStates {
  readonly clock: Clock
  readonly watch: UpstreamWatch
  private readonly byName: ReadonlyMap<string, UpstreamState>
  /** Of the routes that hedge. */
  private readonly hedges: ReadonlyMap<string, HedgeBudget>

  constructor(
    { upstreams, routes }: Pick<Config, 'upstreams' | 'routes'>,
    previous: UpstreamStates | null,
    clock: Clock = previous?.clock ?? SYSTEM_CLOCK,
  ) {
    this.clock = clock
    this.watch = previous?.watch ?? { onChange: () => undefined, onDenied: () => undefined }
    this.hedges = new Map(
      routes
        .filter(({ hedge }) => hedge !== null)
        .map((route) => {
          const key = routeKey(route)
          return [key, previous?.hedges.get(key) ?? new HedgeBudget(clock)]
        }),
    )
    this.byName = new Map(
      Object.values(upstreams).map((config) => {
        const former = previous?.byName.get(config.name) ?? null
        return [config.name, new UpstreamState(config, former, this)]
      }),
    )
  }

  /** Throws for a name that the configuration does not have. */
  of(upstream: string): UpstreamState {
    const state = this.byName.get(upstream)
    if (state === undefined) throw new Error(`no upstream '${upstream}'`)
    return state
  }

  /**
   * The spending on hedges of a route, kept while it keeps its matcher and conditions; null if it has no
   * `hedge`.
   */
  hedgesOf(route: RouteConfig): HedgeBudget | null {
    return this.hedges.get(routeKey(route)) ?? null
  }

  /** Of `least_latency`: the expected time to first content of a target, in ms; 0 is unknown. */
  latencyMs(target: RouteTarget): number {
    return this.of(target.upstream.name).latency(target).expectedMs(this.clock.now())
  }

  /** The state of each upstream for the metrics. */
  gauges(): UpstreamGauges[] {
    return [...this.byName].map(([name, { breaker, credentials, retries, certificateExpiry }]) => {
      const { resting } = credentials
      const level = BREAKER_LEVELS[breaker.state]
      const breakerChangedAtMs = this.wallMs(breaker.changedAtMs)
      const { denied: retriesDenied } = retries
      return { name, breaker: level, breakerChangedAtMs, resting, retriesDenied, certificateExpiry }
    })
  }

  /** Ms since 1970 of a time of the monotonic clock; 0 for none. */
  private wallMs(atMs: number | null): number {
    return atMs === null ? 0 : Math.round(Date.now() - (this.clock.now() - atMs))
  }

  /** `ok`, or each upstream whose breaker is not closed or that has keys that rest, for `/readyz`. */
  text(): string {
    const troubles = [...this.byName].flatMap(([name, { breaker, credentials }]) => {
      const { state } = breaker
      const { resting, size } = credentials
      return [
        ...(state === 'closed' ? [] : [`circuit breaker of ${name} ${state.replace('_', '-')}`]),
        ...(resting === 0 ? [] : [`${resting} of ${size} keys of ${name} resting`]),
      ]
    })
    return troubles.length === 0 ? 'ok' : troubles.join(', ')
  }
}

function routeKey({ match, when }: RouteConfig): string {
  return JSON.stringify([match, when])
}

// Rotates the API keys of an upstream: each request gets the next key that is not resting. A key that the
// provider refuses or throttles rests for a time; a single key never rests.

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
    this.all =
      keys.length === 0 ? [{ index: 0, key: null }] : keys.map((key, index) => ({ index, key }))
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
