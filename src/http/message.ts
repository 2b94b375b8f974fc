/**
 * One client's request and reply, over HTTP/1.1 or HTTP/2. `node:http` and the compatibility API of `node:http2` have
 * the same methods but unrelated types; these interfaces are what the gateway uses of both.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

/** A request: `IncomingMessage` or `Http2ServerRequest`. */
export interface HttpRequest extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** `1.0`, `1.1` or `2.0`. */
  readonly httpVersion: string
  readonly headers: IncomingHttpHeaders
  /** Name, value, … as the client sent them; in HTTP/2 with the pseudo-headers. */
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
  /** Of HTTP/2 only. */
  readonly stream?: ServerHttp2Stream | undefined
  getHeader(name: string): unknown
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): void
  getHeaderNames(): string[]
  /** A list only in HTTP/1.1. */
  writeHead(status: number, headers?: OutgoingHttpHeaders | string[]): unknown
  /** Of HTTP/1.1 only; HTTP/2 sends the head at once. */
  flushHeaders?(): void
  writeContinue(): void
  setTimeout(ms: number, callback: () => void): unknown
}

/** A request that asks for another protocol: its connection, and what came behind its head. */
export interface Upgrade {
  readonly socket: Socket
  readonly head: Buffer
}

/** The value of a header, whose name is given in lower case. */
export function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** The host that the client asked for: `Host`, or `:authority` in HTTP/2. */
export function hostOf(req: HttpRequest): string | undefined {
  return headerOf(req, ':authority') ?? headerOf(req, 'host')
}
