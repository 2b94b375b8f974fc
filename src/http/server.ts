/**
 * The listener of the data plane: HTTP/1.1 by `node:http`, with TLS also HTTP/2. Refuses requests that the
 * guard rejects, runs one request of a connection at a time, limits slow clients, and drains.
 */
import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { WireError, ErrorKind } from '../errors.js'
import { cannotListen } from './cannot-listen.js'
import { Http1Connections, MAX_REQUESTS, type Exchange } from './http1-connections.js'
import { isForWebSocket, type HttpRequest, type HttpResponse, type Upgrade } from './message.js'
import type { TlsFiles } from './read-tls-files.js'
import { refuseRequest, type RefusalBody } from './refuse-request.js'
import { guardRequest, MAX_HEAD_BYTES } from './request-guard.js'
import { newRequestId } from './request-id.js'
import { SlowClients } from './slow-clients.js'
import { setHeaders } from './respond.js'
import type { createTlsServer, TlsServer } from './tls-server.js'

const SWEEP_MS = 250
/**
 * Limits of the time for the last errors after the drain's deadline; the default is the duration of the
 * drain.
 */
const GRACE_MS = { min: 250, max: 3000 }
/** Connections above `maxConnections` that can receive a refusal at once. */
const REFUSED_CONNECTIONS = 256

const NO_UPGRADE: WireError = {
  kind: 'malformed_request',
  message: 'only a GET without a body to /v1/responses or below /native/ opens a WebSocket',
}

/**
 * A request of which Node releases the connection only if it is for a WebSocket. Node reads `upgrade` of the
 * parsed head to decide it; other protocols, such as the `h2c` that Java's client offers with each
 * request, are ignored, and the request is served.
 */
class UpgradableRequest extends IncomingMessage {
  private isUpgrade = false

  get upgrade(): boolean {
    return this.isUpgrade && isForWebSocket(this)
  }

  set upgrade(isUpgrade: boolean | null) {
    this.isUpgrade = isUpgrade === true
  }
}
/** Listens. Rejects with a `GatewayError` that contains the cause if the address cannot be used. */
export async function openServer(options: ServerOptions): Promise<GatewayServer> {
  // HTTP/2 is loaded only if it is used.
  const tls = (options.tls ?? null) === null ? null : await import('./tls-server.js')
  const listener = new Listener(options, tls?.createTlsServer ?? null)
  await listener.listen()
  return listener
}

type CreateTlsServer = typeof createTlsServer

class Listener implements GatewayServer {
  private readonly options: ServerOptions
  private readonly server: Server
  private readonly tls: TlsServer | null
  private readonly connections: Http1Connections
  private readonly slowClients: SlowClients
  private readonly clock: NodeJS.Timeout
  private readonly upgraded = (req: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Node has removed its own listeners.
    socket.on('error', () => socket.destroy())
    if (!(socket instanceof Socket)) return
    const res = new ServerResponse(req)
    res.assignSocket(socket)
    res.once('finish', () => {
      res.detachSocket(socket)
      res.emit('close')
    })
    this.connections.upgrade({ req, res, awaitsContinue: false, upgrade: { socket, head } })
  }

  private isDraining = false
  private drained: Promise<void> | null = null

  constructor(options: ServerOptions, createTlsServer: CreateTlsServer | null) {
    this.options = options
    const { headersTimeoutMs = 10_000, checkingIntervalMs = 1000, tls = null } = options
    this.slowClients = new SlowClients(options.clientStallMs ?? 60_000)
    this.connections = new Http1Connections({
      slowClients: this.slowClients,
      maxConnections: this.maxConnections,
      bodyGraceMs: options.requestTimeoutMs ?? headersTimeoutMs,
      others: () => this.tls?.sessions.size ?? 0,
      serve: (exchange, isLast) =>
        this.serve(exchange, isLast || this.isDraining || options.closesConnections?.() === true),
      onRefused: (kind, id) => options.onRefused?.(kind, id),
    })
    const settings = {
      insecureHTTPParser: false,
      // The guard refuses a missing Host with a reply in JSON.
      requireHostHeader: false,
      maxHeaderSize: this.maxHeadBytes,
      headersTimeout: headersTimeoutMs,
      // A body has a minimum rate instead; see `refuse-request.ts`.
      requestTimeout: 0,
      connectionsCheckingInterval: checkingIntervalMs,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
      highWaterMark: 16 * 1024,
      noDelay: true,
      ...(options.takesUpgrade === undefined ? {} : { IncomingMessage: UpgradableRequest }),
    }
    this.tls =
      createTlsServer === null || tls === null
        ? null
        : createTlsServer(tls, settings, {
            serve: (exchange) => void this.serve(exchange, false),
            isFull: () => this.connections.isFull,
            onRefused: (kind, id) => options.onRefused?.(kind, id),
            slowClients: this.slowClients,
            maxHeadBytes: this.maxHeadBytes,
            bodyGraceMs: options.requestTimeoutMs ?? headersTimeoutMs,
            onProblem: options.onTlsProblem ?? (() => undefined),
            onCertificate: options.onCertificate ?? (() => undefined),
          })
    this.server = this.tls?.server ?? createServer(settings)
    this.configure(this.server)
    this.clock = setInterval(() => {
      this.connections.checkBodies()
      this.tls?.sessions.checkBodies()
    }, checkingIntervalMs).unref()
  }

