/**
 * Checks the rules of an upstream that span several keys, and resolves its keys and its preset to an
 * `UpstreamConfig`.
 */
import { resolve } from 'node:path'
import { allowedTools, ANY_TOOL } from '../formats/chat/hosted-tools.js'
import { usualBatchForm, usualForms, type TaskForms } from '../formats/chat/operations.js'
import { isPrivateAddress } from '../http/private-addresses.js'
import type { KeySources } from './fill-placeholders.js'
import {
  authOf,
  DIALECTS,
  checkPlatform,
  platformBaseUrl,
  platformOf,
  withoutSlashes,
} from './platform-settings.js'
import { PRESETS, type Preset } from './presets.js'
import { PLAIN, type QuirksConfig } from './quirks.js'
import type { Path, ReportFinding } from './config-problem.js'
import { shippedLimits, shippedPrices } from './preset-prices.js'
import { priceFacts } from './schema/catalogue-schema.js'
import type { FileValues } from './schema/config-file-schema.js'
import { timeoutsOf } from './schema/upstream-schema.js'
import { section } from './schema/section.js'
import {
  checkConnection,
  connectionOf,
  breakerOf,
  probeSchema,
  checkListed,
  listedFacts,
  listedPrices,
  checkNative,
  nativeOf,
} from './upstream-settings.js'

/** Inputs for resolving an upstream, besides its own keys. */
export interface UpstreamContext {
  /** The sources of each upstream's keys. */
  readonly keySources: KeySources
  /** The text of a file that the configuration names, relative to its folder; null if it is not readable. */
  readonly readFile: (path: string) => string | null
  /** Why `readFile` returned null, as the rest of a sentence. */
  readonly whyUnreadable: (path: string) => string
  /** Variables by name, which may hold addresses of a cloud. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of the file; its relative paths start here. */
  readonly folder: string
}

type UpstreamValues = FileValues['upstreams'][string]

/** An upstream of the file. */
interface NamedUpstream {
  readonly name: string
  readonly values: UpstreamValues
}

/** Reports problems of an upstream that the schema cannot express. */
export function checkUpstream(
  { name, values: upstream }: NamedUpstream,
  context: UpstreamContext,
  report: ReportFinding,
): void {
  const { readFile, whyUnreadable } = context
  const path = ['upstreams', name]
  const { preset, dialect } = upstream
  if (dialect === undefined && preset === undefined)
    report([...path, 'dialect'], `is required: use one of ${DIALECTS.join(', ')}, or set preset`)
  if (preset !== undefined && dialect !== undefined) {
    const own = PRESETS[preset].dialect ?? 'openai-chat'
    if (dialect !== own && !(dialect.startsWith('openai') && own.startsWith('openai'))) {
      report([...path, 'dialect'], `must be removed: the preset ${preset} uses ${own}`)
    }
  }
  if (upstream.path !== undefined && dialect === 'openai') {
    report([...path, 'path'], 'needs the dialect openai-chat or openai-responses: openai uses two paths')
  }
  const hasApiKey =
    upstream.api_key !== undefined ||
    upstream.api_keys !== undefined ||
    (context.keySources.get(name) ?? []).length > 0
  checkPlatform(upstream, { path, hasApiKey, readFile, whyUnreadable }, report)
  const baseUrl = baseUrlOf(upstream, context)
  const at = [...path, 'base_url']
  if (baseUrl === '') return
  if (baseUrl === null) {
    report(at, 'is required: use the URL of the service with its version, as in https://HOST/v1')
    return
  }
  if (!URL.canParse(baseUrl)) {
    report(at, 'must be a URL, as in https://api.openai.com/v1')
    return
  }
  checkAddress(new URL(baseUrl), at, report)
  const isTls = new URL(baseUrl).protocol === 'https:'
  checkConnection(upstream, { path, isTls, readFile, whyUnreadable }, report)
  checkHeaders(upstream, path, report)
  if (
    upstream.allow_buckets.length > 0 &&
    upstream.platform !== 'vertex' &&
    upstream.platform !== 'bedrock'
  ) {
    report([...path, 'allow_buckets'], 'needs platform: vertex or bedrock')
  }
  checkNative(upstream, path, report)
  if (upstream.api_key !== undefined && upstream.api_keys !== undefined) {
    report([...path, 'api_keys'], 'must be removed: api_key is set already')
  }
  checkListed(upstream.models, [...path, 'models'], report)
}

function checkAddress(url: URL, at: Path, report: ReportFinding): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    report(at, 'must start with https:// or http://')
  }
  if (url.username !== '' || url.password !== '') {
    report(at, 'must not contain a user or password: use api_key or headers')
  }
  if (url.search !== '' || url.hash !== '')
    report(at, 'must not have a query or a fragment: use query for parameters')
}

