/** The types of a request to an upstream and the receiver of its reply, for the pool and its callers. */
import type { IncomingHttpHeaders } from 'node:http'
import type { ConnectionUse } from './connection-use.js'

/** A request to an upstream. `headers` is name, value, …; undici adds framing and host. */
export interface UpstreamRequest {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: Buffer | string | null
  /** Default: `POST`. */
  readonly method?: 'GET' | 'POST'
  /** It must not be sent on a connection that served another request. */
  readonly onFreshConnection?: boolean
}

/** Receives one reply, in this order; after `onResponseEnd` or `onResponseError` nothing follows. */
export interface ReplyHandler {
  /** A connection is available, and the request is sent when this returns. */
  onRequestStart(): void
  onResponseStart(status: number, headers: IncomingHttpHeaders): void
  onResponseData(chunk: Buffer): void
  onResponseEnd(): void
  onResponseError(cause: Error): void
}

/** A running request. */
export interface UpstreamCall {
  /** Stops reading the reply; the chunk being handled is the last until `resume`. */
  pause(): void
  resume(): void
  /** True while all `max_connections` connections are in use and the request waits for one. */
  readonly isWaiting: boolean
  /** The connection that the request was written to; null before, and with HTTP/2. */
  readonly connection: ConnectionUse | null
  /**
   * Ends the exchange in any phase; the handler is not called any more. A request that has not been sent does
   * not affect connections; the connection of one that has been sent is destroyed (HTTP/2: its stream).
   */
  abort(): void
}
