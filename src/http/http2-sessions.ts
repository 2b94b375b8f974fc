/**
 * The HTTP/2 sessions of the listener: limits on streams, header lists, resets, idle sessions, slow bodies
 * and clients that do not read.
 */
import {
  constants,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { ErrorKind } from '../errors.js'
import type { Exchange } from './http1-connections.js'
import { newRequestId } from './request-id.js'
import type { HttpRequest } from './message.js'
import { interrupt, refuseRequest, TOO_MANY } from './refuse-request.js'
import { isBodyLate, LATE_BODY, type SlowClients } from './slow-clients.js'

/** What the sessions need from the listener. Times are in milliseconds. */
export interface Http2SessionsOptions {
  readonly serve: (exchange: Exchange) => void
  /** Whether more connections are open than allowed. */
  readonly isFull: () => boolean
  readonly onRefused: (kind: ErrorKind, id: string) => void
  readonly slowClients: SlowClients
  /** Time after which a body must arrive at the minimum rate. */
  readonly bodyGraceMs: number
  /** How long a session without a stream stays open. */
  readonly keepAliveMs: number
  /** Maximum size of the headers of a request. */
  readonly maxHeadBytes: number
}

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants

/** Concurrent streams of one session, as in nginx. */
const MAX_STREAMS = 128
/** Header fields of one request, including pseudo-headers; the guard refuses more than 100 others. */
const MAX_HEADER_PAIRS = 128
/** Streams that a client may reset in a second before its session ends (CVE-2023-44487). */
const MAX_RESETS_PER_SECOND = 100

/** The stream id of the first of two GOAWAY frames: the client has a moment to stop (RFC 9113, 6.8). */
const MAX_STREAM_ID = 2 ** 31 - 1

/** Time for the GOAWAY of a session that is ended. */
const GOAWAY_MS = 100

interface Body {
  readonly exchange: Exchange
  readonly sinceMs: number
  readonly fromBytes: number
}

export class Http2Sessions {
  private readonly server: Http2Server
  private readonly options: Http2SessionsOptions
  private readonly sessions = new Map<ServerHttp2Session, TLSSocket>()
  /** Bodies of requests that are not complete. */
  private readonly bodies = new Set<Body>()

  constructor(options: Http2SessionsOptions) {
    this.options = options
    this.server = createServer({
      settings: {
        enablePush: false,
        maxConcurrentStreams: MAX_STREAMS,
        maxHeaderListSize: options.maxHeadBytes,
      },
      maxHeaderListPairs: MAX_HEADER_PAIRS,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: MAX_RESETS_PER_SECOND,
    })
    this.server
      .on('request', (req, res) => this.requested({ req, res, awaitsContinue: false }, req.stream))
      .on('checkContinue', (req, res) => {
        this.requested({ req, res, awaitsContinue: true }, req.stream)
      })
      // The session is destroyed already.
      .on('sessionError', () => undefined)
  }

  /** Serves HTTP/2 on a socket that has chosen it. */
  accept(socket: TLSSocket): void {
    // The server emits `session` before `emit` returns.
    const begin = (session: ServerHttp2Session): void => this.begin(session, socket)
    this.server.once('session', begin)
    this.server.emit('connection', socket)
    this.server.off('session', begin)
  }

  get size(): number {
    return this.sessions.size
  }

  /** Requests every client to use another connection for new requests; open streams are still served. */
  announceClose(): void {
    for (const session of this.sessions.keys()) session.goaway(NGHTTP2_NO_ERROR, MAX_STREAM_ID)
  }

  /** Sends GOAWAY to every session: open streams finish, new ones are refused. */
  close(): void {
    for (const session of this.sessions.keys()) session.close()
  }

  destroy(): void {
    for (const [session, socket] of this.sessions) {
      session.destroy()
      socket.destroy()
    }
  }

  /** A body that is being read must arrive at the minimum rate after its grace. */
  checkBodies(): void {
    const nowMs = performance.now()
    for (const body of this.bodies) {
      const { req, res } = body.exchange
      if (req.complete || res.headersSent) {
        this.bodies.delete(body)
        continue
      }
      const { sinceMs, fromBytes } = body
      const bytes = bytesRead(req) - fromBytes
      const isLate = isBodyLate({ req, sinceMs, bytes, graceMs: this.options.bodyGraceMs }, nowMs)
      if (!isLate) continue
      this.bodies.delete(body)
      interrupt(res, LATE_BODY, this.options.onRefused)
    }
  }

  private begin(session: ServerHttp2Session, socket: TLSSocket): void {
    this.sessions.set(session, socket)
    session.once('close', () => this.sessions.delete(session))
    limitResets(session, socket)
    let open = 0
    session.on('stream', (stream: ServerHttp2Stream) => {
      open += 1
      stream.once('close', () => (open -= 1))
    })
    session.setTimeout(this.options.keepAliveMs, () => {
      if (open === 0) session.close()
    })
  }

  private requested(exchange: Exchange, stream: ServerHttp2Stream): void {
    const { req, res } = exchange
    if (this.options.isFull()) {
      const id = newRequestId(Date.now())
      this.options.onRefused(TOO_MANY.kind, id)
      refuseRequest(res, TOO_MANY, id)
      stream.session?.close()
      return
    }
    const { slowClients } = this.options
    const check = (): void => {
      if (slowClients.stalled(res, res.writableLength)) res.setTimeout(slowClients.everyMs, check)
    }
    res.setTimeout(slowClients.everyMs, check)
    const body = { exchange, sinceMs: performance.now(), fromBytes: bytesRead(req) }
    if (!stream.endAfterHeaders) this.bodies.add(body)
    res.once('close', () => {
      this.bodies.delete(body)
      res.onClosed?.()
    })
    this.options.serve(exchange)
  }
}

/** Bytes of the whole session: its streams share the rate. */
function bytesRead({ socket }: HttpRequest): number {
  return socket.bytesRead
}

/** Ends a session whose client opens streams only to reset them. */
function limitResets(session: ServerHttp2Session, socket: TLSSocket): void {
  let resets = 0
  let sinceMs = performance.now()
  const reset = (): void => {
    const nowMs = performance.now()
    if (nowMs - sinceMs > 1000) {
      sinceMs = nowMs
      resets = 0
    }
    resets += 1
    if (resets <= MAX_RESETS_PER_SECOND || session.destroyed) return
    session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM)
    // A destroyed session keeps its socket while the client continues to send.
    setTimeout(() => socket.destroy(), GOAWAY_MS)
  }
  session.on('stream', (stream: ServerHttp2Stream) => {
    stream.once('close', () => {
      // The gateway itself uses INTERNAL_ERROR to truncate a reply.
      const { rstCode } = stream
      if (rstCode !== NGHTTP2_NO_ERROR && rstCode !== NGHTTP2_INTERNAL_ERROR) reset()
    })
  })
}
