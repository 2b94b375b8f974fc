/** Filters the headers of native requests and replies. Pure. */
import type { IncomingHttpHeaders } from 'node:http'

/** Headers of one connection (RFC 9110, 7.6.1), and headers that the gateway sets itself. */
const HOP_BY_HOP = new Set([
  'alt-svc',
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Credentials and cookies, of clients and of upstreams. */
const SECRET = new Set([
  'api-key',
  'authorization',
  'cookie',
  'cookie2',
  'set-cookie',
  'set-cookie2',
  'x-api-key',
  'x-goog-api-key',
])

/** Headers with the client's address, which the upstream does not need. */
const ADDRESSES = new Set([
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
])

/** An API key as a subprotocol of a WebSocket: browsers send it that way because they cannot set headers. */
const KEY_PROTOCOL = /^openai-(?:insecure-api-key|ephemeral-user-token)\./

type Headers = Record<string, string | string[]>

/**
 * The client's headers for the upstream, without credentials, cookies, addresses and hop-by-hop headers.
 * `own`: the upstream's credential and configured headers, which replace the client's. Replies are requested
 * uncompressed, so that their `usage` can be read.
 */
export function headersForUpstream(
  client: IncomingHttpHeaders,
  own: Readonly<Record<string, string>>,
): Headers {
  const headers = filteredHeaders(client, (name) => !ADDRESSES.has(name) && !name.startsWith(':'))
  const protocols = headers['sec-websocket-protocol']
  if (typeof protocols === 'string') {
    delete headers['sec-websocket-protocol']
    const rest = protocols.split(',').filter((protocol) => !KEY_PROTOCOL.test(protocol.trim()))
    if (rest.length > 0) headers['sec-websocket-protocol'] = rest.join(',').trim()
  }
  headers['accept-encoding'] = 'identity'
  for (const [name, value] of Object.entries(own)) headers[name.toLowerCase()] = value
  return headers
}

/**
 * The upstream's headers for the client. The gateway's own request id replaces the upstream's, and
 * `server.cors` decides which pages may read the reply.
 */
export function headersForClient(upstream: IncomingHttpHeaders): Headers {
  const isOurs = (name: string): boolean =>
    name === 'x-request-id' || name.startsWith('x-sluice-') || name.startsWith('access-control-')
  return filteredHeaders(upstream, (name) => !isOurs(name))
}

function filteredHeaders(headers: IncomingHttpHeaders, isKept: (name: string) => boolean): Headers {
  const named = new Set(
    (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  )
  const filtered: Headers = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || SECRET.has(name)) continue
    if (!named.has(name) && isKept(name)) filtered[name] = value
  }
  return filtered
}