function checkHeaders(upstream: UpstreamValues, path: Path, report: ReportFinding): void {
  const keyHeader = upstream.key_header?.toLowerCase()
  if (keyHeader !== undefined && MANAGED_HEADERS.has(keyHeader)) {
    report([...path, 'key_header'], 'must be removed: the gateway sets this header itself')
  }
  const names = new Set<string>()
  for (const header of Object.keys(upstream.headers)) {
    const lower = header.toLowerCase()
    const headerPath = [...path, 'headers', header]
    if (MANAGED_HEADERS.has(lower)) report(headerPath, 'must be removed: the gateway sets this header itself')
    if (names.has(lower)) report(headerPath, 'is a duplicate: header names are case-insensitive')
    names.add(lower)
  }
}

/** Headers that control framing and routing. */
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

/** The address in the file, of the platform (empty if its keys are incomplete) or the preset; else null. */
function baseUrlOf(values: UpstreamValues, { env }: UpstreamContext): string | null {
  const platform = platformOf(values, env)
  const preset = presetOf(values)
  const ofPreset =
    values.dialect === 'openai-responses' ? (preset?.responsesUrl ?? preset?.baseUrl) : preset?.baseUrl
  return values.base_url ?? platform?.root ?? ofPreset ?? null
}

function presetOf(values: UpstreamValues): Preset | null {
  return values.preset === undefined ? null : PRESETS[values.preset]
}

/** Only for values without findings of `checkUpstream`. */
export function upstreamOf(
  { name, values }: NamedUpstream,
  context: UpstreamContext,
  onDisconnect: UpstreamValues['on_disconnect'],
) {
  const { keySources, readFile, env, folder } = context
  const platform = platformOf(values, env)
  const sources = keySources.get(name) ?? []
  const preset = presetOf(values)
  const dialect = values.dialect ?? preset?.dialect ?? 'openai-chat'
  const root = withoutSlashes(baseUrlOf(values, context) ?? '')
  const baseUrl = platform === null ? root : platformBaseUrl(platform, dialect)
  const { headers, anthropicVersion } = versionOf(values)
  const { batch, ...taskForms } = values.operations
  return {
    name,
    /** The preset that supplies its defaults; null if the file names none. */
    preset: values.preset ?? null,
    dialect,
    /** The cloud that serves it; null for the own API of a vendor. */
    platform,
    /** The identity that authenticates requests; null: API keys, or nothing. */
    auth: authOf(values, (path) => resolve(folder, path)),
    /** The version of Anthropic's API; null: the one that the request was written for. */
    anthropicVersion,
    /** Without a trailing slash. With a platform: its root and its own path. */
    baseUrl,
    /** Replaces the dialect's path; contains `{model}` for the model. Null: the dialect's path. */
    path: values.path ?? null,
    /** Query parameters added to the URL of every request. */
    query:
      typeof platform?.apiVersion === 'string'
        ? { 'api-version': platform.apiVersion, ...values.query }
        : values.query,
    /** The header that carries the key without a prefix; null: the dialect's own form. */
    keyHeader: values.key_header ?? preset?.keyHeader ?? null,
    /**
     * In file order, without duplicates. Empty if the upstream needs no key, or if the variables of its keys
     * are not set and it is unconfigured: see `isConfigured`.
     */
    apiKeys: keysOf(values),
    /** The variables and files of the keys, for the 503's message; null if the file names none. */
    apiKeySource: sources.length === 0 ? null : sources.map(({ source }) => source).join(', '),
    /** The variables of these that are not set. */
    unsetKeyVariables: sources.flatMap(({ source, isSet }) => (isSet ? [] : [source])),
    headers,
    timeouts: timeoutsOf(values.timeouts),
    maxConnections: values.max_connections,
    /** Whether `base_url` may resolve to a loopback, private or link-local address. */
    allowPrivateAddress: values.allow_private_address ?? isPrivateHost(new URL(baseUrl).hostname),
    ...connectionOf(values, readFile),
    native: nativeOf(values),
    /** Beta features that clients may request from an Anthropic upstream; null: all. */
    allowBetas: values.allow_betas ?? null,
    /** Buckets, folders and objects that requests may name at a cloud. */
    allowBuckets: values.allow_buckets,
    /**
     * Tools and options of the provider that requests may use if their key has no list; `*` is all. Null: the
     * default.
     */
    allowTools: allowToolsOf(values),
    quirks: quirksOf(values.quirks, preset?.quirks ?? PLAIN),
    /** `quirks` for embeddings. */
    embeddingQuirks: preset?.embeddings ?? PLAIN,
    /** Whether it supports OpenAI's legacy completions. */
    completions: values.completions ?? preset?.completions === true,
    /** The form in which it serves each operation beside chat and embeddings. */
    operations: {
      ...(preset?.operations ?? usualForms({ dialect, platform: platform?.name ?? null })),
      ...taskForms,
    } satisfies TaskForms,
    /** The form in which it runs batches. */
    batch: batch ?? usualBatchForm({ dialect, platform: platform?.name ?? null }, values.preset ?? null),
    /** Models that the file lists for it; their prices are in `prices`. */
    models: listedFacts(values.models, name),
    /** Whether the gateway reads the upstream's own list of models. */
    discover: values.discover,
    /** Prices of the file that replace those of the catalogue, by model; `*` is every other model. */
    prices: {
      ...listedPrices(values.models),
      ...Object.fromEntries(
        Object.entries(values.prices).map(([model, price]) => [model, priceFacts(price)]),
      ),
    },
    /** Prices of the preset's vendor by model, after those of the file and before the catalogue's. */
    vendorPrices: values.preset === undefined ? {} : { ...shippedPrices(values.preset), ...preset?.prices },
    /** Limits of the preset's vendor by model, for what the catalogue and `models` do not have. */
    vendorLimits: values.preset === undefined ? {} : shippedLimits(values.preset),
    /**
     * What happens to its reply when the client disconnects; null: `drain_until_usage` under a budget, else
     * `cancel`.
     */
    onDisconnect: values.on_disconnect ?? onDisconnect ?? null,
    breaker: breakerOf(values.breaker),
    /** Null: no active health checks. */
    probe: values.probe === undefined ? null : section(probeSchema, values.probe),
  }
}

