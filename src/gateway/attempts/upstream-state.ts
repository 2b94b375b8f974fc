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
import { SYSTEM_CLOCK, type Clock } from '../../base/rolling-sums.js'
import { HedgeBudget, RetryBudget } from './retry-and-hedge-budgets.js'
import { Credentials } from './rotate-api-keys.js'

/** A key of an upstream that the provider refused with 401 or 403. */
export interface DeniedKey {
  readonly upstream: string
  /** Its index in `UpstreamConfig.apiKeys`. */
  readonly index: number
  readonly status: number
}

/** Callbacks that the upstreams of all generations share. */
interface UpstreamWatch {
  /** A breaker opens, closes, or lets a request test its upstream. */
  onChange: (upstream: string, state: BreakerState) => void
  onDenied: (denied: DeniedKey) => void
}

function newBreaker({ name, breaker }: UpstreamConfig, clock: Clock, watch: UpstreamWatch): Breaker {
  return new Breaker(breaker, clock, (state) => watch.onChange(name, state))
}

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
    this.credentials = hasSameKeys ? previous.credentials : new Credentials(apiKeys, clock, onDenied)
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
