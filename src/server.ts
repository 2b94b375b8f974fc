/**
 * The front door: listens, turns away what is not an honest HTTP/1.1 request, and drains.
 * Knows no route, dialect or key; whatever gets past `admit` is the handler's.
 */
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { GatewayError, rowOf } from './errors.js'
import type { ErrorKind, WireError } from './errors.js'
import { admit, METHODS } from './gateway/admit.js'
import { Connection } from './http/connection.js'
import type { Accepted, Breach, Door } from './http/door.js'
import { newRequestId } from './http/id.js'
import type { Request } from './http/request.js'
import type { Response } from './http/response.js'
import { errorBody } from './wire/error-body.js'
import { flat } from './wire/http-message.js'

/** How to listen. Every time is in milliseconds. */
export interface ServerOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** Called for each admitted request, once its headers are here. */
  handler: (req: Request, res: Response) => void
  /**
   * Told of each request that never reached the handler, with the id in its answer, and of each
   * connection that could not be taken, which has none.
   */
  onRefused?: (kind: ErrorKind, id: string | null) => void
  /** From the first byte (or the connection) to the last header; 10 s. */
  headersTimeoutMs?: number
  /** From the first byte to the last of the body; 60 s. */
  requestTimeoutMs?: number
  /** How often the two above are looked at; 1 s. */
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

const SWEEP_MS = 250
/** How long the last words of what the drain's deadline ends may take. */
const GRACE_MS = 250

/**
 * Listens. Rejects with a `GatewayError` that says why where the address cannot be had.
 */
export async function openServer(options: ServerOptions): Promise<GatewayServer> {
  const door = new FrontDoor(options)
  await door.listen()
  return door
}

class FrontDoor implements GatewayServer, Door {
  readonly server: Server
  ticks = 0
  readonly headTicks: number
  readonly requestTicks: number
  readonly idleTicks: number
  readonly keepAliveLines: string
  private readonly options: ServerOptions
  private readonly connections = new Set<Accepted>()
  private readonly clock: NodeJS.Timeout
  private isDraining = false
  private drained: Promise<void> | null = null
  /** Set while somebody waits for the last connection. */
  private onEmpty: (() => void) | null = null

  constructor(options: ServerOptions) {
    this.options = options
    const { checkingIntervalMs = 1000, keepAliveTimeoutMs = 65_000 } = options
    this.headTicks = Math.ceil((options.headersTimeoutMs ?? 10_000) / checkingIntervalMs)
    this.requestTicks = Math.ceil((options.requestTimeoutMs ?? 60_000) / checkingIntervalMs)
    this.idleTicks = Math.ceil(keepAliveTimeoutMs / checkingIntervalMs)
    // Two seconds less than the truth, so that the client lets go first.
    const hintSeconds = Math.floor(Math.max(1000, keepAliveTimeoutMs - 2000) / 1000)
    this.keepAliveLines = flat(
      `Connection: keep-alive\r\nKeep-Alive: timeout=${hintSeconds}, max=1000\r\n`,
    )
    this.clock = setInterval(() => this.tick(), checkingIntervalMs).unref()
    // Half-open, since a client that ends in the middle of a request is told what was wrong with it.
    const settings = { allowHalfOpen: true, noDelay: true, highWaterMark: 16 * 1024 }
    this.server = createServer(settings, (socket) => {
      this.connections.add(new Connection(socket, this))
    })
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
        reject(new GatewayError('cannot_listen', message, { cause }))
      }
      this.server.once('error', refused)
      this.server.listen({ host, port, backlog: 1024 }, () => {
        this.server.removeListener('error', refused)
        resolve()
      })
    })
    // From here on it says that a connection could not be accepted, which must not end the process.
    this.server.on('error', () => this.options.onRefused?.('overloaded', null))
  }

  drain(deadlineMs: number, options: DrainOptions = {}): Promise<void> {
    this.drained ??= this.drainOnce(deadlineMs, options)
    return this.drained
  }

  requested(req: Request, res: Response): void {
    const refusal = admit(req)
    if (refusal === null) {
      this.options.handler(req, res)
      return
    }
    const id = newId()
    this.options.onRefused?.(refusal.kind, id)
    refuse(res, refusal, id)
  }

  breached(breach: Breach, req: Request | null, res: Response): void {
    const refusal = refusalOf(breach)
    const id = res.owner?.id ?? newId()
    // Whoever has begun on a request counts it.
    if (req === null) this.options.onRefused?.(refusal.kind, id)
    refuse(res, refusal, id)
  }

  closed(connection: Accepted): void {
    this.connections.delete(connection)
    if (this.connections.size === 0) this.onEmpty?.()
  }

  private tick(): void {
    this.ticks += 1
    for (const connection of this.connections) connection.sweep()
  }

  private async drainOnce(deadlineMs: number, options: DrainOptions): Promise<void> {
    this.isDraining = true
    const { lameDuckMs = 0, onDeadline } = options
    if (lameDuckMs > 0) await new Promise((resolve) => setTimeout(resolve, lameDuckMs))
    const closed = this.close()
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

  /** Resolves when nothing is accepted any more and no connection is left. */
  private async close(): Promise<void> {
    await new Promise((resolve) => this.server.close(resolve))
    if (this.connections.size === 0) return
    await new Promise<void>((resolve) => (this.onEmpty = resolve))
  }

  /** Ends what waits for a request that has not begun. */
  private endIdle(): void {
    for (const connection of this.connections) if (connection.isIdle) connection.cut(false)
  }

  private endAll(): void {
    for (const connection of this.connections) connection.cut(false)
  }
}

function newId(): string {
  return newRequestId(Date.now())
}

/** The whole answer at once; nothing that comes after it is a request. */
function refuse(res: Response, error: WireError, id: string): void {
  const headers = ['content-type', 'application/json', 'x-request-id', id, 'connection', 'close']
  if (error.kind === 'method_not_allowed') headers.push('allow', METHODS.join(', '))
  res.send(rowOf(error.kind).status, headers, errorBody(error))
}

function refusalOf(breach: Breach): WireError {
  switch (breach) {
    case 'timeout':
      return { kind: 'request_timeout', message: 'the request did not arrive in time' }
    case 'head_too_large':
      return { kind: 'headers_too_large', message: 'the request line and headers exceed 16 KiB' }
    case 'trailers_too_large':
      return { kind: 'headers_too_large', message: 'the trailers exceed 16 KiB' }
    case 'extensions_too_large':
      return { kind: 'body_too_large', message: 'the chunk extensions exceed 16 KiB' }
    case 'malformed':
      return { kind: 'malformed_request', message: 'the request is not valid HTTP/1.1' }
    default:
      return breach satisfies never
  }
}
