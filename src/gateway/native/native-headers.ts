/**
 * Chooses the headers of native requests and replies: lists of what a provider or client needs. Any other
 * header stays out, because many choose an account, a project, a method or a path (`OpenAI-Organization`,
 * `X-HTTP-Method-Override`), or describe the operator's account. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { sha256Hex } from '../../formats/wire/sha256.js'

/** Headers of clients that reach the upstream. */
const TO_UPSTREAM = new Set([
  'accept',
  'accept-language',
  'anthropic-beta',
  'anthropic-version',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'openai-beta',
  'range',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
  'user-agent',
  'x-client-request-id',
  'x-goog-api-client',
  'x-goog-upload-command',
  'x-goog-upload-file-name',
  'x-goog-upload-header-content-length',
  'x-goog-upload-header-content-type',
  'x-goog-upload-offset',
  'x-goog-upload-protocol',
])

/** What SDKs of OpenAI and Anthropic tell about themselves. */
const SDK_PREFIX = 'x-stainless-'

/** Headers of upstreams that reach the client. */
const TO_CLIENT = new Set([
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'date',
  'deprecation',
  'etag',
  'expires',
  'last-modified',
  'openai-processing-ms',
  'openai-version',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'sec-websocket-accept',
  'sec-websocket-protocol',
  'sunset',
  'x-goog-upload-chunk-granularity',
  'x-goog-upload-size-received',
  'x-goog-upload-status',
  'x-should-retry',
])

/** An API key as a subprotocol of a WebSocket: browsers send it that way because they cannot set headers. */
const KEY_PROTOCOL = /^openai-(?:insecure-api-key|ephemeral-user-token)\./
/** The organization or project as a subprotocol. */
const ACCOUNT_PROTOCOL = /^openai-(?:organization|project)[.-]/

type Headers = Record<string, string | string[]>

/** Providers take at most 255 characters. */
const MAX_KEY_CHARS = 255
const DIGEST_CHARS = 16

/**
 * A client's `idempotency-key` for a provider's account that all accounts of the gateway share: with the
 * digest of the account before it, so that an equal key of another account never gets this one's reply. A
 * longer key is replaced by its digest: a cut one could equal another key.
 */
export function sharedIdempotencyKey(key: string, accountId: string): string {
  const shared = `${sha256Hex(accountId).slice(0, DIGEST_CHARS)}-${key}`
  return shared.length <= MAX_KEY_CHARS ? shared : `${shared.slice(0, DIGEST_CHARS)}-${sha256Hex(key)}`
}

/**
 * The client's headers for the upstream. `own`: the upstream's credential and configured headers, which
 * replace the client's. Replies are requested uncompressed, so that they can be read.
 */
export function headersForUpstream(
  client: IncomingHttpHeaders,
  own: Readonly<Record<string, string>>,
  accountId: string,
): Headers {
  const headers = chosen(client, (name) => TO_UPSTREAM.has(name) || name.startsWith(SDK_PREFIX))
  const protocols = headers['sec-websocket-protocol']
  if (typeof protocols === 'string') {
    delete headers['sec-websocket-protocol']
    const rest = protocols
      .split(',')
      .map((protocol) => protocol.trim())
      .filter((protocol) => !KEY_PROTOCOL.test(protocol) && !ACCOUNT_PROTOCOL.test(protocol))
    if (rest.length > 0) headers['sec-websocket-protocol'] = rest.join(',')
  }
  const { 'idempotency-key': key } = headers
  if (typeof key === 'string') headers['idempotency-key'] = sharedIdempotencyKey(key, accountId)
  headers['accept-encoding'] = 'identity'
  for (const [name, value] of Object.entries(own)) headers[name.toLowerCase()] = value
  return headers
}

/** The headers of the upstream for a request of the gateway itself, with the credentials of another. */
export function headersForReading(headers: Readonly<Record<string, string | string[]>>): Headers {
  const own: Headers = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!OF_ONE_REQUEST.test(name)) own[name] = value
  }
  return own
}

/** Headers of a client that are about its own request. */
const OF_ONE_REQUEST =
  /^(?:accept$|content-|if-|range$|idempotency-key$|x-goog-upload-|sec-websocket-|traceparent$|tracestate$)/

/**
 * The upstream's headers for the client. The gateway's own request id and rate headers replace the
 * upstream's, and `server.cors` decides which pages may read the reply. `location` is kept if it is a path,
 * as OpenAI sends it for a new call.
 */
export function headersForClient(upstream: IncomingHttpHeaders): Headers {
  const headers = chosen(upstream, (name) => TO_CLIENT.has(name))
  const { location } = upstream
  if (location !== undefined && /^\/(?![/\\])/.test(location)) headers['location'] = location
  return headers
}

function chosen(headers: IncomingHttpHeaders, isChosen: (name: string) => boolean): Headers {
  // A header that `connection` names is for one connection (RFC 9110, 7.6.1).
  const named = (headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
  const kept: Headers = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && isChosen(name) && !named.includes(name)) kept[name] = value
  }
  return kept
}
