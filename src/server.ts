/**
 * The front door: listens, turns away what is not an honest HTTP/1.1 request, and drains.
 * Knows no route, dialect or key; whatever gets past `admit` is the handler's.
 */
import { createServer, STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { GatewayError, rowOf } from './errors.js'
import type { ErrorKind, WireError } from './errors.js'
import { admit, METHODS } from './gateway/admit.js'
import { endLingering } from './gateway/linger.js'
import { errorBody } from './wire/error-body.js'

/** How to listen. Every time is in milliseconds. */
export interface ServerOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** Called for each admitted request, once its headers are here. */
  handler: (req: IncomingMessage, res: ServerResponse) => void
  /** Told of each request that never reached the handler. */
  onRefused?: (kind: ErrorKind) => void
  /** From the first byte (or the connection) to the last header; 10 s. */
  headersTimeoutMs?: number
  /** From the first byte to the last of the body; 60 s. */
  requestTimeoutMs?: number
  /** How often the two above are looked at; 1 s, since Node's 30 s make them 30 s. */
  checkingIntervalMs?: number
  /** How long an idle connection stays; 65 s, above the 60 s of most load balancers. */
  keepAliveTimeoutMs?: number
}

/** How to stop. Every time is in milliseconds. */
export interface DrainOptions {
  /** How long to go on accepting, with `Connection: close` on each answer; 0. */
  lameDuckMs?: number
  /** Called once, when the deadline passes with requests still open: the last moment to tell them. */
  onDeadline?: () => void
}

/** A listening server. */
export interface GatewayServer {
  readonly port: number
  readonly server: Server
  /** True from the moment that drain() is called. */
  readonly draining: boolean
  /**
   * Stops accepting, lets what is open finish, and resolves when no connection is left; at the
   * latest `deadlineMs` (and a grace of 250 ms for the last words) after accepting stopped.
   * Never rejects; further calls wait for the first.
   */
  drain(deadlineMs: number, options?: DrainOptions): Promise<void>
}

const MAX_HEADER_BYTES = 16 * 1024
/** How long the rest of a request whose answer has been written is read and thrown away. */
const LINGER_MS = 250
const SWEEP_MS = 250

interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

interface Connection {
  readonly open: Set<Exchange>
  /** A refusal is on its way: nothing that comes after it is a request. */
  isEnding: boolean
}

/**
 * Listens. Rejects with a `GatewayError` that says why where the address cannot be had.
 */
export async function openServer(options: ServerOptions): Promise<GatewayServer> {
  const door = new FrontDoor(options)
  await door.listen()
  return door
}

class FrontDoor implements GatewayServer {
  readonly server: Server
  private readonly options: ServerOptions
  private readonly keepAliveHintMs: number
  private readonly connections = new Map<Duplex, Connection>()
  private isDraining = false
  private drained: Promise<void> | null = null

  constructor(options: ServerOptions) {
    this.options = options
    const keepAliveTimeout = options.keepAliveTimeoutMs ?? 65_000
    // Two seconds less than the truth, so that the client lets go first.
    this.keepAliveHintMs = Math.max(1000, keepAliveTimeout - 2000)
    this.server = createServer({
      insecureHTTPParser: false,
      // Node would refuse without a body; `admit` does it in ours.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 60_000,
      connectionsCheckingInterval: options.checkingIntervalMs ?? 1000,
      keepAliveTimeout,
      highWaterMark: 16 * 1024,
      noDelay: true,
    })
    // Any other cap makes Node 20 drop the headers beyond it in silence; `admit` counts them.
    this.server.maxHeadersCount = 0
    this.server.maxRequestsPerSocket = 1000
    this.server.timeout = 0
    this.server
      .on('connection', (socket) => this.connected(socket))
      .on('request', (req, res) => this.requested(req, res, false))
      .on('checkContinue', (req, res) => this.requested(req, res, true))
      .on('checkExpectation', (req, res) => this.requested(req, res, false))
      .on('clientError', (error, socket) => this.parserFailed(error, socket))
      // There is no listener for `upgrade` on purpose: such a request is answered as a plain one.
      .on('connect', (_req, socket) => socket.destroy())
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.options.port
  }

  get draining(): boolean {
    return this.isDraining
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
    // From here on it says that a connection could not be accepted, which must not end the process.
    this.server.on('error', () => this.options.onRefused?.('overloaded'))
  }

  drain(deadlineMs: number, options: DrainOptions = {}): Promise<void> {
    this.drained ??= this.drainOnce(deadlineMs, options)
    return this.drained
  }

  private connected(socket: Socket): void {
    this.connections.set(socket, { open: new Set(), isEnding: false })
    socket.once('close', () => this.connections.delete(socket))
  }

