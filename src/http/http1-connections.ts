/**
 * The HTTP/1.1 connections of the listener: one request at a time, none after a refused one, and limits on
 * slow clients. Node's parser and timeouts report here.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ErrorKind, WireError } from '../errors.js'
import { newRequestId } from './request-id.js'
import type { HttpRequest, HttpResponse, Upgrade } from './message.js'
import { breachOf, interrupt, refuseSocket, TOO_MANY } from './refuse-request.js'
import { isBodyLate, LATE_BODY, type SlowClients } from './slow-clients.js'

/** Time for the rest of an unread body before its connection closes. */
const DRAIN_BODY_MS = 250
/** Pipelined requests behind the current one of a connection; beyond it the connection is not read. */
const MAX_WAITING = 16
/** Time for the first byte of a connection during a drain. */
const SILENT_MS = 1000
/** Maximum requests of one connection; Node announces it, and the connection closes after the last reply. */
export const MAX_REQUESTS = 1000
/** A request and its reply. */
export interface Exchange {
  readonly req: HttpRequest
  readonly res: HttpResponse
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean
  /** Set for upgrade requests, whose connection Node has released to the listener. */
  readonly upgrade?: Upgrade
}

/** A client's HTTP/1.1 connection. */
interface Connection {
  readonly socket: Socket
  readonly sinceMs: number
  current: Exchange | null
  /** Start of the wait for the current request's body, and the bytes that the socket had read by then. */
  bodySinceMs: number
  bodyFromBytes: number
  readonly waiting: Exchange[]
  requests: number
  /** Further bytes on it are not a request. */
  isEnding: boolean
  /** The reason, if the client can still receive it after the current reply. */
  refusal: WireError | null
}

/** What the connections need from the listener. */
interface Http1ConnectionsOptions {
  readonly maxConnections: number
  /** Number of HTTP/2 connections, which count as well. */
  readonly others: () => number
  /** Time after which a body must arrive at the minimum rate. */
  readonly bodyGraceMs: number
  readonly slowClients: SlowClients
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

  /** Whether more connections are open than allowed. */
  get isFull(): boolean {
    return this.connections.size + this.options.others() > this.options.maxConnections
  }

  /** Adds `connection: close` to replies that have not started. */
  closeSoon(): void {
    for (const { current } of this.connections.values()) {
      if (current?.res.headersSent === false) current.res.setHeader('connection', 'close')
    }
  }

  /** Closes connections that have sent no byte for a second; Node does not count them as idle. */
  destroySilent(): void {
    const untilMs = performance.now() - SILENT_MS
    for (const { socket, sinceMs } of this.connections.values()) {
      if (socket.bytesRead === 0 && sinceMs <= untilMs) socket.destroy()
    }
  }

  destroy(): void {
    for (const { socket } of this.connections.values()) socket.destroy()
  }

  /** Accepts a new connection, or refuses it with a 503. */
  add(socket: Socket): void {
    const connection: Connection = {
      socket,
      sinceMs: performance.now(),
      current: null,
      bodySinceMs: 0,
      bodyFromBytes: 0,
      waiting: [],
      requests: 0,
      isEnding: false,
      refusal: null,
    }
    this.connections.set(socket, connection)
    socket.once('close', () => this.connections.delete(socket))
    if (!this.isFull) return
    connection.isEnding = true
    this.refuse(socket, TOO_MANY)
  }

  /** Requests of one connection run in sequence; those after a refused one never run. */
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

  /** Only the first request on a connection may upgrade it; Node reads no bytes after it. */
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
    const { res } = exchange
    res.on('close', () => {
      res.onClosed?.()
      this.answered(connection, exchange)
    })
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
    // Bytes after the last request of a closing connection.
    if (connection?.isEnding === true || error.code === 'HPE_CLOSED_CONNECTION') return
    if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    this.broken(connection, breachOf(error.code))
  }

  /** The bytes on the connection are not a request, not a body, or too slow. */
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

  /**
   * Called by Node if the socket has transferred no byte for the interval of `slowClients`, or idled for
   * `keepAliveTimeoutMs`.
   */
  timedOut(socket: Socket): void {
    const connection = this.connections.get(socket)
    const { slowClients } = this.options
    if (connection === undefined) socket.destroy()
    else if (connection.current !== null) {
      const isChecked = slowClients.stalled(connection.current.res, socket.writableLength)
      if (isChecked) socket.setTimeout(slowClients.everyMs)
    }
    // The first request has `headersTimeoutMs`.
    else if (connection.requests > 0) socket.destroy()
  }

  /** Called about every second. */
  checkBodies(): void {
    const nowMs = performance.now()
    for (const connection of this.connections.values()) this.checkBody(connection, nowMs)
  }

  /** A body that is being read must arrive at the minimum rate after its grace. */
  private checkBody(connection: Connection, nowMs: number): void {
    const { current, socket, bodySinceMs, bodyFromBytes, isEnding } = connection
    if (current === null || isEnding || current.req.complete) return
    const body = {
      req: current.req,
      sinceMs: bodySinceMs,
      graceMs: this.options.bodyGraceMs,
      bytes: socket.bytesRead - bodyFromBytes,
    }
    if (isBodyLate(body, nowMs)) this.broken(connection, LATE_BODY)
  }
}

/**
 * Invalid bytes after a complete request do not affect its reply. If the reply takes longer than the current
 * turn of the event loop, the connection closes after it, without another reply.
 */
function leaveReply(connection: Connection, res: HttpResponse): void {
  if (connection.current === null) return
  connection.refusal = null
  if (!res.headersSent) res.setHeader('connection', 'close')
}

/** After a reply that did not wait for the body: reads the rest for a moment, then closes the connection. */
function dropBody(req: HttpRequest): void {
  const timer = setTimeout(() => req.socket.destroy(), DRAIN_BODY_MS)
  const stop = (): void => clearTimeout(timer)
  req.once('end', stop).once('close', stop)
}
