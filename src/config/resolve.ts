/**
 * From the file's checked values to the `Config` that the code reads: rules that span several keys and
 * defaults that depend on other keys.
 * Reads no file.
 */
import { resolve } from 'node:path'
import { checkDashboard, dashboardOf } from './schema/dashboard-schema.js'
import type { Config, OnDisconnect, PlanConfig, QuirksConfig, UpstreamConfig } from './config.js'
import { afterDisconnectOf, ledgerOf } from './schema/ledger-schema.js'
import { priceFacts } from './schema/catalogue-schema.js'
import { amountsOf, checkLimits, limitingOf, limitsOf } from './limits.js'
import { checkListed, listedFacts, listedPrices } from './upstreams/listed-models.js'
import { checkNative, nativeOf } from './upstreams/native.js'
import { PLAIN, PRESETS, type Preset } from './upstreams/presets.js'
import type { Finding, Path } from './problem.js'
import type { KeySources } from './placeholder.js'
import { checkRoutes, routesOf } from './routes/routes.js'
import type { FileValues } from './schema/schema.js'
import { checkTelemetry, notifyOf, telemetryOf } from './schema/telemetry-schema.js'
import { checkServer, serverOf, type TlsCheck } from './schema/server-schema.js'
import { isRedisUrl, parseRedisUrl } from '../store/redis/connection/address.js'
import { isPrivateAddress } from '../upstreams/address.js'
import { checkConnection, connectionOf } from './upstreams/connection.js'
import { breakerOf, probeOf } from './upstreams/health.js'

/** What else the values are resolved against. */
export interface ResolveContext {
  /** The folder of the file, absolute. */
  readonly folder: string
  /** Where the keys of each upstream come from. */
  readonly keySources: KeySources
  /** The text of a file that the configuration names, relative to `folder`; null: not readable. */
  readonly readFile: (path: string) => string | null
  /** Why `readFile` returned null, as the rest of a sentence. */
  readonly whyUnreadable: (path: string) => string
  /** Reads the certificate files. */
  readonly checkTls: TlsCheck
}

/** What the schema gives a stream to begin, and what a whole reply has beside that: it is sent once it is complete. */
const USUAL_FIRST_BYTE_MS = 60_000
const USUAL_FIRST_BYTE_WHOLE_MS = 300_000

type UpstreamValues = FileValues['upstreams'][string]

/** The configuration, or all that is wrong with it. */
export function resolveConfig(
  values: FileValues,
  context: ResolveContext,
): { config: Config | null; findings: Finding[] } {
  const findings: Finding[] = []
  const fault = (path: Path, message: string, suggestion: string | null = null): void => {
    findings.push({ path, message, suggestion })
  }
  checkServer(values.server, context.folder, context.checkTls, fault)
  const store = storeOf(values.store, context.folder, fault)
  for (const [name, upstream] of Object.entries(values.upstreams)) {
    checkUpstream(upstream, ['upstreams', name], context, fault)
  }
  checkTelemetry(values.telemetry, values.notify, fault)
  checkDashboard(values.dashboard, (path, message) => fault(['dashboard', ...path], message))
  checkRoutes(values.routes, Object.keys(values.upstreams), fault)
  checkLimits(values, fault)
  if (findings.length > 0 || store === null) return { config: null, findings }
  return { config: configOf(values, store, context), findings }
}

type Fault = (path: Path, message: string, suggestion?: string | null) => void

function checkUpstream(
  upstream: UpstreamValues,
  path: Path,
  { readFile, whyUnreadable }: ResolveContext,
  fault: Fault,
): void {
  const { preset, dialect } = upstream
  if (dialect === undefined && preset === undefined) fault([...path, 'dialect'], 'is required')
  if (preset !== undefined && dialect !== undefined && !dialect.startsWith('openai')) {
    fault([...path, 'dialect'], 'must be left out: a preset speaks chat completions')
  }
  if (upstream.path !== undefined && dialect === 'openai') {
    fault(
      [...path, 'path'],
      'needs openai-chat or openai-responses as dialect: openai has two paths',
    )
  }
  const baseUrl = baseUrlOf(upstream)
  const at = [...path, 'base_url']
  if (baseUrl === null) {
    fault(at, 'is required')
    return
  }
  if (!URL.canParse(baseUrl)) {
    fault(at, 'must be a URL, as in https://api.openai.com/v1')
    return
  }
  checkAddress(new URL(baseUrl), at, fault)
  const isTls = new URL(baseUrl).protocol === 'https:'
  checkConnection(upstream, { path, isTls, readFile, whyUnreadable }, fault)
  checkHeaders(upstream, path, fault)
  checkNative(upstream, path, fault)
  if (upstream.api_key !== undefined && upstream.api_keys !== undefined) {
    fault([...path, 'api_keys'], 'must be left out: there is an api_key already')
  }
  checkListed(upstream.models, [...path, 'models'], fault)
}

