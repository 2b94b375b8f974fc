/**
 * The configuration as the code reads it: checked, with defaults and secrets, immutable.
 * `schema/config-file-schema.ts` declares the keys of the file, and `load-config.ts` reads it.
 */
import type { KeyLimits, PlanName } from '../accounts/account.js'
import type { Catalogue } from './catalogue.js'
import type { DialectChoice, IdentityConfig, PlatformConfig } from './platform-settings.js'
import type { QuirksConfig } from './quirks.js'
import type { cacheSchema } from './schema/cache-schema.js'
import type { dashboardOf } from './schema/dashboard-schema.js'
import type {
  adminApiSchema,
  authSchema,
  escrowSchema,
  fetchMediaSchema,
  logSchema,
  onLossSchema,
  responsesSchema,
} from './schema/small-sections-schema.js'
import type { GuardrailConfig } from './schema/guardrails-schema.js'
import type { WorkloadIdentity } from './schema/identity-schema.js'
import type { archiveOf } from './schema/archive-schema.js'
import type { afterDisconnectSchema, ledgerOf } from './schema/ledger-schema.js'
import type { DimensionConfig } from './schema/dimensions-schema.js'
import type { LoginConfig } from './schema/login-schema.js'
import type { LimitConfig, limitingOf } from './schema/limits-schema.js'
import type { RecordConfig } from './schema/record-schema.js'
import type { BatchesConfig, FilesConfig } from './schema/files-and-batches-schema.js'
import type { routeOf } from './schema/route-schema.js'
import type { Immutable, Section } from './schema/section.js'
import type { serverOf } from './schema/server-schema.js'
import type {
  metricsOf,
  notifyOf,
  smtpSchema,
  telemetrySchema,
} from './schema/telemetry-and-notify-schema.js'
import type { upstreamOf } from './resolve-upstream.js'
import type { BreakerConfig, NativeRule, ProbeConfig, UpstreamTlsConfig } from './upstream-settings.js'
import type * as z from 'zod'

/** Listeners, processes and the limits of one request. */
export type ServerConfig = Readonly<ReturnType<typeof serverOf>>

/** Thresholds for refusing requests that the process cannot serve in time, one for each level. */
export type OverloadConfig = ServerConfig['overload']

/** How long a key is cached: before it is looked up again, and while the store is unavailable. */
export type AuthConfig = Section<z.output<typeof authSchema>>

/** Storage of reasoning state between the turns of a conversation. */
export type EscrowConfig = Section<z.output<typeof escrowSchema>>

export type DashboardConfig = Readonly<ReturnType<typeof dashboardOf>>

/** An OpenID Connect provider for signing in; without a secret, a public client. */
export type OidcConfig = NonNullable<DashboardConfig['oidc']>

/** The roles that groups of the identity provider give. */
export type GroupRolesConfig = NonNullable<OidcConfig['roles']>

/** Traces; `otlp` is null for the receiver in the environment. */
export type TelemetryConfig = Section<z.output<typeof telemetrySchema>>

/** A receiver of webhooks. */
export type NotifyConfig = Readonly<ReturnType<typeof notifyOf>[number]>

/** The server that sends mails; `url` may contain a password. */
export type SmtpConfig = Readonly<NonNullable<z.output<typeof smtpSchema>>>

/** Rules for the lines of the log; `file` is an absolute path, null for standard output. */
type LogConfig = Section<z.output<typeof logSchema>>

/** Metrics by labels of keys. */
type MetricsConfig = Readonly<ReturnType<typeof metricsOf>>

/** Limits on reading replies after the client has disconnected. */
type AfterDisconnectConfig = Section<z.output<typeof afterDisconnectSchema>>

/** The database that keeps entries and sums for long. */
export type ArchiveConfig = Immutable<NonNullable<ReturnType<typeof archiveOf>>>

/** Retention of ledger entries, and the spool (an absolute path) while the store is unavailable. */
export type LedgerConfig = Readonly<ReturnType<typeof ledgerOf>>

/** Whether and how the gateway fetches images and files that a client names by URL. */
export type FetchMediaConfig = Section<z.output<typeof fetchMediaSchema>>

/** Settings of limits and budgets. */
export type LimitingConfig = Readonly<ReturnType<typeof limitingOf>>

/** The storage of cached replies. */
export type CacheConfig = Section<z.output<typeof cacheSchema>>

/** Retries of a request before its first content. */
export type RetryConfig = RouteConfig['retry']

/** A second request when the first content is late. */
export type HedgeConfig = NonNullable<RouteConfig['hedge']>

/** Price and limits of a plan. */
export interface PlanConfig {
  readonly priceUsd: number
  /** The file has the price; pages show no other. */
  readonly isPriceSet?: true
  /** Null if unlimited. */
  readonly maxKeys: number | null
  /** Limits of each account, over all its keys. */
  readonly limits: KeyLimits
}

