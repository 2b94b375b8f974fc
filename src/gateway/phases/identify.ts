/**
 * Finds the operation for a method and path, and the format of its replies and errors. Runs before the key is
 * checked.
 */
import { GatewayError } from '../../errors.js'
import type { DialectName } from '../../formats/dialect.js'
import { resolveEndpoint, allowedMethods, SERVED, type ResolvedEndpoint } from '../../formats/index.js'
import { isModelMethod, nearestRow, shownPath, unservedEndpoint } from '../../formats/match-endpoint.js'
import { isForWebSocket, headerOf, type HttpRequest } from '../../http/message.js'
import { pathOf } from '../../http/request-guard.js'
import { clientRequestIdOf } from '../../http/request-id.js'
import type { Exchange } from '../client-exchange.js'
import { isNativePath } from '../native/native-path.js'
import { isOwnFile, isUploadOfLines } from '../batches/google-files.js'
import { isAtUpstream } from '../native/vendor-files.js'
import type { Identified } from './phase-results.js'

/** Finds the endpoint of the request. */
export function identify(x: Exchange): Identified {
  const { req, path } = x
  const method = req.method ?? ''
  const clientRequestId = clientRequestIdOf(req)
  if (isNativePath(path)) {
    const native = { resolved: null, dialect: null, refusal: null, clientRequestId }
    return { ...native, operation: 'native', format: 'native' }
  }
  const bare = x.generation.snapshot.config.server.barePaths
  const resolved = resolveEndpoint(method, path, { bare })
  if (resolved === null) {
    if (isForWebSocket(req) && isSocketPath(path, bare)) return identifiedSocket(x, clientRequestId)
    const { docUrl } = x.generation.snapshot.config
    const { dialect, refusal } = unknownEndpoint(method, path, { bare, docUrl })
    return { resolved, dialect, operation: null, format: null, clientRequestId, refusal }
  }
  const { endpoint } = resolved
  const dialect = dialectOf(resolved, req, path)
  // Google's paths of either version are one format; Anthropic's clients have files at one path only.
  const format = dialect === 'gemini' ? dialect : resolved.format
  // The files of these vendors' clients are at an upstream of the vendor.
  const isOwn = dialect === 'gemini' && isKeptHere(x, endpoint.model)
  if (endpoint.operation === 'files' && isAtUpstream(dialect) && !isOwn) {
    return { resolved: null, dialect, operation: 'native', format, clientRequestId, refusal: null }
  }
  const isArray = isArrayStream(resolved, req, path)
  return {
    resolved: isArray ? { ...resolved, endpoint: { ...endpoint, array: true } } : resolved,
    dialect,
    operation: endpoint.operation,
    format,
    clientRequestId,
    refusal: null,
  }
}

/** Whether a request of Google's clients is for a file of the gateway: lines and results of batches. */
function isKeptHere({ req, path, generation }: Exchange, id: string | undefined): boolean {
  const { files } = generation.snapshot.config
  if (files === null) return isOwnFile(id)
  const isAll = files.upstreams.gemini === null && id === undefined && req.method !== 'POST'
  return isAll || isOwnFile(id) || isUploadOfLines(req, path)
}

/**
 * Whether the request may open a WebSocket: on a native path, or on one that serves Responses. Such a request
 * has no body.
 */
export function isWebSocket(req: HttpRequest, bare: boolean): boolean {
  const path = pathOf(req.url ?? '')
  return (
    req.method === 'GET' &&
    isForWebSocket(req) &&
    (isNativePath(path) || isSocketPath(path, bare)) &&
    headerOf(req, 'transfer-encoding') === undefined &&
    Number(headerOf(req, 'content-length') ?? 0) === 0
  )
}

/** Whether the path serves Responses, whose turns may also come over a WebSocket. */
function isSocketPath(path: string, bare: boolean): boolean {
  const resolved = resolveEndpoint('POST', path, { bare })
  return resolved?.wire === 'openai-responses' && resolved.endpoint.operation === 'chat'
}