function checkAddress(url: URL, at: Path, fault: Fault): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    fault(at, 'must begin with https:// or http://')
  }
  if (url.username !== '' || url.password !== '') {
    fault(at, 'must not hold a user or password; use api_key or headers')
  }
  if (url.search !== '' || url.hash !== '') fault(at, 'must not have a query or a fragment')
}

function checkHeaders(upstream: UpstreamValues, path: Path, fault: Fault): void {
  const keyHeader = upstream.key_header?.toLowerCase()
  if (keyHeader !== undefined && MANAGED_HEADERS.has(keyHeader)) {
    fault([...path, 'key_header'], 'is set by the gateway itself')
  }
  const names = new Set<string>()
  for (const header of Object.keys(upstream.headers)) {
    const lower = header.toLowerCase()
    const where = [...path, 'headers', header]
    if (MANAGED_HEADERS.has(lower)) fault(where, 'is set by the gateway itself')
    if (names.has(lower)) fault(where, 'stands twice; letter case does not tell headers apart')
    names.add(lower)
  }
}

/** Headers that decide how a message is framed or where it goes. */
const MANAGED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const FORMER_STORE =
  "'lmdb:' is no longer supported: use 'sqlite:' and a file, as in sqlite:./data/sluice.db"
const UNKNOWN_STORE =
  "must be 'sqlite:' and a file, as in sqlite:./data/sluice.db, or a redis:// address"

/** The address with an absolute path if it has one; null if it is none. */
function storeOf(store: string, folder: string, fault: Fault): string | null {
  if (isRedisUrl(store)) {
    const place = parseRedisUrl(store)
    if (!('problem' in place)) return store
    fault(['store'], place.problem)
    return null
  }
  const path = /^sqlite:(.+)$/.exec(store)?.[1]
  if (path !== undefined) return `sqlite:${resolve(folder, path)}`
  const isFormer = store.startsWith('lmdb:')
  fault(['store'], isFormer ? FORMER_STORE : UNKNOWN_STORE)
  return null
}

function configOf(values: FileValues, store: string, context: ResolveContext): Config {
  const { auth, escrow, plans, responses } = values
  const server = serverOf(values.server, context.folder)
  return {
    server,
    store,
    auth: { freshSeconds: auth.fresh_seconds, staleSeconds: auth.stale_seconds },
    responses: { storeSeconds: responses.store_seconds },
    escrow: {
      enabled: escrow.enabled,
      key: escrow.key ?? null,
      ttlSeconds: escrow.ttl_seconds,
      maxEntries: escrow.max_entries,
      maxBytes: escrow.max_bytes,
      memoryBytes: escrow.memory_bytes,
    },
    dashboard: dashboardOf(values.dashboard),
    log: {
      level: values.log.level,
      sampleSuccess: values.log.sample_success,
      slowMs: values.log.slow_ms,
    },
    telemetry: telemetryOf(values.telemetry),
    notify: notifyOf(values.notify, isPrivateHost),
    onLoss: values.on_loss,
    afterDisconnect: afterDisconnectOf(values.after_disconnect),
    ledger: ledgerOf(values.ledger, context.folder, store),
    allowSyntheticUser: values.allow_synthetic_user,
    fetchMedia: {
      enabled: values.fetch_media.enabled,
      maxBytes: values.fetch_media.max_bytes,
      maxPerRequest: values.fetch_media.max_per_request,
      timeoutMs: values.fetch_media.timeout_ms,
      concurrency: values.fetch_media.concurrency,
      allowPrivateAddress: values.fetch_media.allow_private_address,
    },
    upstreams: Object.fromEntries(
      Object.entries(values.upstreams).map(([name, upstream]) => [
        name,
        upstreamOf(name, upstream, context, values.on_disconnect),
      ]),
    ),
    routes: routesOf(values.routes),
    plans: {
      starter: planOf(plans.starter),
      pro: planOf(plans.pro),
      max: planOf(plans.max),
    },
    limits: limitsOf(values),
    limiting: limitingOf(values, server.workers),
  }
}

