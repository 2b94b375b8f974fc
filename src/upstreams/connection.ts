/**
 * One HTTP/1.1 connection to an upstream: a request at a time, its reply handed on as it comes.
 * Knows no dialect and no client; `pool.ts` says which connection a request gets.
 *
 * Stricter than undici, which stood here: a reply that two programs could read in two ways ends the
 * connection, and so does a byte that nobody asked for (docs/decisions/0020).
 */
import {
  connect as connectTcp,
  type LookupFunction,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net'
import { connect as connectTls } from 'node:tls'
import { BodyReader } from '../wire/http-message.js'
import type { KnownReplies } from './known-replies.js'
import type { ReplyHead } from './reply-head.js'
import type { RequestLines, UpstreamRequest } from './request-lines.js'

/** What whoever asked may do with the reply while it comes. */
export interface ReplyController {
  /** Stops reading; what has been read already may still come. */
  pause(): void
  resume(): void
  /** Ends the exchange and the connection. The handler hears nothing more. */
  abort(reason: Error): void
}

/**
 * Hears of one exchange, in this order; after `onResponseEnd` or `onResponseError` nothing comes.
 * `headers` are name, value, …, the names in lower case. A `chunk` is only lent: it is overwritten once
 * `onResponseData` returns; one that is told to be the last, once `onResponseEnd` does, which follows at once.
 */
export interface ReplyHandler {
  /** A connection is there, and the request goes out when this returns. */
  onRequestStart(controller: ReplyController): void
  onResponseStart(controller: ReplyController, status: number, headers: readonly string[]): void
  onResponseData(controller: ReplyController, chunk: Buffer, isLast: boolean): void
  onResponseEnd(): void
  onResponseError(controller: ReplyController, cause: Error): void
}

/** Where the connection goes, and how long it may take. */
export interface Destination {
  readonly isTls: boolean
  /** Without brackets, for an IPv6 address. */
  readonly host: string
  readonly port: number
  /** The `host` header. */
  readonly authority: string
  readonly connectMs: number
  readonly lookup?: LookupFunction
  /** Why no connection may be made; each attempt then fails with it. */
  readonly refusal?: Error
}

/** Who is told that a connection is free, or gone, and why where it never was free. */
export interface ConnectionOwner {
  /** What the last TLS handshake left for the next one. */
  session: Buffer | undefined
  /** What the upstream is asked, and how it answers. */
  readonly lines: RequestLines
  readonly replies: KnownReplies
  /** When idle connections were last looked at, monotonic ms: near enough, and no look at the clock for each. */
  readonly sweptMs: number
  freed(connection: Connection): void
  lost(connection: Connection, cause: Error): void
}

/** Why an upstream's connection failed, where the system has no code for it. */
export type ConnectionFault =
  'CONNECT_TIMEOUT' | 'CLOSED' | 'HEAD_TOO_LARGE' | 'BAD_HEAD' | 'BAD_BODY' | 'BAD_REQUEST'

/** A failure of the connection, by a code of ours. */
export class ConnectionError extends Error {
  readonly code: ConnectionFault

  constructor(code: ConnectionFault, message: string) {
    super(message)
    this.name = 'ConnectionError'
    this.code = code
  }
}

/** Response heads above this are an upstream's mistake; nginx and Node chose 8 and 16 KiB. */
const MAX_HEAD_BYTES = 16_384
/** A body up to this goes out in one write with the head, copied; a larger one beside it. */
const COPIED_BYTES = 16_384
/**
 * What the system reads into, for all connections of the process: a read and the handling of it are
 * one step, so no two need it at once, and a connection that waits holds no memory.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)

type Phase = 'connecting' | 'idle' | 'head' | 'body' | 'over'

/** Connects at once; `freed` follows, or `lost`. */
export class Connection implements ReplyController {
  /** True until it has been free once. */
  isNew = true
  /** When it was last free, or a sweep earlier; monotonic ms. */
  idleSinceMs = 0
  /** How long the upstream keeps it open without a request, as it said; Infinity where it did not. */
  keepAliveMs = Infinity
  private readonly owner: ConnectionOwner
  private readonly socket: Socket
  private phase: Phase = 'connecting'
  private handler: ReplyHandler | null = null
  /** What has come of a head that is not whole yet. */
  private begun: Buffer | null = null
  private body: BodyReader | null = null
  private isLast = false
  private isPaused = false
  private readonly timer: NodeJS.Timeout
  private readonly content = (piece: Buffer): void => {
    this.handler?.onResponseData(this, piece, this.body?.done === true)
  }

  constructor(destination: Destination, owner: ConnectionOwner) {
    this.owner = owner
    const { isTls, host, port, lookup, connectMs } = destination
    const onread = {
      buffer: READ_BUFFER,
      callback: (bytes: number, buffer: Uint8Array) => this.read(bytes, buffer as Buffer),
    }
    const options = {
      host,
      port,
      noDelay: true,
      onread,
      ...(lookup === undefined ? {} : { lookup }),
    }
    this.socket = isTls ? openTls(options, owner) : connectTcp(options)
    this.timer = setTimeout(() => {
      this.fail(new ConnectionError('CONNECT_TIMEOUT', `no connection within ${connectMs} ms`))
    }, connectMs)
    this.socket
      .once(isTls ? 'secureConnect' : 'connect', () => this.connected())
      .on('error', (error) => this.fail(error))
      .on('end', () => this.ended())
      .on('close', () => this.ended())
  }

  /** False from the moment that it can take no request any more. */
  get isUsable(): boolean {
    return this.phase === 'idle' && this.socket.writable
  }

  /** Sends a request; only on a connection that is `isUsable`. */
  send(request: UpstreamRequest, handler: ReplyHandler): void {
    this.handler = handler
    this.phase = 'head'
    this.isLast = false
    handler.onRequestStart(this)
    // The handler may have thought better of it.
    if (this.handler !== handler) return
    const { body, bytes } = request
    const lines = this.owner.lines.of(request)
    if (lines === null) {
      this.fail(
        new ConnectionError('BAD_REQUEST', 'a header or the path holds a control character'),
      )
      return
    }
    this.write(`${lines}content-length: ${bytes}\r\n\r\n`, body, bytes === body.length)
  }

  pause(): void {
    if (this.isPaused) return
    this.isPaused = true
    this.socket.pause()
  }

  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.socket.resume()
  }

  abort(reason: Error): void {
    this.handler = null
    this.fail(reason)
  }

  /** Ends it, whatever it does; a handler hears why. */
  destroy(): void {
    this.fail(new ConnectionError('CLOSED', 'the connections were closed'))
  }

  private connected(): void {
    if (this.phase !== 'connecting') return
    clearTimeout(this.timer)
    this.free()
  }

  private free(): void {
    this.phase = 'idle'
    this.handler = null
    this.body = null
    this.idleSinceMs = this.owner.sweptMs
    this.owner.freed(this)
    this.isNew = false
  }

  /** `isAscii`: each character of a text is one byte in UTF-8. */
  private write(head: string, body: Buffer | string, isAscii: boolean): void {
    const { socket } = this
    if (body.length > COPIED_BYTES) {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
      return
    }
    // One string is one write. Latin-1 gives a Buffer's bytes back as they were.
    if (typeof body !== 'string') socket.write(head + body.toString('latin1'), 'latin1')
    else socket.write(head + body, isAscii ? 'latin1' : 'utf8')
  }

  /** False where the system is to stop reading. */
  private read(bytes: number, buffer: Buffer): boolean {
    const chunk = bytes === buffer.length ? buffer : buffer.subarray(0, bytes)
    for (let at = 0; at < chunk.length;) {
      if (this.phase === 'head') at = this.readHead(chunk, at)
      else if (this.phase === 'body' && this.body !== null) at = this.readBody(this.body, chunk, at)
      else {
        // Nobody has asked for this: it must not be taken for the answer to the next request.
        this.fail(new ConnectionError('CLOSED', 'the upstream spoke unasked'))
        return false
      }
    }
    return !this.isPaused
  }

  /** How far it read. */
  private readHead(chunk: Buffer, from: number): number {
    const begun = this.begun
    const bytes = begun === null ? chunk : Buffer.concat([begun, chunk.subarray(from)])
    const start = begun === null ? from : 0
    const { replies } = this.owner
    const end = replies.end(bytes, start)
    if ((end === -1 ? bytes.length : end) - start > MAX_HEAD_BYTES) {
      this.fail(new ConnectionError('HEAD_TOO_LARGE', 'the head of the reply is too large'))
      return chunk.length
    }
    if (end === -1) {
      this.begun = begun === null ? Buffer.from(chunk.subarray(from)) : bytes
      return chunk.length
    }
    this.begun = null
    this.takeHead(replies.read(bytes, start, end))
    return begun === null ? end : end - begun.length + from
  }

  private takeHead(head: ReplyHead | null): void {
    if (head === null) {
      this.fail(new ConnectionError('BAD_HEAD', 'the head of the reply is not valid HTTP/1.1'))
      return
    }
    if (head.status === 101) {
      this.fail(new ConnectionError('CLOSED', 'the upstream went over to another protocol unasked'))
      return
    }
    // An interim answer: the real one follows.
    if (head.status < 200) return
    this.isLast = head.isLast
    this.keepAliveMs = head.keepAliveMs
    const body = new BodyReader(head.framing)
    this.body = body
    this.phase = 'body'
    this.handler?.onResponseStart(this, head.status, head.headers)
    // Unless the handler has ended the exchange.
    if (body.done && this.isUnfinished()) this.complete()
  }

  private readBody(body: BodyReader, chunk: Buffer, from: number): number {
    const at = body.read(chunk, from, this.content)
    if (!this.isUnfinished()) return at
    if (body.fault !== null) {
      this.fail(new ConnectionError('BAD_BODY', `the body of the reply is broken: ${body.fault}`))
      return chunk.length
    }
    if (!body.done) return at
    // Bytes behind a reply belong to nobody; the connection must not be used again.
    if (at < chunk.length) this.isLast = true
    this.complete()
    return this.isLast ? chunk.length : at
  }

  private isUnfinished(): boolean {
    return this.phase === 'body'
  }

  private complete(): void {
    const { handler } = this
    if (this.isLast) {
      this.handler = null
      this.fail(new ConnectionError('CLOSED', 'the connection has served its last request'))
    } else {
      this.resume()
      this.free()
    }
    handler?.onResponseEnd()
  }

  /** The upstream will send no more. */
  private ended(): void {
    if (this.phase === 'body' && this.body !== null && this.body.end()) {
      this.isLast = true
      this.complete()
      return
    }
    const what = this.phase === 'body' ? 'inside a reply' : 'before a reply'
    this.fail(new ConnectionError('CLOSED', `the connection was closed ${what}`))
  }

  private fail(cause: Error): void {
    if (this.phase === 'over') return
    this.phase = 'over'
    const { handler } = this
    this.handler = null
    clearTimeout(this.timer)
    this.begun = null
    this.socket.destroy()
    this.owner.lost(this, cause)
    handler?.onResponseError(this, cause)
  }
}

function openTls(options: TcpNetConnectOpts, owner: ConnectionOwner): Socket {
  const { session } = owner
  const socket = connectTls({
    ...options,
    servername: serverName(options.host ?? ''),
    ALPNProtocols: ['http/1.1'],
    ...(session === undefined ? {} : { session }),
  })
  socket.on('session', (next) => (owner.session = next))
  return socket
}

/** What TLS calls the server: its name, never an address (RFC 6066). */
function serverName(host: string): string {
  return /^[\d.]+$/.test(host) || host.includes(':') ? '' : host
}
