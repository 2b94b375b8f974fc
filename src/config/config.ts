/**
 * The configuration as the code reads it: checked, with defaults and secrets, immutable.
 * `schema-and-defaults/config-file-schema.ts` declares the keys of the file, and `load-config.ts` reads it.
 */
import type { ModelFacts } from '../chat/model.js'
import type { KeyLimits, PlanName } from '../accounts/account.js'
import type { TlsFiles } from '../http/tls/read-tls-files.js'
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
  NativeSharing,
  OnDisconnect,
  ProbeConfig,
  QuirksConfig,
  TimeoutsConfig,
  UpstreamConfig,
  UpstreamTlsConfig,
} from './upstreams/upstream.js'

/**
 * Thresholds for refusing requests that the process cannot serve in time. Lists have one threshold per level.
 */
export interface OverloadConfig {
  readonly enabled: boolean
  /** Maximum requests in progress in one worker. */
  readonly maxInflight: number
  readonly delayMs: readonly number[]
  readonly heapShare: readonly number[]
  readonly openFilesShare: readonly number[]
  readonly riseMs: number
  readonly holdMs: number
}

/** Listeners, processes and the limits of one request. */
export interface ServerConfig {
  readonly host: string
  readonly port: number
  readonly opsHost: string
  readonly opsPort: number
  /** Names that the Host header of a request to the ops port may have, besides addresses and `localhost`. */
  readonly opsHosts: readonly string[]
  /** Processes that share the port. */
  readonly workers: number
  readonly drainMs: number
  readonly maxBodyBytes: number
  /** Maximum client connections of one worker. */
  readonly maxConnections: number
  readonly headersTimeoutMs: number
  readonly keepAliveMs: number
  /** How long a client may read no byte of a reply. */
  readonly clientStallMs: number
  /** Addresses and networks of reverse proxies. */
  readonly trustedProxies: readonly string[]
  /** Origins whose pages may use the data plane, or `*`; empty for none. */
  readonly cors: { readonly origins: readonly string[] }
  readonly overload: OverloadConfig
  /** Absolute paths of the PEM files; null for HTTP/1.1 without TLS. */
  readonly tls: TlsFiles | null
  /** Required for a rollback on the ops port; null if rollbacks are refused there. */
  readonly adminToken: string | null
}

/** How long a key is cached: before it is looked up again, and while the store is unavailable. */
export interface AuthConfig {
  readonly freshSeconds: number
  readonly staleSeconds: number
}

/** Storage of reasoning state between the turns of a conversation. */
export interface EscrowConfig {
  readonly enabled: boolean
  /** The encryption key; null for a new one at every start. */
  readonly key: string | null
  readonly ttlSeconds: number
  /** Maximum replies in the store. */
  readonly maxEntries: number
  /** Maximum size in the store. */
  readonly maxBytes: number
  /** Maximum size of the cache in each process. */
  readonly memoryBytes: number
}

/** An OpenID Connect provider for signing in. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  /** Null for a public client. */
  readonly clientSecret: string | null
  /** The label of the button. */
  readonly name: string
  readonly createAccounts: boolean
}

/** The dashboard. */
export interface DashboardConfig {
  readonly enabled: boolean
  /** An origin such as `https://llm.example.com`; null for the origin that the page was loaded from. */
  readonly publicUrl: string | null
  readonly selfSignUp: boolean
  readonly grafanaUrl: string | null
  readonly oidc: OidcConfig | null
}

/** Traces. */
export interface TelemetryConfig {
  /** Base URL of the receiver; null for the one in the environment. */
  readonly otlp: string | null
  readonly captureContent: boolean
}

/** A receiver of webhooks. */
export interface NotifyConfig {
  readonly url: string
  readonly events: readonly NotifyGroup[]
  readonly secret: string
  readonly allowPrivateAddress: boolean
}

/** Rules for the lines of the log. */
export interface LogConfig {
  readonly level: LogLevel
  /** Share of successful requests that are logged, 0 to 1. */
  readonly sampleSuccess: number
  /** Slower successful requests are always logged. */
  readonly slowMs: number
}

/** Limits on reading replies after the client has disconnected. */
export interface AfterDisconnectConfig {
  /** Maximum replies that are read in each process. */
  readonly maxStreams: number
  /** Maximum replies of one key among them. */
  readonly maxStreamsPerKey: number
  readonly maxMs: number
}