function baseUrlOf(values: UpstreamValues): string | null {
  return values.base_url ?? presetOf(values)?.baseUrl ?? null
}

function presetOf(values: UpstreamValues): Preset | null {
  return values.preset === undefined ? null : PRESETS[values.preset]
}

/** Only for values that `checkUpstream` has nothing against. */
function upstreamOf(
  name: string,
  values: UpstreamValues,
  { keySources, readFile }: ResolveContext,
  onDisconnect: OnDisconnect,
): UpstreamConfig {
  const { timeouts } = values
  const sources = keySources.get(name) ?? []
  const preset = presetOf(values)
  const baseUrl = baseUrlOf(values) ?? ''
  return {
    name,
    preset: values.preset ?? null,
    dialect: values.dialect ?? 'openai-chat',
    baseUrl: withoutSlashes(baseUrl),
    path: values.path ?? null,
    query: values.query,
    keyHeader: values.key_header ?? preset?.keyHeader ?? null,
    apiKeys: keysOf(values),
    apiKeySource: sources.length === 0 ? null : sources.map(({ source }) => source).join(', '),
    unsetKeyVariables: sources.flatMap(({ source, isSet }) => (isSet ? [] : [source])),
    headers: values.headers,
    timeouts: {
      connectMs: timeouts.connect_ms,
      firstByteMs: timeouts.first_byte_ms,
      firstByteWholeMs: timeouts.first_byte_whole_ms ?? wholeFirstByte(timeouts.first_byte_ms),
      idleMs: timeouts.idle_ms,
      totalMs: timeouts.total_ms,
    },
    maxConnections: values.max_connections,
    allowPrivateAddress: values.allow_private_address ?? isPrivateHost(new URL(baseUrl).hostname),
    ...connectionOf(values, readFile),
    native: nativeOf(values),
    allowBetas: values.allow_betas ?? null,
    quirks: quirksOf(values.quirks, preset?.quirks ?? PLAIN),
    embeddingQuirks: preset?.embeddings ?? PLAIN,
    completions: values.completions ?? preset?.completions === true,
    models: listedFacts(values.models, name),
    discover: values.discover,
    prices: {
      ...preset?.prices,
      ...listedPrices(values.models),
      ...Object.fromEntries(
        Object.entries(values.prices).map(([model, price]) => [model, priceFacts(price)]),
      ),
    },
    onDisconnect: values.on_disconnect ?? onDisconnect,
    breaker: breakerOf(values.breaker),
    probe: probeOf(values.probe),
  }
}

/** Each key once: a key that is listed twice would be asked again right after it was refused. */
function keysOf({ api_key: one, api_keys: several }: UpstreamValues): string[] {
  return one === undefined ? union(several ?? [], []) : [one]
}

/** The file's quirks added to the preset's; `keep` takes back what the preset does. */
function quirksOf(values: UpstreamValues['quirks'], preset: QuirksConfig): QuirksConfig {
  const kept = new Set(values.keep)
  const renamed = Object.entries(preset.rename).filter(([from]) => !kept.has(from))
  const { messages } = values
  return {
    drop: union(
      preset.drop.filter((key) => !kept.has(key)),
      values.drop,
    ),
    rename: { ...Object.fromEntries(renamed), ...values.rename },
    set: { ...preset.set, ...values.set },
    messages: {
      drop: union(preset.messages.drop, messages.drop),
      rename: { ...preset.messages.rename, ...messages.rename },
      roles: { ...preset.messages.roles, ...messages.roles },
    },
    replies: values.replies ?? preset.replies,
  }
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])]
}

function planOf(plan: FileValues['plans']['pro']): PlanConfig {
  return {
    priceUsd: plan.price_usd,
    maxKeys: plan.max_keys === 'unlimited' ? null : plan.max_keys,
    limits: amountsOf(plan.limits),
  }
}

/**
 * Whether a URL's host says by itself that it is this machine or a private network. Names other than
 * `localhost` are not: what they resolve to is another's decision.
 */
function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost')) return true
  return isPrivateAddress(host)
}

/** Who has set a time of their own means every reply. */
function wholeFirstByte(firstByteMs: number): number {
  return firstByteMs === USUAL_FIRST_BYTE_MS ? USUAL_FIRST_BYTE_WHOLE_MS : firstByteMs
}

/** The text without the slashes at its end. */
function withoutSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end -= 1
  return text.slice(0, end)
}
