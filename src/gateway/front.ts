/**
 * What is decided of a request before its key is judged: the endpoint, the format of its replies, and the refusal of
 * a method or path that does not exist.
 */
import type { DialectName } from '../dialects/dialect.js'
import { nearestRow } from '../dialects/endpoints.js'
import { addressed, methodsAt, SERVED, type Addressed } from '../dialects/index.js'
import { GatewayError } from '../errors.js'
import { headerOf, type HttpRequest } from '../http/message.js'
import type { Exchange } from './exchange.js'
import { isNativePath } from './native/path.js'

/**
 * The endpoint of the request; null for native access. Notes the dialect first, so that every refusal is written in
 * the client's format. Throws `unknown_endpoint` and `method_not_allowed`.
 */
export function endpointOf(x: Exchange): Addressed | null {
  const { req, path } = x
  const method = req.method ?? ''
  if (isNativePath(path)) {
    x.operation = 'native'
    x.format = 'native'
    return null
  }
  const at = addressed(method, path)
  if (at === null) {
    const nearest = nearestRow(method, path, SERVED)
    x.dialect = path.startsWith('/v1beta/') ? 'gemini' : (nearest?.dialect ?? null)
    throw noEndpoint(method, path, nearest && `${nearest.method} ${nearest.path}`)
  }
  const isList = at.endpoint.operation === 'models'
  x.dialect = isList && at.dialect === 'openai-chat' ? listDialectOf(req, path) : at.dialect
  x.operation = at.endpoint.operation
  x.format = at.format
  return wantsArray(at, req, path) ? { ...at, endpoint: { ...at.endpoint, array: true } } : at
}

/** Streams of Gemini are JSON arrays unless the query asks for server-sent events. */
function wantsArray({ dialect, endpoint }: Addressed, req: HttpRequest, path: string): boolean {
  if (dialect !== 'gemini' || endpoint.stream !== true) return false
  return new URLSearchParams((req.url ?? '').slice(path.length + 1)).get('alt') !== 'sse'
}

/** The format in which a client of `/v1/models` reads lists, by the headers that it sends. */
function listDialectOf(req: HttpRequest, path: string): DialectName {
  if (headerOf(req, 'anthropic-version') !== undefined) return 'anthropic'
  const query = (req.url ?? '').slice(path.length + 1)
  const hasKey = headerOf(req, 'x-goog-api-key') !== undefined || /(?:^|&)key=/.test(query)
  return hasKey ? 'gemini' : 'openai-chat'
}

/** Of an unknown path, so much is repeated. */
const SHOWN_CHARS = 100

function noEndpoint(method: string, path: string, nearest: string | null): GatewayError {
  const known = methodsAt(path)
  if (known.length > 0) {
    const message = `This path takes ${known.join(', ')}, not ${method}.`
    return new GatewayError('method_not_allowed', message)
  }
  const hint =
    nearest === null
      ? 'The endpoints are listed in docs/clients.md; chats go to POST /v1/chat/completions.'
      : `Did you mean ${nearest}?`
  const shown = path.length > SHOWN_CHARS ? `${path.slice(0, SHOWN_CHARS)}…` : path
  return new GatewayError('unknown_endpoint', `There is no endpoint ${method} ${shown}. ${hint}`)
}