/**
 * The configured version, and the headers without it: an `anthropic-version` among `headers` replaces the
 * version of the request too, instead of being sent beside it.
 */
function versionOf({ dialect, headers, anthropic_version: version }: UpstreamValues): {
  headers: Record<string, string>
  anthropicVersion: string | null
} {
  if (dialect !== 'anthropic') return { headers, anthropicVersion: null }
  const isVersion = (name: string): boolean => name.toLowerCase() === 'anthropic-version'
  const entries = Object.entries(headers)
  const header = entries.find(([name]) => isVersion(name))?.[1]
  return {
    headers: Object.fromEntries(entries.filter(([name]) => !isVersion(name))),
    anthropicVersion: version ?? header ?? null,
  }
}

function allowToolsOf({ allow_tools: allowed }: UpstreamValues): string[] | null {
  if (allowed === undefined) return null
  return allowed === ANY_TOOL ? [ANY_TOOL] : allowedTools(allowed)
}

/** Without duplicates: a key that was refused is not retried. */
function keysOf({ api_key: one, api_keys: several }: UpstreamValues): string[] {
  return one === undefined ? union(several ?? [], []) : [one]
}

/** The preset's quirks without those in `keep`, and the file's. */
function quirksOf(values: UpstreamValues['quirks'], preset: QuirksConfig): QuirksConfig {
  const keptKeys = new Set(values.keep)
  const renamed = Object.entries(preset.rename).filter(([from]) => !keptKeys.has(from))
  const { messages } = values
  return {
    drop: union(
      preset.drop.filter((key) => !keptKeys.has(key)),
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

/**
 * Whether a URL's host is `localhost` or a loopback, private or link-local address. Other names are resolved
 * when the gateway connects.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost')) return true
  return isPrivateAddress(host)
}

type Upstream = ReturnType<typeof upstreamOf>

/** Paths that the gateway adds to the base URL. */
const ENDPOINT = /\/(?:chat\/completions|completions|responses|messages|embeddings|models)$/i
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/gi
/** Hosts with a version before the endpoints' paths, and that version. */
const VERSIONED: Readonly<Record<string, string>> = {
  'api.openai.com': '/v1',
  'api.anthropic.com': '/v1',
  'generativelanguage.googleapis.com': '/v1beta',
  'api.mistral.ai': '/v1',
  'api.x.ai': '/v1',
  'api.together.xyz': '/v1',
  'api.groq.com': '/openai/v1',
  'openrouter.ai': '/api/v1',
  'api.fireworks.ai': '/inference/v1',
}
/** Vendors with endpoints at the root as well. */
const AT_ROOT: ReadonlySet<string> = new Set(['api.deepseek.com', 'api.perplexity.ai'])
/** Vendors with a version of their own before that of the format. */
const WITH_TWO_VERSIONS: ReadonlySet<string> = new Set(['api.cloudflare.com'])

/**
 * A sentence about a `base_url` that is probably wrong, for `sluice check`; null if it looks right. Sends no
 * request.
 */
export function baseUrlNote(
  upstream: Pick<Upstream, 'baseUrl' | 'path'> & Partial<Pick<Upstream, 'platform'>>,
): string | null {
  if ((upstream.platform ?? null) !== null) return null
  // The resolved URL has no trailing slash.
  const { hostname, pathname } = new URL(upstream.baseUrl)
  const path = pathname === '/' ? '' : pathname
  const endpoint = ENDPOINT.exec(path)?.[0]
  if (endpoint !== undefined) {
    return `base_url ends with "${endpoint}", which the gateway adds itself: end it with the version, as in https://api.openai.com/v1`
  }
  if ((path.match(VERSION) ?? []).length > 1 && !WITH_TWO_VERSIONS.has(hostname))
    return 'base_url contains a version twice'
  if (upstream.path !== null) return null
  const version = Object.hasOwn(VERSIONED, hostname) ? VERSIONED[hostname] : undefined
  if (version !== undefined && !path.startsWith(version)) {
    return `base_url does not end with "${version}": the endpoints of ${hostname} are below it`
  }
  // `dialectNote` names the platform of such a host.
  const isCloud = CLOUD_HOSTS.some(([host]) => host.test(hostname))
  if (path === '' && !AT_ROOT.has(hostname) && !isCloud) {
    return 'base_url has no path: the endpoints of most servers are below "/v1"'
  }
  return null
}

/** The formats of hosts that have their own, or several; others of the presets use chat completions. */
const OWN_DIALECTS: Readonly<Record<string, readonly string[]>> = {
  'api.openai.com': ['openai', 'openai-chat', 'openai-responses'],
  'api.anthropic.com': ['anthropic'],
  'generativelanguage.googleapis.com': ['gemini'],
  // These have the endpoint of Responses, too, and gateways that of Messages.
  'openrouter.ai': ['openai-chat', 'openai', 'openai-responses', 'anthropic'],
  'ai-gateway.vercel.sh': ['openai-chat', 'openai', 'openai-responses', 'anthropic'],
  'api.groq.com': ['openai-chat', 'openai', 'openai-responses'],
  'api.x.ai': ['openai-chat', 'openai', 'openai-responses', 'anthropic'],
  'api.perplexity.ai': ['openai-chat', 'openai', 'openai-responses'],
}
/** The hosts of the presets, without those of this machine. */
const VENDOR_HOSTS: ReadonlySet<string> = new Set(
  Object.values(PRESETS).flatMap(({ baseUrl }) => {
    const hostname = baseUrl === null ? '' : new URL(baseUrl).hostname
    return hostname === '' || isPrivateHost(hostname) ? [] : [hostname]
  }),
)
/** Hosts that need the requests of a platform, for paths that are not of a vendor's format. */
const CLOUD_HOSTS: readonly (readonly [host: RegExp, platform: string])[] = [
  [/^bedrock-runtime[\w.-]*\.amazonaws\.com$/, 'bedrock'],
  [/(?:^|-)aiplatform\.googleapis\.com$/, 'vertex'],
  [/\.(?:openai|services\.ai|cognitiveservices)\.azure\.com$/, 'azure'],
]
/** Paths at which vendors serve the format of another one, as in `https://api.deepseek.com/anthropic`. */
const OTHER_FORMAT = /\/(?:openai|openapi|anthropic)(?:\/|$)/

/** A sentence about a dialect that does not fit the host of the upstream; null if it does, or is unknown. */
export function dialectNote({
  baseUrl,
  dialect,
  platform,
  path,
}: Pick<Upstream, 'baseUrl' | 'dialect' | 'platform' | 'path'>): string | null {
  const { hostname, pathname } = new URL(baseUrl)
  if (platform !== null || path !== null) return null
  const cloud = CLOUD_HOSTS.find(([host]) => host.test(hostname))?.[1]
  if (cloud !== undefined && !OTHER_FORMAT.test(pathname)) {
    return `the dialect ${dialect} does not fit ${hostname}: write platform: ${cloud} beside it`
  }
  if (!VENDOR_HOSTS.has(hostname)) return null
  const version = Object.hasOwn(VERSIONED, hostname) ? (VERSIONED[hostname] ?? '') : ''
  const rest = pathname.startsWith(version) ? pathname.slice(version.length) : pathname
  if (OTHER_FORMAT.test(rest)) return null
  const own = Object.hasOwn(OWN_DIALECTS, hostname) ? OWN_DIALECTS[hostname] : undefined
  const fitting = own ?? ['openai-chat']
  if (fitting.includes(dialect)) return null
  return `the dialect ${dialect} does not fit ${hostname}: write dialect: ${fitting[0] ?? ''}`
}
