/**
 * Sends POST requests of the gateway itself, for webhooks, with the connections, address rules and proxies of
 * upstreams.
 */
import type { Poster } from '../../observe/webhooks.js'
import { openConnectionPool } from './connection-pool.js'

/** The receiver of the requests. */
export interface PostSettings {
  readonly url: string
  readonly allowPrivateAddress: boolean
}

const MAX_CONNECTIONS = 4
const CONNECT_MS = 5000
/** A connection with a larger reply is closed instead of reused. */
const MAX_REPLY_BYTES = 64 * 1024

/** Creates the poster. Connections are opened by requests. */
export function openPoster({ url, allowPrivateAddress }: PostSettings): Poster {
  const { origin, pathname, search } = new URL(url)
  const dispatcher = openConnectionPool({
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
