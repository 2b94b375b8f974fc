/**
 * The configuration as the code reads it: checked, defaulted, secrets resolved, immutable.
 * Knows no YAML; `schema.ts` says how the file spells this, `load.ts` reads it.
 */
import type { ModelFacts, ModelPrice } from '../chat/model.js'
import type { KeyLimits, PlanName } from '../accounts/account.js'
import type { DialectName } from '../dialects/dialect.js'
import type { TlsFiles } from '../http/tls-files.js'
import type { LogLevel } from '../observe/log/log.js'
import type { NotifyGroup } from '../observe/webhooks/notification.js'
import type { RouteConfig } from './routes/route.js'

/** How an upstream is spoken to: `openai` picks chat or Responses per model and request. */
export type DialectChoice = DialectName | 'openai'

/** When requests are refused because the process cannot serve them in time. Lists have one bound for each level. */
export interface OverloadConfig {
  readonly enabled: boolean
  /** Requests under way in one worker. */
  readonly maxInflight: number
  readonly delayMs: readonly number[]
  readonly heapShare: readonly number[]
  readonly openFilesShare: readonly number[]
  readonly riseMs: number
  readonly holdMs: number
}

/** Listeners, processes and what one request may take. */
export interface ServerConfig {
  readonly host: string
  readonly port: number
  readonly opsHost: string
  readonly opsPort: number
  /** Processes that share the port. */
  readonly workers: number
  readonly drainMs: number
  readonly maxBodyBytes: number
  /** Client connections of one worker. */
  readonly maxConnections: number
  readonly headersTimeoutMs: number
  readonly keepAliveMs: number
  /** How long a client may read nothing of a reply. */
  readonly clientStallMs: number
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[]
  /** Origins whose pages may use the data plane, or `*`; empty: none. */
  readonly cors: { readonly origins: readonly string[] }
  readonly overload: OverloadConfig
  /** Absolute paths; null: plain HTTP/1.1. */
  readonly tls: TlsFiles | null
  /** Required for a rollback on the ops port; null: rollbacks are refused there. */
  readonly adminToken: string | null
}

/** For how many seconds a key is believed: without asking again, and while the store is away. */
export interface AuthConfig {
  readonly freshSeconds: number
  readonly staleSeconds: number
}

/** How reasoning state is kept between the turns of a conversation. */
export interface EscrowConfig {
  readonly enabled: boolean
  /** Null: a new one with every start. */
  readonly key: string | null
  readonly ttlSeconds: number
  /** Of the store. */
  readonly maxEntries: number
  /** Of the store. */
  readonly maxBytes: number
  /** Of each process. */
  readonly memoryBytes: number
}

/** An OpenID Connect provider that people may sign in with. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  /** Null: a public client. */
  readonly clientSecret: string | null
  /** What the button says. */
  readonly name: string
  readonly createAccounts: boolean
}

/** The web page for account holders. */
export interface DashboardConfig {
  readonly enabled: boolean
  /** An origin, such as `https://llm.example.com`; null: the one that a page was loaded from. */
  readonly publicUrl: string | null
  readonly selfSignUp: boolean
  readonly grafanaUrl: string | null
  readonly oidc: OidcConfig | null
}

/** Traces. */
export interface TelemetryConfig {
  /** Base URL of the receiver; null: as the environment says. */
  readonly otlp: string | null
  readonly captureContent: boolean
}

/** A URL that webhooks are sent to. */
export interface NotifyConfig {
  readonly url: string
  readonly events: readonly NotifyGroup[]
  readonly secret: string
  readonly allowPrivateAddress: boolean
}

/** How much is logged. */
export interface LogConfig {
  readonly level: LogLevel
  /** Share of successful requests whose line is written, 0 to 1. */
  readonly sampleSuccess: number
  /** A success that took longer has its line in any case. */
  readonly slowMs: number
}

