/**
 * Groups of settings of an upstream, each with its schema, its check and its resolved form: connections and
 * TLS, breaker and health probe, native endpoints, and listed models.
 */
import { DAY_MS } from '../base/time-units.js'
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import * as z from 'zod'
import type { ModelFacts, ModelPrices } from '../formats/chat/model-facts.js'
import { factsOfFamily } from './catalogue.js'
import type { Path, ReportFinding } from './config-problem.js'
import { familySchema, priceFacts, pricesSchema } from './schema/catalogue-schema.js'
import { section, type Immutable, type Section } from './schema/section.js'
import { share, whole } from './schema/value-types.js'

const file = z.string().min(1).max(4_096)

/** `upstreams.NAME.tls:` */
export const upstreamTlsSchema = z.strictObject({
  ca: file
    .optional()
    .describe(
      "A PEM file of certificate authorities to trust instead of the system's. Relative paths start at this file.",
    ),
  cert: file.optional().describe('A PEM file with the certificate that the gateway presents.'),
  key: file.optional().describe('The private key of `cert`, PEM.'),
  server_name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/, { error: 'must be a host name' })
    .optional()
    .describe(
      "The name that the upstream's certificate must have, also sent as SNI; default: the host of `base_url`.",
    ),
})

/** `upstreams.NAME.proxy:` */
export const proxySchema = z
  .string()
  .max(2_048)
  .default('env')
  .describe(
    'The HTTP proxy to reach the upstream through (`CONNECT`). `env`: the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. `none`: no proxy. Or its URL: `http://user:password@proxy.corp:3128`. The gateway never bypasses a proxy that fails: the request is answered 502. A proxy resolves names itself, so that `allow_private_address` does not cover what it connects to.',
  )

/** `upstreams.NAME.http2:` */
export const http2Schema = z
  .boolean()
  .default(false)
  .describe(
    'Whether to use HTTP/2 with an upstream that offers it (ALPN, so only with https). Each connection carries one request at a time, as with HTTP/1.1.',
  )

/** The values of these keys in the file's spelling. */
interface ConnectionValues {
  readonly tls?: z.output<typeof upstreamTlsSchema> | undefined
  readonly http2: boolean
  readonly proxy: string
}

type ReadFile = (path: string) => string | null
/** The path of the upstream in the configuration file, and the files that it names. */
interface ConnectionContext {
  readonly path: Path
  readonly isTls: boolean
  readonly readFile: ReadFile
  /** Why `readFile` returned null, as the rest of a sentence. */
  readonly whyUnreadable: (path: string) => string
}

/** Reports problems of these keys; `isTls`: `base_url` starts with https. */
export function checkConnection(
  values: ConnectionValues,
  { path, isTls, readFile, whyUnreadable }: ConnectionContext,
  report: ReportFinding,
): void {
  const { tls, http2, proxy } = values
  if (http2 && !isTls) report([...path, 'http2'], 'needs a base_url that starts with https://')
  checkProxy(proxy, [...path, 'proxy'], report)
  if (tls === undefined) return
  const at = [...path, 'tls']
  if (!isTls) report(at, 'needs a base_url that starts with https://')
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    report(at, 'must have both cert and key, or neither')
  }
  const findings = new Set<string>()
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = tls[name]
    if (file === undefined || readFile(file) !== null) continue
    findings.add(name)
    report([...at, name], `the file "${file}" ${whyUnreadable(file)}`)
  }
  if (findings.size === 0) checkPem(tlsOf(tls, readFile), at, report)
}

/** Reports a `proxy` that is neither a word nor a URL. */
export function checkProxy(proxy: string, path: Path, report: ReportFinding): void {
  if (proxy === 'env' || proxy === 'none' || isProxyUrl(proxy)) return
  report(path, 'must be env, none or a URL, as in http://proxy.corp:3128')
}

function isProxyUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

