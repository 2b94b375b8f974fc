/**
 * The listener of the data plane: HTTP/1.1 by `node:http`, with TLS also HTTP/2. Refuses requests that the guard
 * rejects, runs one request of a connection at a time, limits slow clients, and drains.
 */
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { gatewayError, GatewayError } from '../errors.js'
import type { ErrorKind, WireError } from '../errors.js'
import { newRequestId } from './id.js'
import type { HttpRequest, HttpResponse } from './message.js'
import { breachOf, MAX_HEADER_BYTES, refuseRequest, refuseSocket } from './refuse.js'
import { guardRequest } from './request-guard.js'
import { abandon, REFUSED } from './respond.js'
import type { createTlsServer, TlsServer } from './tls.js'
import type { TlsFiles } from './tls-files.js'

/** How to listen. Every time is in milliseconds. */
export interface ServerOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** Called for each request that the guard lets through, once its headers are here. */
  handler: (req: HttpRequest, res: HttpResponse) => void
  /**
   * Called for each request that never reached the handler, with the id in its reply, and for each
   * connection that could not be accepted, which has none.
   */
  onRefused?: (kind: ErrorKind, id: string | null) => void
  /** From the first byte (or the connection) to the last header; 10 s. */
  headersTimeoutMs?: number
  /** How long a body may take before it must arrive at 1 KiB/s; as `headersTimeoutMs`. */
  requestTimeoutMs?: number
  /** How often the two above are checked; 1 s. */
  checkingIntervalMs?: number
  /** How long an idle connection stays; 65 s, above the 60 s of most load balancers. */
  keepAliveTimeoutMs?: number
  /** How long a client may read nothing of a reply; 60 s. */
  clientStallMs?: number
  /** One more is answered 503 and closed; 10,000. */
  maxConnections?: number
  /** HTTPS and HTTP/2; HTTP/1.1 without TLS if absent. */
  tls?: TlsFiles | null
  /** Called with what is wrong with changed certificate files; the old ones stay in use. */
  onTlsProblem?: (problem: string) => void
}

/** How to stop. Every time is in milliseconds. */
export interface DrainOptions {
  /** How long to go on accepting, with `connection: close` on each reply; 0. */
  lameDuckMs?: number
  /** Called once, if the deadline passes with requests still open: the last moment to send them an error. */
  onDeadline?: () => void
}

/** A listening server. */
export interface GatewayServer {
  readonly port: number
  /** True from the moment that drain() is called. */
  readonly draining: boolean
  /**
   * Stops accepting, lets open requests finish, and resolves when no connection is left; at the
   * latest `deadlineMs` (and a grace of 250 ms for last errors) after accepting stopped.
   * Never rejects; further calls wait for the first.
   */
  drain(deadlineMs: number, options?: DrainOptions): Promise<void>
}

const SWEEP_MS = 250
/** How long the last errors that the drain's deadline causes may take. */
const GRACE_MS = 250
/** How long the rest of a body that nobody reads may take before its connection closes. */
const DRAIN_BODY_MS = 250
/** Slowest body after its grace, bytes per ms. */
const MIN_BODY_RATE = 1024 / 1000
/** Requests behind the current one of a connection; beyond it the connection is not read. */
const MAX_WAITING = 16
/** Of one connection; Node announces it and the last reply closes. */
const MAX_REQUESTS = 1000
/** Above `maxConnections`, connections that are being refused with a reply. */
const REFUSED_CONNECTIONS = 256

interface Exchange {
  readonly req: HttpRequest
  readonly res: HttpResponse
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean
}

/** A client's HTTP/1.1 connection. */
interface Connection {
  readonly socket: Socket
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

/** Listens. Rejects with a `GatewayError` that names the cause if the address cannot be used. */
export async function openServer(options: ServerOptions): Promise<GatewayServer> {
  // HTTP/2 is loaded only if it is used.
  const tls = (options.tls ?? null) === null ? null : await import('./tls.js')
  const listener = new Listener(options, tls?.createTlsServer ?? null)
  await listener.listen()
  return listener
}

type CreateTlsServer = typeof createTlsServer

class Listener implements GatewayServer {
  private readonly options: ServerOptions
  private readonly server: Server
  private readonly tls: TlsServer | null
  private readonly bodyGraceMs: number
  private readonly maxConnections: number
  private readonly connections = new Map<Duplex, Connection>()
  private readonly clock: NodeJS.Timeout
  private isDraining = false
  private drained: Promise<void> | null = null