/** How long an upstream may take, in milliseconds. */
export interface TimeoutsConfig {
  readonly connectMs: number
  /** Of a stream. */
  readonly firstByteMs: number
  /** Of a reply that is asked for whole. */
  readonly firstByteWholeMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** Edits for an upstream that departs from its dialect; data, not code. */
export interface QuirksConfig {
  readonly drop: readonly string[]
  readonly rename: Readonly<Record<string, string>>
  readonly set: Readonly<Record<string, unknown>>
  /** The same for each entry of `messages`; `roles` says another word for a role. */
  readonly messages: {
    readonly drop: readonly string[]
    readonly rename: Readonly<Record<string, string>>
    readonly roles: Readonly<Record<string, string>>
  }
  /** Whether replies in the client's own format pass as bytes or are read and written again. */
  readonly replies: 'pass' | 'rewrite'
}

/** What to do with the upstream when the client leaves. */
export type OnDisconnect = 'cancel' | 'drain' | 'drain_until_usage'

/** How much is read on after clients have left. */
export interface AfterDisconnectConfig {
  /** Of each process. */
  readonly maxStreams: number
  readonly maxMs: number
}

/** What the ledger keeps, and where rows wait while it is away. */
export interface LedgerConfig {
  readonly keepDays: number
  readonly hoursDays: number
  readonly daysDays: number
  /** An absolute folder. */
  readonly spool: string
  /** Of each process. */
  readonly spoolMaxBytes: number
  /** Entries keep the message that a failed request was answered with. */
  readonly errorMessages: boolean
  readonly whenFull: 'serve' | 'refuse'
}

/** TLS with one upstream; PEM texts, null where the defaults hold. */
export interface UpstreamTlsConfig {
  readonly ca: string | null
  readonly cert: string | null
  readonly key: string | null
  readonly serverName: string | null
}

/** An endpoint that clients may call untranslated. */
export interface NativeRule {
  readonly method: string
  /** Of the provider's path; `*` stands for one or more. */
  readonly segments: readonly string[]
}

/** Native access to one upstream. */
export interface NativeConfig {
  /** Empty: none. */
  readonly rules: readonly NativeRule[]
  /** Null: unknown. */
  readonly nanoUsdPerRequest: number | null
}

/** When the circuit breaker of an upstream opens, and for how long. */
export interface BreakerConfig {
  /** Consecutive. */
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
  /** Below the base URL. */
  readonly path: string
  readonly intervalMs: number
}

/** A service that models are asked at. */
export interface UpstreamConfig {
  readonly name: string
  /** Whose address and quirks it took over; null where the file says all itself. */
  readonly preset: string | null
  readonly dialect: DialectChoice
  /** No trailing slash. */
  readonly baseUrl: string
  /** Instead of the dialect's path, with `{model}` for the model; null for the dialect's own. */
  readonly path: string | null
  /** Added to the address of every request. */
  readonly query: Readonly<Record<string, string>>
  /** The header that carries the key as it is; null for the dialect's own form. */
  readonly keyHeader: string | null
  /**
   * In file order, each once. Empty if the upstream needs no key, or if the variables of its keys are not set
   * and it is unconfigured: see `isConfigured`.
   */
  readonly apiKeys: readonly string[]
  /** The variables and files that the keys come from, for the 503's message; null if none is named. */
  readonly apiKeySource: string | null
  /** Those of the variables that are not set. */
  readonly unsetKeyVariables: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: TimeoutsConfig
  readonly maxConnections: number
  /** Whether `base_url` may resolve to a loopback, private or link-local address. */
  readonly allowPrivateAddress: boolean
  /** Null: the usual authorities, no client certificate. */
  readonly tls: UpstreamTlsConfig | null
  /** Whether HTTP/2 may be negotiated. */
  readonly http2: boolean
  /** `env`, `none` or the URL of a proxy, which may hold a password. */
  readonly proxy: string
  readonly native: NativeConfig
  /** Beta features that clients may ask an Anthropic upstream for; null: all. */
  readonly allowBetas: readonly string[] | null
  readonly quirks: QuirksConfig
  /** Models that the file lists for it; their prices are in `prices`. */
  readonly models: readonly ModelFacts[]
  /** Whether the upstream is asked which models it has. */
  readonly discover: boolean
  /** The same for embeddings. */
  readonly embeddingQuirks: QuirksConfig
  /** It has OpenAI's legacy completions. */
  readonly completions: boolean
  /** What it takes for a model, where that is not what the catalogue says; `*` is any other model. */
  readonly prices: Readonly<Record<string, ModelPrice>>
  /** What happens to its answer when the client leaves. */
  readonly onDisconnect: OnDisconnect
  readonly breaker: BreakerConfig
  /** Null: no active health checks. */
  readonly probe: ProbeConfig | null
}

/** Whether and how pictures and files that a client names by URL are fetched for an upstream. */
export interface FetchMediaConfig {
  readonly enabled: boolean
  readonly maxBytes: number
  readonly maxPerRequest: number
  readonly timeoutMs: number
  /** Fetches at once in one process. */
  readonly concurrency: number
  readonly allowPrivateAddress: boolean
}

/** What a plan costs and allows. */
export interface PlanConfig {
  readonly priceUsd: number
  /** Null is unlimited. */
  readonly maxKeys: number | null
  /** Of each account, all its keys together. */
  readonly limits: KeyLimits
}

/** A label of keys: each value is counted by itself, over all accounts. */
export type LabelScope = `label:${string}`

/** A rule that limits use; it applies where every selector that is not null fits. */
export interface LimitConfig {
  /** What is counted. */
  readonly scope: 'key' | 'account' | 'model' | 'upstream' | LabelScope
  readonly plan: PlanName | null
  /** An id. */
  readonly account: string | null
  /** An id. */
  readonly key: string | null
  readonly model: string | null
  /** Of a model's id. */
  readonly prefix: string | null
  readonly upstream: string | null
  readonly amounts: KeyLimits
}

/** How limits and budgets are kept. */
export interface LimitingConfig {
  /** How a budget treats a model of unknown price. */
  readonly unknownPrice: 'assume' | 'allow' | 'refuse'
  /** US dollars per million tokens, for `assume`. */
  readonly assumedPrice: { readonly input: number; readonly output: number }
  /** Reply tokens that a budget reserves if no maximum is known; null: the request is refused. */
  readonly unknownLength: number | null
  /** Of an answer, for `tokens_per_minute`, where the request names no maximum. */
  readonly assumedOutputTokens: number
  /** While the store does not answer. */
  readonly away: {
    /** Processes that share the limits. */
    readonly processes: number
    readonly budgetShare: number
    readonly budgetNanoUsd: number
  }
}

/** The whole configuration of one generation. */
export interface Config {
  readonly server: ServerConfig
  /** `sqlite:` and an absolute path. */
  readonly store: string
  readonly auth: AuthConfig
  readonly escrow: EscrowConfig
  /** For how long answers are kept that clients go on from by name; 0: not at all. */
  readonly responses: { readonly storeSeconds: number }
  readonly dashboard: DashboardConfig
  readonly log: LogConfig
  readonly telemetry: TelemetryConfig
  readonly notify: readonly NotifyConfig[]
  readonly onLoss: 'report' | 'reject'
  readonly afterDisconnect: AfterDisconnectConfig
  readonly ledger: LedgerConfig
  /** Whether a user's message may be put before a conversation that an assistant's begins. */
  readonly allowSyntheticUser: boolean
  readonly fetchMedia: FetchMediaConfig
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>
  readonly routes: readonly RouteConfig[]
  readonly plans: Readonly<Record<PlanName, PlanConfig>>
  readonly limits: readonly LimitConfig[]
  readonly limiting: LimitingConfig
}

/** What the gateway knows of models. */
export interface Catalogue {
  /** In file order; what `GET /v1/models` lists. */
  readonly models: readonly ModelFacts[]
  /**
   * The facts for an id: exact, else the longest catalogue id that it extends with `-` (a dated
   * variant), else null.
   */
  find(id: string): ModelFacts | null
}

/** Something that differs from the generation before. */
export interface SettingChange {
  /** In the file's spelling: `upstreams.openai.timeouts.idle_ms`. */
  readonly path: string
  /** JSON, secrets masked; null: it was not there. */
  readonly before: string | null
  /** JSON, secrets masked; null: it is gone. */
  readonly after: string | null
}

/** One generation of the configuration. A request holds the one it started with. */
export interface Snapshot {
  readonly generation: number
  /** SHA-256 of the file's text and of its catalogue's, hex. */
  readonly fileHash: string
  readonly loadedAtMs: number
  readonly config: Config
  readonly catalogue: Catalogue
  /** What differs from the generation before; empty for the first. */
  readonly changes: readonly SettingChange[]
  /** Settings that the file changed and that need a restart, such as `server.port`; `config` has the values in force. */
  readonly waitingForRestart: readonly string[]
}

/** Whether the upstream can be asked: its key is known, or it needs none. */
export function isConfigured(upstream: UpstreamConfig): boolean {
  return upstream.apiKeys.length > 0 || upstream.apiKeySource === null
}
