/** The configuration of one upstream as the code reads it. Part of `config.ts`. */
import type { ModelFacts, ModelPrice } from '../../chat/model.js'
import type { DialectName } from '../../dialects/dialect.js'

/** The wire format of an upstream; `openai` picks chat completions or Responses per model and request. */
export type DialectChoice = DialectName | 'openai'

/** Time limits of one attempt, in milliseconds. */
export interface TimeoutsConfig {
  readonly connectMs: number
  /** Maximum time to the first byte of a streamed reply. */
  readonly firstByteMs: number
  /** The same for a reply that is not streamed. */
  readonly firstByteWholeMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** Edits to request bodies for an upstream that deviates from its dialect; data, not code. */
export interface QuirksConfig {
  readonly drop: readonly string[]
  readonly rename: Readonly<Record<string, string>>
  readonly set: Readonly<Record<string, unknown>>
  /** The same for each entry of `messages`; `roles` maps role names. */
  readonly messages: {
    readonly drop: readonly string[]
    readonly rename: Readonly<Record<string, string>>
    readonly roles: Readonly<Record<string, string>>
  }
  /** Replies in the client's own format: passed through as bytes, or decoded and encoded again. */
  readonly replies: 'pass' | 'rewrite'
}

/** What the gateway does with the upstream when the client disconnects. */
export type OnDisconnect = 'cancel' | 'drain' | 'drain_until_usage'

/** TLS with one upstream: PEM texts, or null for the default. */
export interface UpstreamTlsConfig {
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
  readonly serverName: string | null
}

/** An endpoint that clients may call untranslated. */
export interface NativeRule {
  readonly method: string
  /** Segments of the provider's path; `*` matches one or more. */
  readonly segments: readonly string[]
}

/**
 * Who may use the objects (files, batches, caches, …) at an upstream: `account`, the account that created
 * them through the gateway; `shared`, every account.
 */
export type NativeSharing = 'account' | 'shared'

/** Native access to one upstream. */
export interface NativeConfig {
  /** Empty if native access is off. */
  readonly rules: readonly NativeRule[]
  /** Null if the price is unknown. */
  readonly nanoUsdPerRequest: number | null
  readonly sharing: NativeSharing
}

/** When the circuit breaker of an upstream opens, and for how long. */
export interface BreakerConfig {
  /** Consecutive failures. */
  readonly failures: number
  /** Share of failed attempts within `windowMs`, 0 to 1. */
  readonly errorRate: number
  /** Attempts within `windowMs` before the rate applies. */
  readonly minRequests: number
  readonly windowMs: number
  readonly openMs: number
}

/** An active health check. */
export interface ProbeConfig {
  /** Path below the base URL. */
  readonly path: string
  readonly intervalMs: number
}

/** A service that the gateway sends requests to. */
export interface UpstreamConfig {
  readonly name: string
  /** The preset that supplies its defaults; null if the file names none. */
  readonly preset: string | null
  readonly dialect: DialectChoice
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Replaces the dialect's path; contains `{model}` for the model. Null: the dialect's path. */
  readonly path: string | null
  /** Query parameters added to the URL of every request. */
  readonly query: Readonly<Record<string, string>>
  /** The header that carries the key without a prefix; null: the dialect's own form. */
  readonly keyHeader: string | null
  /**
   * In file order, without duplicates. Empty if the upstream needs no key, or if the variables of its keys
   * are not set and it is unconfigured: see `isConfigured`.
   */
  readonly apiKeys: readonly string[]
  /** The variables and files that the keys come from, for the 503's message; null if the file names none. */
  readonly apiKeySource: string | null
  /** The variables of these that are not set. */
  readonly unsetKeyVariables: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: TimeoutsConfig
  readonly maxConnections: number
  /** Whether `base_url` may resolve to a loopback, private or link-local address. */
  readonly allowPrivateAddress: boolean
  /** Null: the system's authorities, no client certificate. */
  readonly tls: UpstreamTlsConfig | null
  /** Whether HTTP/2 may be negotiated. */
  readonly http2: boolean
  /** `env`, `none` or the URL of a proxy, which may contain a password. */
  readonly proxy: string
  readonly native: NativeConfig
  /** Beta features that clients may request from an Anthropic upstream; null: all. */
  readonly allowBetas: readonly string[] | null
  /**
   * Tools and options of the provider that requests may use if their key has no list; `*` is all. Null: the
   * default.
   */
  readonly allowTools: readonly string[] | null
  readonly quirks: QuirksConfig
  /** Models that the file lists for it; their prices are in `prices`. */
  readonly models: readonly ModelFacts[]
  /** Whether the gateway reads the upstream's own list of models. */
  readonly discover: boolean
  /** `quirks` for embeddings. */
  readonly embeddingQuirks: QuirksConfig
  /** Whether it supports OpenAI's legacy completions. */
  readonly completions: boolean
  /** Prices that replace those of the catalogue, by model; `*` is every other model. */
  readonly prices: Readonly<Record<string, ModelPrice>>
  /**
   * What happens to its reply when the client disconnects; null: `drain_until_usage` under a budget, else
   * `cancel`.
   */
  readonly onDisconnect: OnDisconnect | null
  readonly breaker: BreakerConfig
  /** Null: no active health checks. */
  readonly probe: ProbeConfig | null
}

/** Whether requests can be sent to the upstream: its key is set, or it needs none. */
export function isConfigured(upstream: UpstreamConfig): boolean {
  return upstream.apiKeys.length > 0 || upstream.apiKeySource === null
}