  constructor(options: ServerOptions, createTlsServer: CreateTlsServer | null) {
    this.options = options
    const { headersTimeoutMs = 10_000, checkingIntervalMs = 1000, tls } = options
    this.bodyGraceMs = options.requestTimeoutMs ?? headersTimeoutMs
    this.maxConnections = options.maxConnections ?? 10_000
    const settings = {
      insecureHTTPParser: false,
      // The guard refuses a missing Host with a reply in JSON.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersTimeoutMs,
      // A body has a minimum rate instead; see `checkBody`.
      requestTimeout: 0,
      connectionsCheckingInterval: checkingIntervalMs,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
      highWaterMark: 16 * 1024,
      noDelay: true,
    }
    this.tls =
      createTlsServer === null || tls == null
        ? null
        : createTlsServer(tls, settings, {
            handler: (req, res, awaitsContinue) => {
              this.served({ req, res, awaitsContinue }, false)
            },
            clientStallMs: this.clientStallMs,
            onProblem: options.onTlsProblem ?? (() => undefined),
          })
    this.server = this.tls?.server ?? createServer(settings)
    this.configure(this.server)
    this.clock = setInterval(() => this.checkBodies(), checkingIntervalMs).unref()
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.options.port
  }

  get draining(): boolean {
    return this.isDraining
  }

  private get clientStallMs(): number {
    return this.options.clientStallMs ?? 60_000
  }

