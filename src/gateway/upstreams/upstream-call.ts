/** The types of a request to an upstream and the receiver of its reply, for the pool and its callers. */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** A request to an upstream. `headers` is name, value, …; undici adds framing and host. */
export interface UpstreamRequest {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: Buffer | string | null
  /** A body that is read while it is sent, instead; its request cannot be repeated. */
  readonly stream?: Readable
  /** Default: `POST`. */
  readonly method?: 'GET' | 'POST' | 'DELETE'
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

/** A request that is about to be written. */
export interface Writing {
  readonly path: string
  /** Called once. */
  written(connection: ConnectionUse): void
}

/** The use of a connection by one request. */
export interface ConnectionUse {
  /** It served another request before. */
  readonly isReused: boolean
  /** False while a part of the request waits in the socket's buffer. */
  readonly wasFullySent: boolean
  /** At least one byte has arrived since the request, so the upstream has read it. */
  readonly hasReplied: boolean
  /** Calls `listener` when the connection ends, before undici's listeners. Returns what ends this watch. */
  beforeEnd(listener: () => void): () => void
}

const usedSockets = new WeakSet<object>()
let starting: Writing | null = null

/**
 * Announces that the next request that undici writes is this one.
 *
 * Observes the connection that a request is written to: whether it served another request before, and whether
 * it has sent the whole request. undici reports it on a diagnostics channel (not for HTTP/2), in the same
 * call as the start of the request.
 */
export function startsWriting(writing: Writing): void {
  starting = writing
}

subscribe('undici:client:sendHeaders', (message) => {
  const writing = starting
  starting = null
  if (!isSending(message)) return
  const { socket, request } = message
  const isReused = usedSockets.has(socket)
  usedSockets.add(socket)
  if (writing !== null && request.path === writing.path) {
    writing.written(new Use(socket, isReused))
  }
})

class Use implements ConnectionUse {
  wasFullySent = true
  readonly isReused: boolean
  private readonly socket: Socket
  private readonly bytesBefore: number

  constructor(socket: Socket, isReused: boolean) {
    this.isReused = isReused
    this.socket = socket
    this.bytesBefore = socket.bytesRead
    // The request is written when the current call returns.
    queueMicrotask(() => {
      if (socket.writableLength === 0) return
      this.wasFullySent = false
      socket.once('drain', () => (this.wasFullySent = true))
    })
  }

  get hasReplied(): boolean {
    return this.socket.bytesRead > this.bytesBefore
  }

  beforeEnd(listener: () => void): () => void {
    const { socket } = this
    socket.prependListener('end', listener).prependListener('error', asFault)
    return () => socket.off('end', listener).off('error', asFault)
  }
}

/** Undici takes a reset for the end of a reply without a length. A paused reply is not complete then. */
function asFault(error: Error): void {
  if ('code' in error && error.code === 'ECONNRESET') error.code = 'EPIPE'
}

interface Sending {
  readonly socket: Socket
  readonly request: { readonly path: string }
}

function isSending(message: unknown): message is Sending {
  return typeof message === 'object' && message !== null && 'socket' in message && 'request' in message
}
