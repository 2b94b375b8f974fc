/**
 * The HTTP/1.1 connections of the listener: one request at a time, nothing after a refused one, and limits on slow
 * clients. Node's parser and timeouts report here.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ErrorKind, WireError } from '../errors.js'
import { newRequestId } from './request-id.js'
import type { HttpRequest, HttpResponse, Upgrade } from './message.js'
import { allowedForBody, breachOf, interrupt, refuseSocket, TOO_MANY } from './refuse-request.js'
import { abandon } from './respond.js'

/** How long the rest of a body that nobody reads may take before its connection closes. */
const DRAIN_BODY_MS = 250
/** Requests behind the current one of a connection; beyond it the connection is not read. */
const MAX_WAITING = 16
/** How long the first byte of a connection may take during a drain. */
const SILENT_MS = 1000
/** Of one connection; Node announces it and the last reply closes. */
export const MAX_REQUESTS = 1000
/** A request and its reply. */
export interface Exchange {
  readonly req: HttpRequest
  readonly res: HttpResponse
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean
  /** Node has given up the connection: the listener asked for such requests. */
  readonly upgrade?: Upgrade
}

/** A client's HTTP/1.1 connection. */
interface Connection {
  readonly socket: Socket
  readonly sinceMs: number
  current: Exchange | null
  /** Since when the current request's body is awaited, and how much the socket had read by then. */
  bodySinceMs: number
  bodyFromBytes: number
  readonly waiting: Exchange[]
  requests: number
  /** What follows on it is no request. */
  isEnding: boolean
  /** Why, if the client can still be told behind the current reply. */
  refusal: WireError | null
}

/** What the connections need of the listener. */
export interface Http1ConnectionsOptions {
  readonly maxConnections: number
  /** Http1Connections of HTTP/2, which count as well. */
  readonly others: () => number
  /** How long a body may take before it must arrive at the minimum rate. */
  readonly bodyGraceMs: number
  /** Serves a request; false if it was refused. After the last one the connection closes. */
  readonly serve: (exchange: Exchange, isLast: boolean) => boolean
  readonly onRefused: (kind: ErrorKind, id: string) => void
}

/** All connections, by their sockets. */
export class Http1Connections {
  private readonly options: Http1ConnectionsOptions
  private readonly connections = new Map<Duplex, Connection>()

  constructor(options: Http1ConnectionsOptions) {
    this.options = options
  }

  /** True beyond the most connections that may be open. */
  get isFull(): boolean {
    return this.connections.size + this.options.others() > this.options.maxConnections
  }

  /** Asks for the end of each connection that has not begun its reply. */
  closeSoon(): void {
    for (const { current } of this.connections.values()) {
      if (current?.res.headersSent === false) current.res.setHeader('connection', 'close')
    }
  }

  /** Closes connections that have sent no byte for a second, which Node does not count as idle. */
  destroySilent(): void {
    const untilMs = performance.now() - SILENT_MS
    for (const { socket, sinceMs } of this.connections.values()) {
      if (socket.bytesRead === 0 && sinceMs <= untilMs) socket.destroy()
    }
  }

  destroy(): void {
    for (const { socket } of this.connections.values()) socket.destroy()
  }

  /** Takes a new connection, or refuses it with a 503. */
  add(socket: Socket): void {
    const connection: Connection = {
      ...{ socket, sinceMs: performance.now(), current: null, bodySinceMs: 0, bodyFromBytes: 0 },
      ...{ waiting: [], requests: 0, isEnding: false, refusal: null },
    }
    this.connections.set(socket, connection)
    socket.once('close', () => this.connections.delete(socket))
    if (!this.isFull) return
    connection.isEnding = true
    this.refuse(socket, TOO_MANY)
  }

  /** Requests of one connection run one after the other; what follows a refused one is never run. */
  request(exchange: Exchange): void {
    const connection = this.connections.get(exchange.req.socket)
    if (connection === undefined || connection.isEnding) return
    if (connection.current === null) {
      this.begin(connection, exchange)
      return
    }
    connection.waiting.push(exchange)
    if (connection.waiting.length >= MAX_WAITING) connection.socket.pause()
  }

  /** The first request on a connection may ask for another protocol; Node reads nothing behind it. */
  upgrade(exchange: Exchange & { readonly upgrade: Upgrade }): void {
    const { socket } = exchange.upgrade
    const connection = this.connections.get(socket)
    if (connection?.isEnding === true) return
    if (connection === undefined || connection.current !== null) socket.destroy()
    else this.begin(connection, exchange)
  }