export type {
  BatchesConfig,
  BreakerConfig,
  Catalogue,
  DialectChoice,
  FilesConfig,
  IdentityConfig,
  LimitConfig,
  LoginConfig,
  NativeRule,
  PlatformConfig,
  ProbeConfig,
  QuirksConfig,
  UpstreamTlsConfig,
}

/** A module of the operator. */
export interface PluginConfig {
  /** Its file, and the files that it imports by relative paths, directly or not. */
  readonly files: readonly string[]
  /** Absolute. */
  readonly path: string
  /** Identifies its content. */
  readonly hash: string
}

/** The whole configuration of one generation. */
export interface Config {
  readonly server: ServerConfig
  /** `sqlite:` and an absolute path. */
  readonly store: string
  readonly auth: AuthConfig
  /** Empty: only keys are accepted. */
  readonly identity: readonly WorkloadIdentity[]
  /** Null: programs cannot sign in. */
  readonly login: LoginConfig | null
  readonly escrow: EscrowConfig
  /** How long responses are stored that clients can continue by id; 0 if they are not stored. */
  readonly responses: Section<z.output<typeof responsesSchema>>
  readonly dashboard: DashboardConfig
  readonly adminApi: Section<z.output<typeof adminApiSchema>>
  readonly log: LogConfig
  readonly metrics: MetricsConfig
  readonly telemetry: TelemetryConfig
  readonly notify: readonly NotifyConfig[]
  /** Null: no mails. */
  readonly smtp: SmtpConfig | null
  /** The base of links in error messages, without a trailing slash; null: they have none. */
  readonly docUrl: string | null
  readonly onLoss: z.output<typeof onLossSchema>
  readonly afterDisconnect: AfterDisconnectConfig
  readonly ledger: LedgerConfig
  /** Null: the store keeps all. */
  readonly archive: ArchiveConfig | null
  /** Whether a user message may be inserted before a leading assistant message. */
  readonly allowSyntheticUser: boolean
  readonly fetchMedia: FetchMediaConfig
  readonly cache: CacheConfig
  /** Null: nothing is recorded. */
  readonly record: RecordConfig | null
  /** Null: files and batches are refused. */
  readonly files: FilesConfig | null
  readonly batches: BatchesConfig
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>
  readonly routes: readonly RouteConfig[]
  /** In file order. */
  readonly guardrails: readonly GuardrailConfig[]
  /** In file order. */
  readonly plugins: readonly PluginConfig[]
  /** In the order of the file. */
  readonly plans: Readonly<Record<PlanName, PlanConfig>>
  readonly dimensions: readonly DimensionConfig[]
  readonly limits: readonly LimitConfig[]
  readonly limiting: LimitingConfig
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

/** What made a generation, as the audit trail records it. */
export interface GenerationChange {
  readonly author: string
  readonly reason: string
  /** The generation whose content a rollback restored; null: the files have changed. */
  readonly contentOf: number | null
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
  /** What made it, if the gateway has to record that; null: nothing, or the door of a rollback does. */
  readonly toRecord: GenerationChange | null
  /** Changed settings that need a restart, such as `server.port`; `config` has the values in force. */
  readonly waitingForRestart: readonly string[]
}

/** Which model ids go to which upstreams. */
export type RouteConfig = Immutable<ReturnType<typeof routeOf>>

/** An upstream, and the model that is requested from it; null: the model that the client requested. */
export type TargetName = RouteConfig['fallback'][number]

/** `defaults` of a target. */
export type TargetDefaults = NonNullable<TargetName['defaults']>

/** When a target is taken out of use because too many of its requests failed. */
export type AbortConfig = NonNullable<RouteConfig['targets'][number]['abort']>

/** Copies of some requests to another target, whose replies are dropped. */
export type ShadowConfig = NonNullable<RouteConfig['shadow']>

/** Conditions of a route; all must hold. Null: no condition. */
export type WhenConfig = NonNullable<RouteConfig['when']>

/** A service that the gateway sends requests to. */
export type UpstreamConfig = Immutable<ReturnType<typeof upstreamOf>>

const SHOWN_HASH_CHARS = 12

/** The part of `Snapshot.fileHash` that lists, ledger entries and log lines show. */
export function shownHash(fileHash: string): string {
  return fileHash.slice(0, SHOWN_HASH_CHARS)
}

/** The fields of log lines and notifications that identify a generation, also among gateways. */
export function generationFields({
  generation,
  config,
  fileHash,
}: Pick<Snapshot, 'generation' | 'config' | 'fileHash'>): {
  readonly generation: number
  readonly gateway: string
  readonly generation_hash: string
} {
  return { generation, gateway: config.server.name, generation_hash: shownHash(fileHash) }
}

/** Whether requests can be sent to the upstream: its key is set, or it needs none. */
export function isConfigured(upstream: UpstreamConfig): boolean {
  return upstream.apiKeys.length > 0 || upstream.apiKeySource === null
}
