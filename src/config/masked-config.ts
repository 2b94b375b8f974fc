/** The configuration in force with masked secrets, in the file's spelling. */
import { createHash } from 'node:crypto'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../base/json.js'
import {
  isConfigured,
  type BatchesConfig,
  type Config,
  type FilesConfig,
  type DashboardConfig,
  type EscrowConfig,
  type GroupRolesConfig,
  type LimitingConfig,
  type LoginConfig,
  type NotifyConfig,
  type ServerConfig,
  type BreakerConfig,
  type Snapshot,
  type UpstreamConfig,
  type UpstreamTlsConfig,
  type AbortConfig,
  type IdentityConfig,
  type PlatformConfig,
  type ArchiveConfig,
  type RouteConfig,
  type ShadowConfig,
  type TargetName,
} from './config.js'
import type { GuardrailConfig } from './schema/guardrails-schema.js'
import { hideSecrets } from '../hide-secrets.js'
import { shownAmounts, shownLimit } from './schema/limits-schema.js'

/**
 * The snapshot in the file's spelling, for `/config` on the ops port. Keys, header values and texts set into
 * bodies are printed as `***` and four characters that distinguish them.
 */
export function maskedConfig(snapshot: Snapshot): JsonObject {
  return {
    generation: snapshot.generation,
    file_hash: snapshot.fileHash,
    loaded_at: new Date(snapshot.loadedAtMs).toISOString(),
    waiting_for_restart: [...snapshot.waitingForRestart],
    ...objectOf(withoutSecrets(shownConfig(snapshot.config))),
    models: snapshot.catalogue.models.length,
  }
}

/** Masks configured secrets that also occur in settings whose names do not mark them as secret. */
export function withoutSecrets(value: JsonValue): JsonValue {
  if (typeof value === 'string') return hideSecrets(value, '***')
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (!isObject(value)) return value
  return mapValues(value, (inner) => withoutSecrets(inner ?? null))
}

/** All values in the file's spelling, with secrets masked by name. */
export function shownConfig(config: Config): JsonObject {
  return {
    server: shownServer(config.server),
    store: maskedStore(config.store),
    auth: snakeKeys(config.auth),
    identity: config.identity.map((each) => ({ ...each, limits: shownAmounts(each.limits) })),
    login: config.login === null ? null : shownLogin(config.login),
    escrow: maskedEscrow(config.escrow),
    dashboard: shownDashboard(config.dashboard),
    admin_api: snakeKeys(config.adminApi),
    log: snakeKeys(config.log),
    metrics: {
      labels: Object.fromEntries(config.metrics.labels.map(({ name, values }) => [name, values])),
    },
    telemetry: snakeKeys(config.telemetry),
    notify: config.notify.map(maskedNotify),
    smtp: config.smtp === null ? null : { ...config.smtp, url: maskedProxy(config.smtp.url) },
    doc_url: config.docUrl,
    on_loss: config.onLoss,
    after_disconnect: snakeKeys(config.afterDisconnect),
    ledger: snakeKeys(config.ledger),
    archive: config.archive === null ? null : maskedArchive(config.archive),
    allow_synthetic_user: config.allowSyntheticUser,
    fetch_media: snakeKeys(config.fetchMedia),
    batches: shownBatches(config.batches),
    files: config.files === null ? null : shownFiles(config.files),
    upstreams: mapValues(config.upstreams, maskedUpstream),
    routes: config.routes.map((route) => shownRoute(route)),
    guardrails: Object.fromEntries(config.guardrails.map(shownGuardrail)),
    plugins: config.plugins.map(({ path, hash }) => `${path} ${hash}`),
    plans: mapValues(config.plans, ({ priceUsd, maxKeys, limits }) => {
      const shown = { price_usd: priceUsd, max_keys: maxKeys ?? 'unlimited' }
      return { ...shown, limits: shownAmounts(limits) }
    }),
    dimensions: config.dimensions.map(({ name, from, required, maxValues, keepMs }) => {
      return { name, from: [...from], required, max_values: maxValues, keep_seconds: keepMs / 1_000 }
    }),
    limits: config.limits.map((rule) => shownLimit(rule)),
    limiting: maskedLimiting(config.limiting),
  }
}

function shownFiles({ folder, keepMs, upstreams, ...files }: FilesConfig): JsonObject {
  return {
    ...{ ...snakeKeys(files), to: folder ?? 'store', keep_days: keepMs / 86_400_000 },
    upstream: upstreams.openai,
    ...{ upstream_anthropic: upstreams.anthropic, upstream_gemini: upstreams.gemini },
  }
}

function shownBatches({ pollMs, maxOpenPerAccount, queue }: BatchesConfig): JsonObject {
  const { concurrency, upstreams } = queue
  return {
    poll_seconds: pollMs / 1_000,
    max_open_per_account: maxOpenPerAccount,
    queue: { concurrency, upstreams: { ...upstreams } },
  }
}

function shownServer({ adminToken, ...server }: ServerConfig): JsonObject {
  return { ...snakeKeys(server), admin_token: adminToken === null ? null : masked(adminToken) }
}