function checkPem({ ca, cert, key }: UpstreamTlsConfig, at: Path, report: ReportFinding): void {
  if (ca !== null && !isCertificate(ca)) report([...at, 'ca'], 'the file contains no PEM certificate')
  if (cert !== null && !isCertificate(cert)) {
    report([...at, 'cert'], 'the file contains no PEM certificate')
    return
  }
  if (cert === null || key === null) return
  try {
    createSecureContext({ cert, key })
  } catch {
    report([...at, 'key'], 'the file does not contain the PEM private key of cert')
  }
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

/** TLS with one upstream: PEM texts, or null for the default. */
export type UpstreamTlsConfig = Section<z.output<typeof upstreamTlsSchema>>

/** With the content of the files; only for values without findings of `checkConnection`. */
export function connectionOf({ tls, http2, proxy }: ConnectionValues, readFile: ReadFile) {
  return {
    /** Null: the system's authorities, no client certificate. */
    tls: tls === undefined ? null : tlsOf(tls, readFile),
    /** Whether HTTP/2 may be negotiated. */
    http2,
    /** `env`, `none` or the URL of a proxy, which may contain a password. */
    proxy,
  }
}

function tlsOf(tls: z.output<typeof upstreamTlsSchema>, readFile: ReadFile): UpstreamTlsConfig {
  const read = (file: string | undefined): string | null => (file === undefined ? null : readFile(file))
  return {
    ca: read(tls.ca),
    cert: read(tls.cert),
    key: read(tls.key),
    serverName: tls.server_name ?? null,
  }
}

/** `upstreams.NAME.breaker:` */
export const breakerSchema = z
  .strictObject({
    failures: whole(1, 1_000_000).default(5).describe('Consecutive failures that open the breaker.'),
    error_rate: share
      .default(0.5)
      .describe('Share of failed attempts in `window_seconds` that opens the breaker, 0 to 1.'),
    min_requests: whole(1, 1_000_000)
      .default(20)
      .describe('Attempts in `window_seconds` before `error_rate` applies.'),
    window_seconds: whole(1, 3_600).default(10).describe('Time over which the rate is measured.'),
    open_seconds: whole(1, 3_600)
      .default(30)
      .describe('Time after which an open breaker allows one test request.'),
  })
  .prefault({})
  .describe(
    'The circuit breaker: when a failing upstream stops receiving requests. It never fails a request by itself: if there is no other target, or the breakers of all targets are open, the request is sent nevertheless.',
  )

/** `upstreams.NAME.probe:` */
export const probeSchema = z
  .strictObject({
    path: z
      .string()
      .regex(/^\/[^\s#]{0,1023}$/, { error: 'must start with /' })
      .default('/models')
      .describe('Requested with `GET` and the credential of the upstream, below `base_url`.'),
    interval_ms: whole(100, DAY_MS).default(10_000).describe('Time between two probes.'),
  })
  .describe(
    'An active health check by each worker. Connection failures, timeouts and status 500 and above open the circuit breaker after `breaker.failures` probes in a row; a probe that succeeds lets an open breaker test the upstream at once. Left out: no probes.',
  )

/** An active health check. */
export type ProbeConfig = Section<z.output<typeof probeSchema>>

/** When the circuit breaker of an upstream opens, and for how long. */
export type BreakerConfig = Readonly<ReturnType<typeof breakerOf>>

/** The resolved form. */
export function breakerOf(values: z.output<typeof breakerSchema>) {
  const { windowSeconds, openSeconds, ...thresholds } = section(breakerSchema.unwrap(), values)
  return { ...thresholds, windowMs: windowSeconds * 1_000, openMs: openSeconds * 1_000 }
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const SEGMENT = /^(?:\*|[A-Za-z0-9._~!$&'()+,;=:@-]{1,256})$/
const MAX_SEGMENTS = 32

/** `upstreams.NAME.native:` */
export const nativeSchema = z
  .array(z.string().min(1).max(2_048))
  .max(256)
  .default([])
  .describe(
    'Endpoints of the upstream that clients may call untranslated below `/native/NAME/`, each a method and a path: `[ "POST /v1/files", "GET /v1/files/*" ]`. `*` matches one or more segments. The path is the provider\'s own, with its version. A `GET` also admits a WebSocket. Empty: none.',
  )

/** `upstreams.NAME.native_usd_per_request:` */
export const nativePriceSchema = z
  .number()
  .min(0)
  .max(1_000_000)
  .optional()
  .describe(
    'US dollars that a native request costs, in budgets and in the ledger, once the upstream has accepted it. Without it the cost is unknown, and a request under a budget is refused (403) unless `limiting.unknown_price` is `allow`.',
  )

/** `upstreams.NAME.native_sharing:` */
export const nativeSharingSchema = z
  .enum(['account', 'shared'])
  .default('account')
  .describe(
    'Who may use objects at the upstream, such as files, batches, caches, containers and stored prompts. `account`: only the account whose key created them through this gateway; lists show no others, and other ids are answered 404. `shared`: every key, as the upstream allows.',
  )

/** The values of these keys in the file's spelling. */
interface NativeValues {
  readonly native: readonly string[]
  readonly native_usd_per_request?: number | undefined
  readonly native_sharing: z.output<typeof nativeSharingSchema>
  readonly guardrails?: readonly string[] | undefined
}

/**
 * Reports invalid and duplicate entries of `native`: the endpoints of an upstream that clients may call
 * untranslated.
 */
export function checkNative({ native }: NativeValues, path: Path, report: ReportFinding): void {
  native.forEach((entry, index) => {
    const problem = problemOf(entry)
    if (problem !== null) report([...path, 'native', index], problem)
    else if (native.indexOf(entry) < index) report([...path, 'native', index], 'is a duplicate')
  })
}

function problemOf(entry: string): string | null {
  const [method = '', path = '', ...rest] = entry.split(' ')
  if (path === '' || rest.length > 0) {
    return 'must be METHOD /PATH, as in GET /v1/files/*'
  }
  if (!METHODS.includes(method)) return `must start with one of ${METHODS.join(', ')}`
  if (!path.startsWith('/')) return 'must have a path that starts with /'
  if (/[?#]/.test(path)) return 'must have a path without a query or a fragment'
  const segments = path.slice(1).split('/')
  if (segments.length > MAX_SEGMENTS) return `must have at most ${MAX_SEGMENTS} segments`
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    return 'must have a path without . and .. segments'
  }
  if (segments.every((segment) => SEGMENT.test(segment))) return null
  return 'must have a path of plain segments without percent escapes; * must be a whole segment'
}

/** Native access to one upstream. */
type NativeConfig = Immutable<ReturnType<typeof nativeOf>>

/** An endpoint that clients may call untranslated. */
export type NativeRule = NativeConfig['rules'][number]

/** Only for values without findings of `checkNative`. */
export function nativeOf(values: NativeValues) {
  const { native, native_usd_per_request: usd, native_sharing: sharing } = values
  return {
    /** Empty if native access is off. */
    rules: native.map(ruleOf),
    /** Null if the price is unknown. */
    nanoUsdPerRequest: usd === undefined ? null : Math.round(usd * 1e9),
    sharing,
    /** Names of guardrails for native requests; null: the upstream has no list. */
    guardrails: values.guardrails ?? null,
  }
}

function ruleOf(entry: string) {
  const [method = '', path = ''] = entry.split(' ')
  /** Segments of the provider's path; `*` matches one or more. */
  const segments = path.slice(1).split('/')
  return { method, segments }
}

const id = z.string().regex(/^[!-~]{1,256}$/, {
  error: 'must be 1 to 256 printable ASCII characters without spaces',
})
const tokens = z.int().min(1).max(1_000_000_000)

const entry = z.strictObject({
  id: id.describe('The model id that clients request.'),
  family: familySchema
    .optional()
    .describe("The model's maker; `owned_by` in the model list. Default: the name of the upstream."),
  context_window: tokens.optional().describe('Maximum tokens of prompt and reply.'),
  max_output_tokens: tokens.optional().describe('Maximum tokens of a reply.'),
  vision: z.boolean().optional().describe('Supports images in prompts.'),
  tools: z.boolean().optional().describe('Supports function tools.'),
  price: pricesSchema
    .optional()
    .describe('US dollars per million tokens at this upstream, like an entry of `prices`.'),
})

/** `models` of an upstream. */
export const modelsSchema = z
  .array(z.union([id, entry], { error: 'must be a model id, or a map with an id' }))
  .max(1_000)
  .default([])
  .describe(
    'Models of this upstream that are not in the catalogue: ids, or maps `{ id, family, context_window, max_output_tokens, vision, tools, price }` of which only `id` is required. `family` is the maker of the model (default: the name of the upstream), `price` is like an entry of `prices`. `GET /v1/models` lists those that match a route. An entry of the catalogue with the same id wins, except for the price.',
  )

type Values = z.output<typeof modelsSchema>

/** Reports duplicate ids. */
export function checkListed(values: Values, path: Path, report: ReportFinding): void {
  const seen = new Set<string>()
  values.forEach((value, index) => {
    const listed = idOf(value)
    if (seen.has(listed)) report([...path, index], `Duplicate model id "${listed}"`)
    seen.add(listed)
  })
}

/** The facts of the listed models, without prices, which are specific to the upstream. */
export function listedFacts(values: Values, upstream: string): ModelFacts[] {
  return values.map((value) => {
    const facts = factsOfFamily(idOf(value), upstream)
    if (typeof value === 'string') return facts
    if (value.family !== undefined) facts.family = value.family
    if (value.context_window !== undefined) facts.contextWindow = value.context_window
    if (value.max_output_tokens !== undefined) facts.maxOutputTokens = value.max_output_tokens
    if (value.vision !== undefined) facts.vision = value.vision
    if (value.tools !== undefined) facts.tools = value.tools
    return facts
  })
}

/** The prices of the listed models, by id. */
export function listedPrices(values: Values): Record<string, ModelPrices> {
  const prices: [string, ModelPrices][] = []
  for (const value of values) {
    if (typeof value !== 'string' && value.price !== undefined) {
      prices.push([value.id, priceFacts(value.price)])
    }
  }
  return Object.fromEntries(prices)
}

function idOf(value: Values[number]): string {
  return typeof value === 'string' ? value : value.id
}
