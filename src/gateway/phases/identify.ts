/**
 * Finds the operation for a method and path, and the format of its replies and errors. Runs before the key is
 * checked.
 */
import { gatewayError, GatewayError, type WireError } from '../../errors.js'
import type { DialectName, Endpoint } from '../../formats/dialect.js'
import { resolveEndpoint, allowedMethods, SERVED, type ResolvedEndpoint } from '../../formats/index.js'
import {
  isModelMethod,
  nearestRow,
  shownPath,
  unservedEndpoint,
  type ClientFormat,
} from '../../formats/match-endpoint.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { httpOnly } from '../../http/refuse-request.js'
import { clientRequestIdOf } from '../../http/request-id.js'
import type { Exchange } from '../client-exchange.js'
import { isNativePath } from '../native/native-path.js'

/** The endpoint of a request. */
export interface Identified {
  /** Null for native access, and if there is no such endpoint. */
  readonly resolved: ResolvedEndpoint | null
  /** The format of the reply; null if the path does not determine it. */
  readonly dialect: DialectName | null
  readonly operation: Endpoint['operation'] | 'native' | null
  /** The client's format, for metrics and the ledger; null if the path is unknown. */
  readonly format: ClientFormat | 'native' | null
  /** The client's own request id without unsafe characters; null if it sent none. */
  readonly clientRequestId: string | null
  /** `unknown_endpoint` or `method_not_allowed`; null if the endpoint exists. */
  readonly refusal: GatewayError | null
}

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
    const socket = socketRefusal(req, path)
    const { dialect, refusal } =
      socket === null
        ? unknownEndpoint(method, path, { bare, docUrl: x.generation.snapshot.config.docUrl })
        : { dialect: 'openai-responses' as const, refusal: gatewayError(socket) }
    return { resolved, dialect, operation: null, format: null, clientRequestId, refusal }
  }
  const { dialect, endpoint, format } = resolved
  const isList = endpoint.operation === 'models'
  const isArray = isArrayStream(resolved, req, path)
  return {
    resolved: isArray ? { ...resolved, endpoint: { ...endpoint, array: true } } : resolved,
    dialect: isList && dialect === 'openai-chat' ? listDialectOf(req, path) : dialect,
    operation: endpoint.operation,
    format,
    clientRequestId,
    refusal: null,
  }
}

/** The refusal of a WebSocket; null for other requests, and for paths that do not refuse it so. */
function socketRefusal(req: HttpRequest, path: string): WireError | null {
  return headerOf(req, 'upgrade')?.toLowerCase() === 'websocket' ? httpOnly(path) : null
}

/** Streams of Gemini are JSON arrays unless the query contains `alt=sse`. */
function isArrayStream({ dialect, endpoint }: ResolvedEndpoint, req: HttpRequest, path: string): boolean {
  if (dialect !== 'gemini' || endpoint.stream !== true) return false
  return new URLSearchParams((req.url ?? '').slice(path.length + 1)).get('alt') !== 'sse'
}

/** The list format for a client of `/v1/models`, recognised by its headers and query. */
function listDialectOf(req: HttpRequest, path: string): DialectName {
  if (headerOf(req, 'anthropic-version') !== undefined) return 'anthropic'
  const query = (req.url ?? '').slice(path.length + 1)
  const hasKey = headerOf(req, 'x-goog-api-key') !== undefined || /(?:^|&)key=/.test(query)
  return hasKey ? 'gemini' : 'openai-chat'
}

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