function maskedLimiting(limiting: LimitingConfig): JsonObject {
  const { unknownPrice, assumedPrice, unknownLength, unknownAudioSeconds, unseenInput } = limiting
  const { unseenInputTokens, assumedOutputTokens, childPlans, budgetStatus, away } = limiting
  const { processes, budgetShare, budgetNanoUsd } = away
  return {
    unknown_price: unknownPrice,
    assumed_price: { ...assumedPrice },
    unknown_length: unknownLength ?? 'refuse',
    unknown_audio_seconds: unknownAudioSeconds,
    unseen_input: unseenInput,
    unseen_input_tokens: { ...unseenInputTokens },
    assumed_output_tokens: assumedOutputTokens,
    ...(childPlans === null ? {} : { child_plans: [...childPlans] }),
    budget_status: budgetStatus,
    away: { processes, budget_share: budgetShare, budget_usd: budgetNanoUsd / 1e9 },
  }
}

/** Without credentials, which end at the last `@`, and without the secret option. */
export function maskedStore(store: string): string {
  return store
    .replace(/^(rediss?[^/]*\/\/)(.*)@/, (_, scheme: string, secret: string) => {
      return `${scheme}${masked(secret)}@`
    })
    .replace(/\bsentinel_password=([^&]*)/, (_, secret: string) => {
      return `sentinel_password=${masked(secret)}`
    })
}

function maskedArchive({ settings, ...archive }: ArchiveConfig): JsonObject {
  // The folder of the file is no setting.
  const shown = Object.entries(snakeKeys(archive)).filter(([key]) => key !== 'folder')
  return { ...Object.fromEntries(shown), url: maskedProxy(archive.url), settings: { ...settings } }
}

function maskedNotify({ url, secret, ...rest }: NotifyConfig): JsonObject {
  return { url: maskedPath(url), ...snakeKeys(rest), secret: masked(secret) }
}

/** The path and query of the URLs of some receivers and guard servers contain a secret. */
function maskedPath(url: string): string {
  const { origin, pathname, search } = new URL(url)
  const path = pathname + search
  return path === '/' ? origin : `${origin}/${masked(path)}`
}

function maskedEscrow(escrow: EscrowConfig): JsonObject {
  const { key } = escrow
  return { ...snakeKeys(escrow), key: key === null ? null : masked(key) }
}

function shownDashboard(dashboard: DashboardConfig): JsonObject {
  const { enabled, publicUrl, selfSignUp, grafanaUrl, groupSessionHours, oidc } = dashboard
  return {
    enabled,
    public_url: publicUrl,
    self_sign_up: selfSignUp,
    grafana_url: grafanaUrl,
    group_session_hours: groupSessionHours,
    oidc:
      oidc === null
        ? null
        : {
            issuer: oidc.issuer,
            client_id: oidc.clientId,
            client_secret: oidc.clientSecret === null ? null : masked(oidc.clientSecret),
            name: oidc.name,
            create_accounts: oidc.createAccounts,
            ...(oidc.roles === null ? {} : { roles: rolesOf(oidc.roles) }),
          },
  }
}

function rolesOf({ claim, admin, auditor, accounts }: GroupRolesConfig): JsonObject {
  return { claim, admin: [...admin], auditor: [...auditor], accounts: { ...accounts } }
}

function shownLogin({ limits, ...login }: LoginConfig): JsonObject {
  return { enabled: true, ...snakeKeys(login), limits: shownAmounts(limits ?? {}) }
}

function maskedUpstream(upstream: UpstreamConfig): JsonObject {
  const { quirks } = upstream
  return {
    preset: upstream.preset,
    platform: upstream.platform?.name ?? null,
    dialect: upstream.dialect,
    ...(upstream.platform === null ? {} : shownPlatform(upstream.platform)),
    auth: upstream.auth === null ? null : maskedAuth(upstream.auth),
    anthropic_version: upstream.anthropicVersion,
    base_url: upstream.baseUrl,
    path: upstream.path,
    query: mapValues(upstream.query, masked),
    key_header: upstream.keyHeader,
    configured: isConfigured(upstream),
    api_keys: upstream.apiKeys.map(masked),
    api_key_source: upstream.apiKeySource,
    headers: mapValues(upstream.headers, masked),
    timeouts: snakeKeys(upstream.timeouts),
    max_connections: upstream.maxConnections,
    allow_private_address: upstream.allowPrivateAddress,
    tls: upstream.tls === null ? null : maskedTls(upstream.tls),
    http2: upstream.http2,
    proxy: maskedProxy(upstream.proxy),
    models: upstream.models.map((facts) => snakeKeys(facts)),
    discover: upstream.discover,
    prices: mapValues(upstream.prices, shownValue),
    on_disconnect: upstream.onDisconnect,
    breaker: shownBreaker(upstream.breaker),
    probe: upstream.probe === null ? null : snakeKeys(upstream.probe),
    allow_betas: upstream.allowBetas === null ? null : [...upstream.allowBetas],
    native_sharing: upstream.native.sharing,
    guardrails: upstream.native.guardrails === null ? null : [...upstream.native.guardrails],
    allow_buckets: [...upstream.allowBuckets],
    allow_tools: upstream.allowTools === null ? null : [...upstream.allowTools],
    quirks: {
      drop: [...quirks.drop],
      rename: { ...quirks.rename },
      set: mapValues(quirks.set, maskedValue),
      messages: {
        drop: [...quirks.messages.drop],
        rename: { ...quirks.messages.rename },
        roles: { ...quirks.messages.roles },
      },
      replies: quirks.replies,
    },
  }
}

