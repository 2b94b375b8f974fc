/**
 * Finds the operation for a method and path, and the format of its replies and errors. Runs before the key is
 * checked.
 */
import type { DialectName, Endpoint } from '../../dialects/dialect.js'
import {
  nearestRow,
  unservedEndpoint,
  type ClientFormat,
  type UnservedRow,
} from '../../dialects/endpoints.js'
import {
  resolveEndpoint,
  allowedMethods,
  SERVED,
  type ResolvedEndpoint,
} from '../../dialects/index.js'
import { GatewayError } from '../../errors.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
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
  const resolved = resolveEndpoint(method, path)
  if (resolved === null) {
    const unserved = unservedEndpoint(path)
    if (unserved !== null) return notServed(unserved, method, clientRequestId)
    const nearest = nearestRow(method, path, SERVED)
    return {
      resolved: null,
      dialect: path.startsWith('/v1beta/') ? 'gemini' : (nearest?.dialect ?? null),
      operation: null,
      format: null,
      clientRequestId,
      refusal: noEndpoint(method, path, nearest && `${nearest.method} ${nearest.path}`),
    }
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

/** Refuses a vendor's endpoint that the gateway does not serve, in the vendor's format. */
function notServed(
  { path, dialect, advice }: UnservedRow,
  method: string,
  clientRequestId: string | null,
): Identified {
  const message = `There is no endpoint ${method} ${path}. ${advice}`
  const refusal = new GatewayError('unknown_endpoint', message)
  return { resolved: null, dialect, operation: null, format: null, clientRequestId, refusal }
}

/** Maximum length of a client's own request id. */
const CLIENT_ID_CHARS = 128

/**
 * The client's own request id for the log line, reduced to printable ASCII without quotes and backslashes and
 * to 128 characters. Null if the result is empty.
 */
function clientRequestIdOf(req: HttpRequest): string | null {
  const sent = headerOf(req, 'x-request-id') ?? headerOf(req, 'x-client-request-id')
  if (sent === undefined) return null
  const cleaned = sent.replace(/[^ -~]|["'`\\]/g, '').slice(0, CLIENT_ID_CHARS)
  return cleaned === '' ? null : cleaned
}

/** Streams of Gemini are JSON arrays unless the query contains `alt=sse`. */
function isArrayStream(
  { dialect, endpoint }: ResolvedEndpoint,
  req: HttpRequest,
  path: string,
): boolean {
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

/** Maximum length of an unknown path in an error message. */
const SHOWN_CHARS = 100

function noEndpoint(method: string, path: string, nearest: string | null): GatewayError {
  const methods = allowedMethods(path)
  if (methods.length > 0) {
    const message = `This path takes ${methods.join(', ')}, not ${method}.`
    return new GatewayError('method_not_allowed', message)
  }
  const hint =
    nearest === null
      ? 'The endpoints are listed in docs/reference/clients.md; chats go to POST /v1/chat/completions.'
      : `Did you mean ${nearest}?`
  const shown = path.length > SHOWN_CHARS ? `${path.slice(0, SHOWN_CHARS)}…` : path
  return new GatewayError('unknown_endpoint', `There is no endpoint ${method} ${shown}. ${hint}`)
}
