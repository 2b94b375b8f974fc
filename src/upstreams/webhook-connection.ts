/**
 * POST requests of the gateway itself, for webhooks: the connections, address rules and proxies are those of upstreams.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { openDispatcher } from './pool/dispatcher.js'

/** The receiver of the requests. */
export interface PostSettings {
  readonly url: string
  readonly allowPrivateAddress: boolean
}

/** One request. */
export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** For the whole exchange, the connection included. */
  readonly timeoutMs: number
}

/** What came back; the body of the reply is not read. */
export interface PostReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The connections to one URL. */
export interface Poster {
  /** Rejects if there is no reply within `timeoutMs`. Redirects are not followed. */
  post(request: PostRequest): Promise<PostReply>
  /** Closes the connections at once. */
  close(): Promise<void>
}

const MAX_CONNECTIONS = 4
const CONNECT_MS = 5000
/** A connection whose reply is larger than this is closed, not reused. */
const MAX_REPLY_BYTES = 64 * 1024

/** Opens no connection yet. */
export function openPoster({ url, allowPrivateAddress }: PostSettings): Poster {
  const { origin, pathname, search } = new URL(url)
  const dispatcher = openDispatcher({
    name: 'webhook',
    baseUrl: origin,
    maxConnections: MAX_CONNECTIONS,
    allowPrivateAddress,
    tls: null,
    http2: false,
    proxy: 'env',
    timeouts: { connectMs: CONNECT_MS },
  })
  return {
    async post({ headers, body, timeoutMs }) {
      const signal = AbortSignal.timeout(timeoutMs)
      const reply = await dispatcher.request({
        origin,
        path: pathname + search,
        method: 'POST',
        headers,
        body,
        signal,
      })
      await reply.body.dump({ limit: MAX_REPLY_BYTES, signal })
      return { status: reply.statusCode, headers: reply.headers }
    },
    close: () => dispatcher.destroy(),
  }
}
