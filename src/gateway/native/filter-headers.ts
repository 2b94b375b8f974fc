/**
 * Which headers of native access cross the gateway, in either direction. Pure.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** Of one connection (RFC 9110, 7.6.1), or replaced by the gateway's own. */
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

/** The client's address, which the upstream does not need. */
const ADDRESSES = new Set([
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
])

/** A key that browsers send as a subprotocol of a WebSocket, as they cannot send a header. */
const KEY_PROTOCOL = /^openai-(?:insecure-api-key|ephemeral-user-token)\./

type Headers = Record<string, string | string[]>

/**
 * The client's headers for the upstream: without credentials, cookies, addresses and what belongs to its
 * connection. `own` are the upstream's credential and configured headers, which replace the client's. Replies
 * are requested uncompressed, so that their `usage` can be read.
 */
export function headersForUpstream(
  client: IncomingHttpHeaders,
  own: Readonly<Record<string, string>>,
): Headers {
  const headers = kept(client, (name) => !ADDRESSES.has(name) && !name.startsWith(':'))
  const protocols = headers['sec-websocket-protocol']
  if (typeof protocols === 'string') {
    delete headers['sec-websocket-protocol']
    const rest = protocols.split(',').filter((each) => !KEY_PROTOCOL.test(each.trim()))
    if (rest.length > 0) headers['sec-websocket-protocol'] = rest.join(',').trim()
  }
  headers['accept-encoding'] = 'identity'
  for (const [name, value] of Object.entries(own)) headers[name.toLowerCase()] = value
  return headers
}

/**
 * The upstream's headers for the client. The upstream's request id is replaced by the gateway's, and which pages may
 * read the reply is for `server.cors`.
 */
export function headersForClient(upstream: IncomingHttpHeaders): Headers {
  const isOurs = (name: string): boolean =>
    name === 'x-request-id' || name.startsWith('x-sluice-') || name.startsWith('access-control-')
  return kept(upstream, (name) => !isOurs(name))
}

function kept(headers: IncomingHttpHeaders, isWanted: (name: string) => boolean): Headers {
  const named = new Set(
    (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  )
  const all: Headers = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || SECRET.has(name)) continue
    if (!named.has(name) && isWanted(name)) all[name] = value
  }
  return all
}