/** Retention of ledger entries, and the spool for entries while the store is unavailable. */
export interface LedgerConfig {
  readonly keepDays: number
  readonly hoursDays: number
  readonly daysDays: number
  /** Absolute path of the spool folder. */
  readonly spool: string
  /** Maximum size of the spooled entries of each process. */
  readonly spoolMaxBytes: number
  /** Whether entries contain the error message that the client received. */
  readonly errorMessages: boolean
  readonly whenFull: 'serve' | 'refuse'
}

/** Whether and how the gateway fetches images and files that a client names by URL. */
export interface FetchMediaConfig {
  readonly enabled: boolean
  readonly maxBytes: number
  readonly maxPerRequest: number
  readonly timeoutMs: number
  /** Maximum concurrent fetches in one process. */
  readonly concurrency: number
  readonly allowPrivateAddress: boolean
}

/** Price and limits of a plan. */
export interface PlanConfig {
  readonly priceUsd: number
  /** Null if unlimited. */
  readonly maxKeys: number | null
  /** Limits of each account, over all its keys. */
  readonly limits: KeyLimits
}

/** A label of keys: each value has its own count, over all accounts. */
export type LabelScope = `label:${string}`

/** A rate limit or budget. It applies to the requests that match every selector that is not null. */
export interface LimitConfig {
  /** What the limit is counted for. */
  readonly scope: 'key' | 'account' | 'model' | 'upstream' | LabelScope
  readonly plan: PlanName | null
  /** Id of the account, or its e-mail address in lower case. */
  readonly account: string | null
  /** Id of the key. */
  readonly key: string | null
  /** Value of the label in `scope`. */
  readonly value: string | null
  readonly model: string | null
  /** Start of the model's id. */
  readonly prefix: string | null
  readonly upstream: string | null
  readonly amounts: KeyLimits
}

/** Settings of limits and budgets. */
export interface LimitingConfig {
  /** How a budget counts a model without a known price. */
  readonly unknownPrice: 'assume' | 'allow' | 'refuse'
  /** US dollars per million tokens, and per call of a tool that the provider runs, for `assume`. */
  readonly assumedPrice: { readonly input: number; readonly output: number; readonly call: number }
  /** How a budget counts input that the gateway cannot see: as the whole context window, or 403. */
  readonly unseenInput: 'reserve' | 'refuse'
  /** Reply tokens that a budget reserves if no maximum is known; null: the request is refused. */
  readonly unknownLength: number | null
  /** Tokens of a reply, for `tokens_per_minute`, if the request sets no maximum. */
  readonly assumedOutputTokens: number
  /** Used while the store is unavailable. */
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
  /** How long responses are stored that clients can continue by id; 0 if they are not stored. */
  readonly responses: { readonly storeSeconds: number }
  readonly dashboard: DashboardConfig
  readonly log: LogConfig
  readonly telemetry: TelemetryConfig
  readonly notify: readonly NotifyConfig[]
  readonly onLoss: 'report' | 'reject'
  readonly afterDisconnect: AfterDisconnectConfig
  readonly ledger: LedgerConfig
  /**
   * Whether the gateway may insert a user message before a conversation that starts with an assistant
   * message.
   */
  readonly allowSyntheticUser: boolean
  readonly fetchMedia: FetchMediaConfig
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>
  readonly routes: readonly RouteConfig[]
  readonly plans: Readonly<Record<PlanName, PlanConfig>>
  readonly limits: readonly LimitConfig[]
  readonly limiting: LimitingConfig
}

/** The models with their prices and limits. */
export interface Catalogue {
  /** In file order; listed by `GET /v1/models`. */
  readonly models: readonly ModelFacts[]
  /**
   * The facts for an id: of the exact id, else of the longest catalogue id that it extends with `-` (a dated
   * variant), else null.
   */
  find(id: string): ModelFacts | null
}

/** A setting that differs from the previous generation. */
export interface SettingChange {
  /** In the file's spelling: `upstreams.openai.timeouts.idle_ms`. */
  readonly path: string
  /** JSON, secrets masked; null if the setting is new. */
  readonly before: string | null
  /** JSON, secrets masked; null if the setting was removed. */
  readonly after: string | null
}

/** One generation of the configuration. A request keeps the generation that it started with. */
export interface Snapshot {
  readonly generation: number
  /** SHA-256 of the texts of the file and its catalogue, hex. */
  readonly fileHash: string
  readonly loadedAtMs: number
  readonly config: Config
  readonly catalogue: Catalogue
  /** Differences from the previous generation; empty for the first. */
  readonly changes: readonly SettingChange[]
  /** Changed settings that need a restart, such as `server.port`; `config` has the values in force. */
  readonly waitingForRestart: readonly string[]
}
