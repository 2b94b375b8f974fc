/**
 * A route as the code reads it: its models, conditions, targets and failure handling. Part of `config.ts`.
 */

/** An upstream, and the model that is requested from it. */
export interface TargetName {
  readonly upstream: string
  /** Null: the model that the client requested. */
  readonly model: string | null
}

/** When a target is taken out of use because too many of its requests failed. */
export interface AbortConfig {
  /** Share of failures from which on it is taken out of use, above 0 to 1. */
  readonly errorRate: number
  /** Minimum requests in the window. */
  readonly minRequests: number
  readonly windowMs: number
}

/** One of the upstreams that share the requests of a route. */
export interface TargetConfig extends TargetName {
  /** Relative to the other targets; 0 receives no request. At least one target of a route is above 0. */
  readonly weight: number
  /** Null: it stays in use regardless of failures. */
  readonly abort: AbortConfig | null
}

/** Copies of some requests to another target, whose replies are dropped. */
export interface ShadowConfig extends TargetName {
  /** Of the requests of the route, 0 to 100. */
  readonly percent: number
  /** Maximum cost in a day of the calendar (UTC). */
  readonly nanoUsdPerDay: number
  /** Maximum number in progress. */
  readonly concurrent: number
}

/** Conditions of a route; all must hold. Null: no condition. */
export interface WhenConfig {
  /** Labels that the key must have; empty: no condition. */
  readonly labels: Readonly<Record<string, string>>
  readonly images: boolean | null
  readonly tools: boolean | null
  readonly minPromptTokens: number | null
}

/** Retries of a request before its first content. */
export interface RetryConfig {
  /** Maximum attempts on one target, the first included. */
  readonly attempts: number
  /** Retries as a share of the upstream's requests in the last 10 seconds. */
  readonly budget: number
  readonly maxWaitMs: number
  /** Whether a request that may have been executed is sent to the next target. */
  readonly nonIdempotent: boolean
}

/** A second request when the first content is late. */
export interface HedgeConfig {
  readonly afterMs: number
  /** Estimated cost of hedges as a share of the cost of all requests of the route in the last 10 minutes. */
  readonly extraSpend: number
}

/** Which model ids go to which upstreams. */
export interface RouteConfig {
  readonly match: { readonly model: string } | { readonly prefix: string }
  /** Null: the route takes every request for its models. */
  readonly when: WhenConfig | null
  /** At least one. */
  readonly targets: readonly TargetConfig[]
  readonly sticky: 'none' | 'conversation' | 'key'
  readonly balance: 'weighted' | 'least_latency'
  /** Tried in order after the targets. */
  readonly fallback: readonly TargetName[]
  readonly retry: RetryConfig
  /** Null: no hedging. */
  readonly hedge: HedgeConfig | null
  /** Null: no copies. */
  readonly shadow: ShadowConfig | null
}
