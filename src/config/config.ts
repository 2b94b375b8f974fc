/**
 * The configuration as the code reads it: checked, defaulted, secrets resolved, immutable. `schema/schema.ts` declares
 * the keys of the file, and `load.ts` reads it.
 */
import type { ModelFacts } from '../chat/model.js'
import type { KeyLimits, PlanName } from '../accounts/account.js'
import type { TlsFiles } from '../http/tls-files.js'
import type { LogLevel } from '../observe/log/log.js'
import type { NotifyGroup } from '../observe/webhooks/notification.js'
import type { RouteConfig } from './routes/route.js'
import type { UpstreamConfig } from './upstreams/upstream.js'

export { isConfigured } from './upstreams/upstream.js'
export type {
  BreakerConfig,
  DialectChoice,
  NativeConfig,
  NativeRule,
  OnDisconnect,
  ProbeConfig,
  QuirksConfig,
  TimeoutsConfig,
  UpstreamConfig,
  UpstreamTlsConfig,
} from './upstreams/upstream.js'

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