  private requested(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean): void {
    const connection = this.connections.get(req.socket)
    if (connection === undefined || connection.isEnding) return
    const exchange = { req, res }
    connection.open.add(exchange)
    res.once('close', () => {
      connection.open.delete(exchange)
      if (res.writableFinished) dropUnread(req)
    })
    const refusal = admit(req)
    if (refusal !== null) {
      connection.isEnding = true
      this.options.onRefused?.(refusal.kind)
      this.refuse(exchange, refusal)
      return
    }
    // Node 20 loses what is pipelined behind an `Upgrade`, even one that it does not make.
    const isLast = this.isDraining || req.headers.upgrade !== undefined
    if (isLast) res.setHeader('connection', 'close')
    // The hint is shorter than the truth. As a header set beforehand it would cost the fast way of
    // writeHead, 4 µs per request; a Node without this field sends the truth.
    else Reflect.set(res, '_keepAliveTimeout', this.keepAliveHintMs)
    if (awaitsContinue) this.continueWhenRead(req, res, isLast)
    this.options.handler(req, res)
  }

  /** Asks for the body once somebody reads it; one who never does must close, as the client may send it. */
  private continueWhenRead(req: IncomingMessage, res: ServerResponse, isLast: boolean): void {
    res.setHeader('connection', 'close')
    req.once('resume', () => {
      if (res.headersSent) return
      if (!isLast && !this.isDraining) res.removeHeader('connection')
      res.writeContinue()
    })
  }

  private parserFailed(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.connections.get(socket)
    if (connection?.isEnding === true) return
    if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    // More bytes after a request that was the connection's last: the answer closes it anyway.
    if (error.code === 'HPE_CLOSED_CONNECTION' && connection.open.size > 0) return
    connection.isEnding = true
    const refusal = parserRefusal(error.code)
    const [exchange, ...more] = connection.open
    if (exchange === undefined) {
      this.options.onRefused?.(refusal.kind)
      sayGoodbye(socket, refusal)
    } else if (more.length === 0 && !exchange.req.complete && !exchange.res.headersSent) {
      this.refuse(exchange, refusal)
    } else {
      // An answer now would be taken for the one to an earlier request.
      socket.destroy()
    }
  }

  /** Writes the whole answer at once, and ends it when the client has stopped sending or been given time. */
  private refuse({ req, res }: Exchange, error: WireError): void {
    const body = Buffer.from(errorBody(error))
    if (error.kind === 'method_not_allowed') res.setHeader('allow', METHODS.join(', '))
    res.removeHeader('keep-alive')
    res.writeHead(rowOf(error.kind).status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': body.length,
      connection: 'close',
    })
    res.write(body)
    endLingering(req, res)
  }

  private async drainOnce(deadlineMs: number, options: DrainOptions): Promise<void> {
    this.isDraining = true
    for (const { res } of this.exchanges()) {
      if (!res.headersSent) res.setHeader('connection', 'close')
    }
    const { lameDuckMs = 0, onDeadline } = options
    if (lameDuckMs > 0) await new Promise((resolve) => setTimeout(resolve, lameDuckMs))
    const closed = new Promise<void>((resolve) => {
      this.server.close(() => resolve())
    })
    const sweep = setInterval(() => this.sweep(), SWEEP_MS)
    this.sweep()
    let grace: NodeJS.Timeout | undefined
    const deadline = setTimeout(() => {
      onDeadline?.()
      grace = setTimeout(() => this.destroyAll(), LINGER_MS)
    }, deadlineMs)
    await closed
    clearInterval(sweep)
    clearTimeout(deadline)
    clearTimeout(grace)
  }

  /** Closes what is idle, and what never spoke: Node takes the latter for busy, for ever. */
  private sweep(): void {
    this.server.closeIdleConnections()
    for (const socket of this.connections.keys()) {
      if ('bytesRead' in socket && socket.bytesRead === 0) socket.destroy()
    }
  }

  private destroyAll(): void {
    this.server.closeAllConnections()
    for (const socket of this.connections.keys()) socket.destroy()
  }

  private *exchanges(): Generator<Exchange> {
    for (const connection of this.connections.values()) yield* connection.open
  }
}

/** After an answer that did not wait for the body: a moment for the rest of it, then the end. */
function dropUnread(req: IncomingMessage): void {
  if (req.complete) return
  const timer = setTimeout(() => req.socket.destroy(), LINGER_MS)
  const stop = (): void => clearTimeout(timer)
  req.once('end', stop).once('close', stop)
}

function parserRefusal(code: string | undefined): WireError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { kind: 'request_timeout', message: 'the request did not arrive in time' }
    case 'HPE_HEADER_OVERFLOW':
      return { kind: 'headers_too_large', message: 'the request line and headers exceed 16 KiB' }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { kind: 'body_too_large', message: 'the chunk extensions exceed 16 KiB' }
    default:
      return { kind: 'malformed_request', message: 'the request is not valid HTTP/1.1' }
  }
}

/** Answers where there is no request to answer, and closes. */
function sayGoodbye(socket: Duplex, error: WireError): void {
  const body = errorBody(error)
  const { status } = rowOf(error.kind)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}