function shownPlatform({ region, project, location, ...azure }: PlatformConfig): JsonObject {
  const { apiVersion, deployments } = azure
  return { region, project, location, api_version: apiVersion, deployments: { ...deployments } }
}

/** Names of roles, profiles and clients are shown, secrets are masked. */
function maskedAuth({ cloud, ...values }: IdentityConfig): JsonObject {
  const given = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  const shown = given.map(([key, value]): [string, JsonValue] => [
    snakeCase(key),
    /secret|token|accessKeyId/i.test(key) ? masked(value) : value,
  ])
  return { [cloud]: Object.fromEntries(shown) }
}

/** Certificates are long and public: a hash is enough to compare two. */
function maskedTls({ ca, cert, key, serverName }: UpstreamTlsConfig): JsonObject {
  const shown = (pem: string | null): string | null => (pem === null ? null : masked(pem))
  return { ca: shown(ca), cert: shown(cert), key: shown(key), server_name: serverName }
}

/** Without credentials, which end at the last `@`. */
function maskedProxy(proxy: string): string {
  return proxy.replace(/^(\w+:\/\/)(.*)@/, (_, scheme: string, secret: string) => {
    return `${scheme}${masked(secret)}@`
  })
}

function shownBreaker({ windowMs, openMs, ...breaker }: BreakerConfig): JsonObject {
  const seconds = { window_seconds: windowMs / 1_000, open_seconds: openMs / 1_000 }
  return { ...snakeKeys(breaker), ...seconds }
}

function shownRoute({ match, when, targets, fallback, shadow, ...route }: RouteConfig): JsonObject {
  const conditions =
    when === null ? null : { ...snakeKeys(when), labels: mapValues(when.labels, (label) => label) }
  return {
    ...('prefix' in match && match.prefix === '' ? { model: '*' } : match),
    when: conditions,
    targets: targets.map(({ abort, ...target }) => {
      return { ...shownTarget(target), abort: abort === null ? null : shownAbort(abort) }
    }),
    fallback: fallback.map(shownTarget),
    ...snakeKeys(route),
    shadow: shadow === null ? null : shownShadow(shadow),
  }
}

function shownTarget({ defaults, ...target }: TargetName): JsonObject {
  if (defaults === undefined) return snakeKeys(target)
  const { maxOutputTokens, ...others } = defaults
  const tokens = maxOutputTokens === undefined ? {} : { max_tokens: maxOutputTokens }
  return { ...snakeKeys(target), defaults: { ...snakeKeys(others), ...tokens } }
}

/** Expressions are shown; header values, parameters and the paths of addresses may be secrets. */
function shownGuardrail({ name, source, breaker, ...settings }: GuardrailConfig): [string, JsonObject] {
  const { kind, ...own } = source
  const server =
    kind === 'server'
      ? {
          url: maskedPath(source.url),
          proxy: maskedProxy(source.proxy),
          headers: mapValues(source.headers, masked),
          params: mapValues(source.params, maskedValue),
        }
      : {}
  const opens = { failures: breaker.failures, open_seconds: breaker.openMs / 1_000 }
  return [name, { ...snakeKeys(own), ...server, ...snakeKeys(settings), breaker: opens }]
}

function shownAbort({ windowMs, ...abort }: AbortConfig): JsonObject {
  return { ...snakeKeys(abort), window_seconds: windowMs / 1_000 }
}

function shownShadow({ nanoUsdPerDay, ...shadow }: ShadowConfig): JsonObject {
  return { ...snakeKeys(shadow), usd_per_day: nanoUsdPerDay / 1e9 }
}

/** `***` and 16 bits of the secret's SHA-256: enough to compare two secrets, not to recover one. */
export function masked(secret: string): string {
  return `***${createHash('sha256').update(secret).digest('hex').slice(0, 4)}`
}

function maskedValue(value: unknown): JsonValue {
  if (typeof value === 'string') return masked(value)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => maskedValue(item))
  if (typeof value === 'object') return mapValues({ ...value }, maskedValue)
  return null
}

function mapValues<T>(values: Readonly<Record<string, T>>, map: (value: T) => JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}

/** The values in the file's spelling. */
export function snakeKeys(values: object): JsonObject {
  const entries: [string, unknown][] = Object.entries(values)
  return Object.fromEntries(entries.map(([key, value]) => [snakeCase(key), shownValue(value)]))
}

function shownValue(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map((item) => shownValue(item))
  if (typeof value === 'object' && value !== null) return snakeKeys(value)
  return typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean' ? value : null
}

/** A key in the file's spelling. */
export function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
