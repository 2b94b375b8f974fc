/**
 * One client's request and reply, over HTTP/1.1 or HTTP/2. `node:http` and the compatibility API of
 * `node:http2` have the same methods but unrelated types; these interfaces describe their common part.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import type { GatewayError } from '../errors.js'

/** A request: `IncomingMessage` or `Http2ServerRequest`. */
export interface HttpRequest extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** `1.0`, `1.1` or `2.0`. */
  readonly httpVersion: string
  readonly headers: IncomingHttpHeaders
  /** Name, value, … as sent by the client; in HTTP/2 with the pseudo-headers. */
  readonly rawHeaders: string[]
  readonly rawTrailers: string[]
  /** True once the whole body has arrived. */
  readonly complete: boolean
  readonly socket: Socket
}

/** A reply: `ServerResponse` or `Http2ServerResponse`. */
export interface HttpResponse extends Writable {
  statusCode: number
  readonly headersSent: boolean
  readonly req: HttpRequest
  /** Only in HTTP/2. */
  readonly stream?: ServerHttp2Stream | undefined
  getHeader(name: string): unknown
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): void
  getHeaderNames(): string[]
  /** A list is allowed only in HTTP/1.1. */
  writeHead(status: number, headers?: OutgoingHttpHeaders | string[]): unknown
  /** Only in HTTP/1.1; HTTP/2 sends the head at once. */
  flushHeaders?(): void
  writeContinue(): void
  /**
   * Set by a handler that sends the error itself if the rest of its request is invalid or late; else the
   * listener sends it. A member costs less than an event.
   */
  onRefused?: (error: GatewayError) => void
  /** Set by a handler; called once when the reply has closed, complete or not. */
  onClosed?: () => void
  /** Only of a reply that shares its connection with others: ends it incomplete, and the connection stays. */
  truncate?(): void
  setTimeout(ms: number, callback: () => void): unknown
}

/** A request for a protocol upgrade: its connection, and the bytes after its head. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

/** The value of a header; the name is in lower case. */
export function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** Whether the request is for a WebSocket. */
export function isForWebSocket(req: HttpRequest): boolean {
  return headerOf(req, 'upgrade')?.toLowerCase() === 'websocket'
}

/** The requested host: `Host`, or `:authority` in HTTP/2. */
export function hostOf(req: HttpRequest): string | undefined {
  return headerOf(req, ':authority') ?? headerOf(req, 'host')
}

/** The address at which the client has reached the gateway, without a path; null if it names no host. */
export function originOf(req: HttpRequest): string | null {
  const host = hostOf(req)
  if (host === undefined) return null
  const isTls = 'encrypted' in req.socket || headerOf(req, 'x-forwarded-proto') === 'https'
  return `${isTls ? 'https' : 'http'}://${host}`
}