/**
 * A WebSocket for Responses; Codex sends its requests over HTTP after the 426 of a gateway that opens none.
 */
function identifiedSocket(x: Exchange, clientRequestId: string | null): Identified {
  const isOpened = x.upgrade !== null && x.generation.snapshot.config.responses.websocket
  const message = 'This path serves no WebSocket: send the request over HTTP.'
  return {
    ...{ resolved: null, dialect: 'openai-responses', operation: isOpened ? 'socket' : null },
    format: isOpened ? 'responses' : null,
    clientRequestId,
    refusal: isOpened ? null : new GatewayError('no_websocket', message),
  }
}

/** Streams of Gemini are JSON arrays unless the query contains `alt=sse`. */
function isArrayStream({ dialect, endpoint }: ResolvedEndpoint, req: HttpRequest, path: string): boolean {
  if (dialect !== 'gemini' || endpoint.stream !== true) return false
  return new URLSearchParams((req.url ?? '').slice(path.length + 1)).get('alt') !== 'sse'
}

/** The format of the client, which at paths that vendors share its headers and query tell. */
function dialectOf({ dialect, endpoint }: ResolvedEndpoint, req: HttpRequest, path: string): DialectName {
  const { operation } = endpoint
  if (dialect !== 'openai-chat' || !SHARED.has(operation)) return dialect
  if (operation !== 'models' && path.startsWith('/openai/')) return dialect
  if (operation !== 'batches' && headerOf(req, 'anthropic-version') !== undefined) return 'anthropic'
  const query = (req.url ?? '').slice(path.length + 1)
  const hasKey = headerOf(req, 'x-goog-api-key') !== undefined || /(?:^|&)key=/.test(query)
  return hasKey ? 'gemini' : 'openai-chat'
}

/** Operations whose paths OpenAI's, Anthropic's and Google's clients share. */
const SHARED: ReadonlySet<string> = new Set(['models', 'files', 'batches'])

/** The error, and the format of its reply; null if the path is similar to none. */
interface UnknownEndpoint {
  readonly dialect: DialectName | null
  readonly refusal: GatewayError
}

/** Settings that a refusal depends on. */
interface Hints {
  /** Whether paths without `/v1` are served. */
  readonly bare: boolean
  /** The base of links in error messages; null: they have none. */
  readonly docUrl: string | null
}

/**
 * Refuses a request to an endpoint that does not exist, in the vendor's format if the path is one of a
 * vendor's.
 */
function unknownEndpoint(method: string, path: string, hints: Hints): UnknownEndpoint {
  const { docUrl } = hints
  const unserved = unservedEndpoint(method, path)
  if (unserved !== null) {
    const link = docUrl === null ? '' : ` See ${docUrl}${unserved.page}.`
    const message = `There is no endpoint ${method} ${shownPath(path)}. ${unserved.advice}${link}`
    return { dialect: unserved.dialect, refusal: new GatewayError('unknown_endpoint', message) }
  }
  const nearest = nearestRow(method, path, SERVED)
  return {
    dialect: path.startsWith('/v1beta/') ? 'gemini' : (nearest?.dialect ?? null),
    refusal: noEndpoint(method, path, nearest && `${nearest.method} ${nearest.path}`, hints),
  }
}

function noEndpoint(
  method: string,
  path: string,
  nearest: string | null,
  { bare, docUrl }: Hints,
): GatewayError {
  const methods = allowedMethods(path, { bare })
  // A model may have a colon in its name, so a misspelt method looks like a model that GET reads.
  if (methods.length > 0 && !(method === 'POST' && isModelMethod(path))) {
    const message = `This path takes ${methods.join(', ')}, not ${method}.`
    return new GatewayError('method_not_allowed', message)
  }
  const list = docUrl === null ? '' : ` All endpoints: ${docUrl}/reference/clients.md`
  const hint =
    nearest === null ? `Chat requests use POST /v1/chat/completions.${list}` : `Did you mean ${nearest}?`
  const message = `There is no endpoint ${method} ${shownPath(path)}. ${hint}`
  return new GatewayError('unknown_endpoint', message)
}