  async listen(): Promise<void> {
    const { host, port } = this.options
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: NodeJS.ErrnoException): void => {
        const why = cause.code ?? cause.message
        const message = `cannot listen on ${host}:${port} (${why}); free the address or choose another`
        reject(new GatewayError('bug', message, { cause }))
      }
      this.server.once('error', refused)
      this.server.listen({ host, port, backlog: 1024 }, () => {
        this.server.removeListener('error', refused)
        resolve()
      })
    })
    // A connection that could not be accepted must not end the process.
    this.server.on('error', () => this.options.onRefused?.('overloaded', null))
  }

  drain(deadlineMs: number, options: DrainOptions = {}): Promise<void> {
    this.drained ??= this.drainOnce(deadlineMs, options)
    return this.drained
  }

  private configure(server: Server): void {
    // With any other limit Node 20 drops the headers beyond it silently; the guard counts them.
    server.maxHeadersCount = 0
    server.maxRequestsPerSocket = MAX_REQUESTS
    server.maxConnections = this.maxConnections + REFUSED_CONNECTIONS
    // Node's socket timeout sees the progress of a write, so it fires only if the client reads nothing.
    server.timeout = this.clientStallMs
    server
      .on(this.tls === null ? 'connection' : 'http1Connection', (socket: Socket) => {
        this.connected(socket)
      })
      .on('request', (req, res) => this.requested({ req, res, awaitsContinue: false }))
      .on('checkContinue', (req, res) => this.requested({ req, res, awaitsContinue: true }))
      .on('checkExpectation', (req, res) => this.requested({ req, res, awaitsContinue: false }))
      .on('clientError', (error, socket) => this.parserFailed(error, socket))
      .on('timeout', (socket) => this.timedOut(socket))
      // There is no listener for `upgrade`: such a request is served as an ordinary one and closes.
      .on('connect', (_req, socket) => socket.destroy())
  }

  private connected(socket: Socket): void {
    const connection: Connection = {
      ...{ socket, current: null, bodySinceMs: 0, bodyFromBytes: 0 },
      ...{ waiting: [], requests: 0, isEnding: false, refusal: null },
    }
    this.connections.set(socket, connection)
    socket.once('close', () => this.connections.delete(socket))
    if (this.connections.size <= this.maxConnections) return
    connection.isEnding = true
    this.refuse(socket, { kind: 'overloaded', message: 'the gateway has too many connections' })
  }

  /** Requests of one connection run one after the other; what follows a refused one is never run. */
  private requested(exchange: Exchange): void {
    const connection = this.connections.get(exchange.req.socket)
    if (connection === undefined || connection.isEnding) return
    if (connection.current === null) {
      this.begin(connection, exchange)
      return
    }
    connection.waiting.push(exchange)
    if (connection.waiting.length === MAX_WAITING) connection.socket.pause()
  }

  private begin(connection: Connection, exchange: Exchange): void {
    connection.current = exchange
    connection.bodySinceMs = performance.now()
    connection.bodyFromBytes = connection.socket.bytesRead
    exchange.res.once('close', () => this.answered(connection, exchange))
    connection.requests += 1
    // Node 20 loses requests that are pipelined behind an `Upgrade`, even if it does not upgrade.
    const isLast = connection.requests >= MAX_REQUESTS || exchange.req.headers.upgrade !== undefined
    if (this.served(exchange, isLast || this.isDraining) && !isLast) return
    connection.isEnding = true
    connection.waiting.length = 0
  }

  /** Gives the request to the handler; false if the guard refuses it. */
  private served({ req, res, awaitsContinue }: Exchange, isLast: boolean): boolean {
    const refusal = guardRequest(req, res.stream !== undefined)
    if (refusal !== null) {
      const id = newId()
      this.options.onRefused?.(refusal.kind, id)
      refuseRequest(res, refusal, id)
      return false
    }
    if (isLast && res.stream === undefined) res.setHeader('connection', 'close')
    if (awaitsContinue) this.continueWhenRead(req, res, isLast)
    this.options.handler(req, res)
    return true
  }

  /** Asks for the body once it is read. If it never is, the connection must close: the body may still come. */
  private continueWhenRead(req: HttpRequest, res: HttpResponse, isLast: boolean): void {
    const isHttp1 = res.stream === undefined
    if (isHttp1) res.setHeader('connection', 'close')
    req.once('resume', () => {
      if (res.headersSent) return
      if (isHttp1 && !isLast && !this.isDraining) res.removeHeader('connection')
      res.writeContinue()
    })
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

  private parserFailed(error: NodeJS.ErrnoException, socket: Duplex): void {
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
    else if (!res.emit(REFUSED, gatewayError(refusal))) {
      const id = newId()
      this.options.onRefused?.(refusal.kind, id)
      refuseRequest(res, refusal, id)
    }
  }

  private refuse(socket: Duplex, refusal: WireError): void {
    const id = newId()
    this.options.onRefused?.(refusal.kind, id)
    refuseSocket(socket, refusal, id)
  }

  /** Node calls this when the socket has moved no byte for `clientStallMs`, or idled for `keepAliveTimeoutMs`. */
  private timedOut(socket: Socket): void {
    const connection = this.connections.get(socket)
    if (connection?.current == null) socket.destroy()
    else if (socket.writableLength > 0) abandon(connection.current.res)
  }

  private checkBodies(): void {
    const nowMs = performance.now()
    for (const connection of this.connections.values()) this.checkBody(connection, nowMs)
  }

  /** A body that is read must arrive at the minimum rate once its grace is over. */
  private checkBody(connection: Connection, nowMs: number): void {
    const { current, socket, bodySinceMs, bodyFromBytes, isEnding } = connection
    if (current === null || isEnding || current.req.complete) return
    const allowedMs = this.bodyGraceMs + (socket.bytesRead - bodyFromBytes) / MIN_BODY_RATE
    if (current.req.readableFlowing !== true || nowMs - bodySinceMs <= allowedMs) return
    this.broken(connection, breachOf('ERR_HTTP_REQUEST_TIMEOUT'))
  }

  private async drainOnce(deadlineMs: number, options: DrainOptions): Promise<void> {
    this.isDraining = true
    for (const { current } of this.connections.values()) {
      if (current?.res.headersSent === false) current.res.setHeader('connection', 'close')
    }
    const { lameDuckMs = 0, onDeadline } = options
    if (lameDuckMs > 0) await new Promise((resolve) => setTimeout(resolve, lameDuckMs))
    const closed = new Promise<void>((resolve) => {
      this.server.close(() => resolve())
    })
    this.tls?.close()
    const sweep = setInterval(() => this.endIdle(), SWEEP_MS)
    this.endIdle()
    let grace: NodeJS.Timeout | undefined
    const deadline = setTimeout(() => {
      onDeadline?.()
      grace = setTimeout(() => this.endAll(), GRACE_MS)
    }, deadlineMs)
    await closed
    clearInterval(this.clock)
    clearInterval(sweep)
    clearTimeout(deadline)
    clearTimeout(grace)
  }

  /** Closes idle connections, and those that never sent a byte, which Node does not count as idle. */
  private endIdle(): void {
    this.server.closeIdleConnections()
    for (const { socket } of this.connections.values()) if (socket.bytesRead === 0) socket.destroy()
  }

  private endAll(): void {
    this.server.closeAllConnections()
    for (const { socket } of this.connections.values()) socket.destroy()
    this.tls?.destroy()
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

function newId(): string {
  return newRequestId(Date.now())
}

/** Behind a reply that did not wait for the body: a moment for the rest of it, then the end. */
function dropBody(req: HttpRequest): void {
  const timer = setTimeout(() => req.socket.destroy(), DRAIN_BODY_MS)
  const stop = (): void => clearTimeout(timer)
  req.once('end', stop).once('close', stop)
}