  private begin(connection: Connection, exchange: Exchange): void {
    connection.current = exchange
    connection.bodySinceMs = performance.now()
    connection.bodyFromBytes = connection.socket.bytesRead
    exchange.res.once('close', () => this.answered(connection, exchange))
    connection.requests += 1
    // Node 20 loses requests that are pipelined behind an `Upgrade`, even if it does not upgrade.
    const isLast = connection.requests >= MAX_REQUESTS || exchange.req.headers.upgrade !== undefined
    if (this.options.serve(exchange, isLast) && !isLast) return
    connection.isEnding = true
    connection.waiting.length = 0
  }

  private answered(connection: Connection, { req }: Exchange): void {
    connection.current = null
    const next = connection.waiting.shift()
    if (next !== undefined) {
      if (connection.waiting.length === 0) connection.socket.resume()
      this.begin(connection, next)
    } else if (connection.isEnding) {
      if (connection.refusal === null) connection.socket.destroySoon()
      else this.refuse(connection.socket, connection.refusal)
    } else if (!req.complete) {
      dropBody(req)
    }
  }

  /** The listener of `clientError`. */
  parserFailed(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.connections.get(socket)
    // Bytes behind the last request of a connection that is closing.
    if (connection?.isEnding === true || error.code === 'HPE_CLOSED_CONNECTION') return
    if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    this.broken(connection, breachOf(error.code))
  }

  /** What arrives on the connection is no request, or no body, or too slow. */
  private broken(connection: Connection, refusal: WireError): void {
    const { current, waiting, socket } = connection
    connection.isEnding = true
    const last = waiting.at(-1) ?? current
    if (last === null) {
      this.refuse(socket, refusal)
      return
    }
    const { req, res } = last
    if (req.complete) {
      connection.refusal = refusal
      setImmediate(() => leaveReply(connection, res))
      return
    }
    if (!res.headersSent) res.setHeader('connection', 'close')
    if (last !== current) waiting.pop()
    else if (res.headersSent) socket.destroy()
    else interrupt(res, refusal, this.options.onRefused)
  }

  private refuse(socket: Duplex, refusal: WireError): void {
    const id = newRequestId(Date.now())
    this.options.onRefused(refusal.kind, id)
    refuseSocket(socket, refusal, id)
  }

  /** Node calls this when the socket has moved no byte for `clientStallMs`, or idled for `keepAliveTimeoutMs`. */
  timedOut(socket: Socket): void {
    const connection = this.connections.get(socket)
    if (connection === undefined) socket.destroy()
    else if (connection.current !== null) {
      if (socket.writableLength > 0) abandon(connection.current.res)
    }
    // The first request has `headersTimeoutMs`.
    else if (connection.requests > 0) socket.destroy()
  }

  /** Called every second or so. */
  checkBodies(): void {
    const nowMs = performance.now()
    for (const connection of this.connections.values()) this.checkBody(connection, nowMs)
  }

  /** A body that is read must arrive at the minimum rate once its grace is over. */
  private checkBody(connection: Connection, nowMs: number): void {
    const { current, socket, bodySinceMs, bodyFromBytes, isEnding } = connection
    if (current === null || isEnding || current.req.complete) return
    const allowedMs = allowedForBody(this.options.bodyGraceMs, socket.bytesRead - bodyFromBytes)
    if (current.req.readableFlowing !== true || nowMs - bodySinceMs <= allowedMs) return
    this.broken(connection, breachOf('ERR_HTTP_REQUEST_TIMEOUT'))
  }
}

/**
 * What is wrong behind a complete request does not spoil its reply. If that takes longer than the current turn of the
 * event loop, the connection closes with it, without another reply.
 */
function leaveReply(connection: Connection, res: HttpResponse): void {
  if (connection.current === null) return
  connection.refusal = null
  if (!res.headersSent) res.setHeader('connection', 'close')
}

/** Behind a reply that did not wait for the body: a moment for the rest of it, then the end. */
function dropBody(req: HttpRequest): void {
  const timer = setTimeout(() => req.socket.destroy(), DRAIN_BODY_MS)
  const stop = (): void => clearTimeout(timer)
  req.once('end', stop).once('close', stop)
}