  private get maxHeadBytes(): number {
    return this.options.maxHeadBytes ?? MAX_HEAD_BYTES
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.options.port
  }

  get draining(): boolean {
    return this.isDraining
  }

  private get maxConnections(): number {
    return this.options.maxConnections ?? 10_000
  }

  async listen(): Promise<void> {
    const { host, port } = this.options
    await new Promise<void>((resolve, reject) => {
      const refused = (cause: NodeJS.ErrnoException): void => {
        reject(cannotListen(`${host}:${port}`, cause, { settings: 'server.host and server.port' }))
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
    // With any other limit Node 20 silently drops the headers beyond it; the guard counts them.
    server.maxHeadersCount = 0
    server.maxRequestsPerSocket = MAX_REQUESTS
    server.maxConnections = this.maxConnections + REFUSED_CONNECTIONS
    // Node's socket timeout observes the progress of a write, so it fires only if the client reads nothing.
    server.timeout = this.slowClients.everyMs
    server
      .on(this.tls === null ? 'connection' : 'http1Connection', (socket: Socket) => {
        this.connections.add(socket)
      })
      .on('request', (req, res) => this.connections.request({ req, res, awaitsContinue: false }))
      .on('checkContinue', (req, res) => this.connections.request({ req, res, awaitsContinue: true }))
      .on('checkExpectation', (req, res) => this.connections.request({ req, res, awaitsContinue: false }))
      .on('clientError', (error, socket) => this.connections.parserFailed(error, socket))
      .on('timeout', (socket: Socket) => this.connections.timedOut(socket))
      .on('connect', (_req, socket) => socket.destroy())
    // Without this listener such a request is served as an ordinary one, and its connection closes.
    if (this.options.takesUpgrade !== undefined) server.on('upgrade', this.upgraded)
  }

  /** Passes the request to the handler; false if the guard refuses it. */
  private serve({ req, res, awaitsContinue, upgrade }: Exchange, isLast: boolean): boolean {
    setHeaders(res, this.options.replyHeaders?.(req) ?? [])
    const isTaken = upgrade === undefined || this.options.takesUpgrade?.(req) === true
    const refusal =
      guardRequest(req, res.stream !== undefined, this.maxHeadBytes) ?? (isTaken ? null : NO_UPGRADE)
    if (refusal !== null) {
      const id = newRequestId(Date.now())
      this.options.onRefused?.(refusal.kind, id)
      refuseRequest(res, refusal, id, this.options.refusalBody?.(req, refusal, id))
      return false
    }
    if (isLast && res.stream === undefined) res.setHeader('connection', 'close')
    if (awaitsContinue) this.continueWhenRead(req, res, isLast)
    this.options.handler(req, res, upgrade ?? null)
    return true
  }

  /**
   * Requests the body when it is read. If it is never read, the connection must close, since the body may
   * still arrive.
   */
  private continueWhenRead(req: HttpRequest, res: HttpResponse, isLast: boolean): void {
    const isHttp1 = res.stream === undefined
    if (isHttp1) res.setHeader('connection', 'close')
    req.once('resume', () => {
      if (res.headersSent) return
      if (isHttp1 && !isLast && !this.isDraining) res.removeHeader('connection')
      res.writeContinue()
    })
  }

  private async drainOnce(deadlineMs: number, options: DrainOptions): Promise<void> {
    this.isDraining = true
    this.connections.closeSoon()
    this.tls?.sessions.announceClose()
    const { lameDuckMs = 0, isReplaced = false, onDeadline } = options
    // Idle connections stay open for now: a request may be in transit on one of them.
    const early = isReplaced ? untilClosed((done) => stopListening(this.server, done)) : null
    if (lameDuckMs > 0) await new Promise((resolve) => setTimeout(resolve, lameDuckMs))
    // Reads requests that have arrived.
    await new Promise((resolve) => setImmediate(resolve))
    const closed = early ?? untilClosed((done) => this.server.close(done))
    this.tls?.close()
    const sweep = setInterval(() => this.endIdle(), SWEEP_MS)
    this.endIdle()
    let grace: NodeJS.Timeout | undefined
    const deadline = setTimeout(() => {
      onDeadline?.()
      const graceMs = Math.min(Math.max(deadlineMs, GRACE_MS.min), GRACE_MS.max)
      grace = setTimeout(() => this.endAll(), graceMs)
    }, deadlineMs)
    await closed
    clearInterval(this.clock)
    clearInterval(sweep)
    clearTimeout(deadline)
    clearTimeout(grace)
  }

  private endIdle(): void {
    this.server.closeIdleConnections()
    this.connections.destroySilent()
  }

  private endAll(): void {
    this.server.closeAllConnections()
    this.connections.destroy()
    this.tls?.sessions.destroy()
  }
}

/** Resolves when no connection is left. */
function untilClosed(close: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => close(resolve))
}

/** `http.Server` has a method of the same name that also closes idle connections. */
function stopListening(server: NetServer, done: () => void): void {
  NetServer.prototype.close.call(server, done)
}

/** Options of `openServer`. All times are in milliseconds. */
export interface ServerOptions {
  host: string
  /** 0: any free port. */
  port: number
  /**
   * Called for each request that the guard accepts, when its headers have arrived. `upgrade` is null unless
   * `takesUpgrade` returned true for the request.
   */
  handler: (req: HttpRequest, res: HttpResponse, upgrade: Upgrade | null) => void
  /**
   * Whether the handler takes this request for a WebSocket; others are refused. Absent: no WebSocket is
   * opened, and such a request is served as an ordinary one whose connection closes.
   */
  takesUpgrade?: (req: HttpRequest) => boolean
  /** Whether connections close after the current reply. */
  closesConnections?: () => boolean
  /** Headers of every reply to the request, including refusals: name, value, … */
  replyHeaders?: (req: HttpRequest) => readonly string[]
  /** The body of a refused request to an API with a form of its own; null for OpenAI's form. */
  refusalBody?: (req: HttpRequest, error: WireError, id: string) => RefusalBody | null
  /**
   * Called for each request that did not reach the handler, with the id in its reply; and with null for each
   * connection that could not be accepted.
   */
  onRefused?: (kind: ErrorKind, id: string | null) => void
  /** From the first byte (or the connection) to the last header; default 10 s. */
  headersTimeoutMs?: number
  /** Time after which a body must arrive at 1 KiB/s on average; default `headersTimeoutMs`. */
  requestTimeoutMs?: number
  /** Interval of the checks of both timeouts; default 1 s. */
  checkingIntervalMs?: number
  /** How long an idle connection stays open; default 65 s, longer than the 60 s of most load balancers. */
  keepAliveTimeoutMs?: number
  /** How long a client may read no byte of a reply; default 60 s. */
  clientStallMs?: number
  /** A further connection is refused with 503 and closed; default 10,000. */
  maxConnections?: number
  /** Maximum size of the request line and headers; default 16 KiB. */
  maxHeadBytes?: number
  /** HTTPS and HTTP/2; HTTP/1.1 without TLS if absent. */
  tls?: TlsFiles | null
  /** Called with the error of changed certificate files; the previous certificate stays in use. */
  onTlsProblem?: (problem: Error) => void
  /** Called with the certificate in use, in PEM: at the start and after each change. */
  onCertificate?: (pem: string) => void
}

/** Options of `drain`. */
interface DrainOptions {
  /**
   * How long idle connections stay open and new ones are accepted, with `connection: close` on each reply;
   * default 0.
   */
  lameDuckMs?: number
  /** Another process listens on the same address and accepts all new connections from the start. */
  isReplaced?: boolean
  /** Called once if requests are still open at the deadline: the last moment to send them an error. */
  onDeadline?: () => void
}

/** A listening server. */
export interface GatewayServer {
  readonly port: number
  /** True after the first call of drain(). */
  readonly draining: boolean
  /**
   * Stops accepting, lets open requests finish, and resolves when no connection is left; at the
   * latest `deadlineMs` (and a grace of up to 3 s for last errors) after accepting stopped.
   * Never rejects; further calls wait for the first.
   */
  drain(deadlineMs: number, options?: DrainOptions): Promise<void>
}
