/**
 * The requests of one upstream on undici's connections, in the order in which they came.
 *
 * undici cannot take back a request once it is queued: it keeps the body, and aborting the request when its turn
 * comes destroys the connection. Requests beyond `max_connections` therefore wait here, where a cancelled one is
 * removed at once.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { startsWriting, type ConnectionUse, type Writing } from './connection-use.js'

/** What goes upstream. `headers` is name, value, name, value; undici adds framing and host. */
export interface UpstreamRequest {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: Buffer | string | null
  /** Default: `POST`. */
  readonly method?: 'GET' | 'POST'
  /** It must not be sent on a connection that served another request. */
  readonly onFreshConnection?: boolean
}

/** Receives one reply, in this order; after `onResponseEnd` or `onResponseError` nothing follows. */
export interface ReplyHandler {
  /** There is a connection, and the request goes out when this returns. */
  onRequestStart(): void
  onResponseStart(status: number, headers: IncomingHttpHeaders): void
  onResponseData(chunk: Buffer): void
  onResponseEnd(): void
  onResponseError(cause: Error): void
}

/** One request under way. */
export interface UpstreamCall {
  /** Stops reading the reply; the chunk being handled is the last until `resume`. */
  pause(): void
  resume(): void
  /** True while all `max_connections` connections are in use and the request waits for one. */
  readonly isWaiting: boolean
  /** The connection that the request was written to; null before, and with HTTP/2. */
  readonly connection: ConnectionUse | null
  /**
   * Ends the exchange in every phase; the handler receives nothing more. A request that has not been sent opens and
   * closes no connection; the connection of one that has been sent is destroyed (HTTP/2: the stream).
   */
  abort(): void
}

/** Where requests go, and how many at once. */
export interface PoolOptions {
  readonly origin: string
  readonly dispatcher: Dispatcher
  readonly maxConnections: number
  /** Opens a dispatcher that has no connection yet, for one request. */
  readonly openFresh: () => Dispatcher
}

/** A request of the gateway itself. */
export interface GetOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** What may not stand in a request's path, and in a header's value. undici refuses the same. */
const NOT_IN_PATH = /[^\x21-\xff]/
const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/** Thrown at undici when the turn of a cancelled request comes: undici drops it and keeps the connection. */
const CANCELLED = new Error('the request was cancelled before it was sent')

/** A request that cannot be written as HTTP, or a pool that has been destroyed. */
export class NotSentError extends Error {
  readonly code: 'BAD_REQUEST' | 'DESTROYED'

  constructor(code: NotSentError['code'], message: string) {
    super(message)
    this.code = code
  }
}

const DESTROYED = new NotSentError('DESTROYED', 'the connections have been closed')

/** The requests of one upstream. */
export class UpstreamPool {
  private readonly options: PoolOptions
  /**
   * Those that go out with the next microtask. Most requests need no other list, and a set that is filled and
   * emptied all the time makes V8 allocate its tables again and again.
   */
  private ready: Exchange[] = []
  /** Those above `max_connections`, in the order in which they came; a set: a cancelled one leaves in constant time. */
  private readonly waiting = new Set<Exchange>()
  private running = 0
  private isDue = false
  private isDestroyed = false
  private onAllSent: (() => void) | null = null

  constructor(options: PoolOptions) {
    this.options = options
  }

  /** Sends the request as soon as fewer than `max_connections` are under way. The handler is called later. */
  send(request: UpstreamRequest, handler: ReplyHandler): UpstreamCall {
    const exchange = new Exchange(request, handler, this)
    if (this.waiting.size === 0 && this.running < this.options.maxConnections) {
      this.running += 1
      this.ready.push(exchange)
    } else {
      this.waiting.add(exchange)
    }
    this.schedule()
    return exchange
  }

  /**
   * One GET beside the requests of clients, which it does not wait for. Rejects if there is no reply within
   * `timeoutMs` or it is longer than `maxBytes`.
   */
  async get(
    path: string,
    { headers, maxBytes, timeoutMs }: GetOptions,
  ): Promise<{ readonly status: number; readonly body: Buffer }> {
    const { dispatcher, origin } = this.options
    const signal = AbortSignal.timeout(timeoutMs)
    const reply = await dispatcher.request({ origin, path, method: 'GET', headers, signal })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of reply.body) {
      const piece = Buffer.from(chunk as Uint8Array)
      bytes += piece.length
      if (bytes > maxBytes) throw new Error(`the reply is longer than ${maxBytes} bytes`)
      chunks.push(piece)
    }
    return { status: reply.statusCode, body: Buffer.concat(chunks, bytes) }
  }

  /** Lets everything under way and waiting finish; resolves when no connection is left. */
  async close(): Promise<void> {
    if (this.ready.length > 0 || this.waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.onAllSent = resolve
      })
    }
    if (!this.isDestroyed) await this.options.dispatcher.close()
  }

  /** Ends everything at once; handlers receive an error. */
  async destroy(): Promise<void> {
    if (this.isDestroyed) return
    this.isDestroyed = true
    this.flush()
    await this.options.dispatcher.destroy()
  }

  isWaiting(exchange: Exchange): boolean {
    return this.waiting.has(exchange)
  }

  /** A request was cancelled while it waited. */
  left(exchange: Exchange): void {
    if (this.waiting.delete(exchange) && this.waiting.size === 0 && this.ready.length === 0)
      this.allSent()
  }

  /** A request is over. */
  released(): void {
    this.running -= 1
    if (this.waiting.size > 0) this.schedule()
  }

  /** Not at once: undici's parser, in whose callback this may be called, cannot be entered twice. */
  private schedule(): void {
    if (this.isDue) return
    this.isDue = true
    queueMicrotask(() => this.flush())
  }

  private flush(): void {
    this.isDue = false
    const { ready } = this
    this.ready = []
    for (const exchange of ready) {
      if (exchange.isCancelled) this.running -= 1
      else this.dispatch(exchange)
    }
    for (const exchange of this.waiting) {
      if (this.running >= this.options.maxConnections && !this.isDestroyed) return
      this.waiting.delete(exchange)
      this.running += 1
      this.dispatch(exchange)
    }
    this.allSent()
  }

  private dispatch(exchange: Exchange): void {
    const { dispatcher, origin } = this.options
    const { path, headers, body, method = 'POST' } = exchange.request
    const problem = this.isDestroyed ? DESTROYED : problemOf(exchange.request)
    if (problem !== null) {
      exchange.onResponseError(null, problem)
      return
    }
    const isFresh = exchange.request.onFreshConnection === true
    const used = isFresh ? this.options.openFresh() : dispatcher
    used.dispatch(
      // The gateway has time-outs of its own; 0 turns undici's off.
      {
        origin,
        path,
        method,
        headers: headers as string[],
        body,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      exchange,
    )
    // Closing lets the request finish first.
    if (isFresh) void used.close()
  }

  private allSent(): void {
    this.onAllSent?.()
    this.onAllSent = null
  }
}

/** Checked here as well: a pool of undici that refuses a request takes its connection for busy ever after. */
function problemOf({ path, headers }: UpstreamRequest): NotSentError | null {
  if (NOT_IN_PATH.test(path)) {
    return new NotSentError('BAD_REQUEST', 'the path has a character that it may not have')
  }
  for (let at = 1; at < headers.length; at += 2) {
    if (NOT_IN_HEADER.test(headers[at] ?? '')) {
      const name = headers[at - 1] ?? ''
      const message = `the header '${name}' has a character that it may not have`
      return new NotSentError('BAD_REQUEST', message)
    }
  }
  return null
}

/** One request, as undici's handler and as the caller's handle on it. */
class Exchange implements UpstreamCall, Writing, Dispatcher.DispatchHandler {
  readonly request: UpstreamRequest
  connection: ConnectionUse | null = null
  private readonly pool: UpstreamPool
  /** Null once the caller has ended it. */
  private handler: ReplyHandler | null
  private controller: Dispatcher.DispatchController | null = null
  private isOver = false

  constructor(request: UpstreamRequest, handler: ReplyHandler, pool: UpstreamPool) {
    this.request = request
    this.handler = handler
    this.pool = pool
  }

  get path(): string {
    return this.request.path
  }

  written(connection: ConnectionUse): void {
    this.connection = connection
  }

  /** The caller has ended it. */
  get isCancelled(): boolean {
    return this.handler === null
  }

  get isWaiting(): boolean {
    return this.pool.isWaiting(this)
  }

  pause(): void {
    this.controller?.pause()
  }

  resume(): void {
    this.controller?.resume()
  }

  abort(): void {
    this.handler = null
    if (this.controller === null) this.pool.left(this)
    else if (!this.isOver) this.controller.abort(CANCELLED)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.handler === null) throw CANCELLED
    this.controller = controller
    startsWriting(this)
    this.handler.onRequestStart()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Informational replies precede the one that counts.
    if (status >= 200) this.handler?.onResponseStart(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler?.onResponseData(chunk)
  }

  onResponseEnd(): void {
    this.over()
    this.handler?.onResponseEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, cause: Error): void {
    this.over()
    this.handler?.onResponseError(cause)
  }

  private over(): void {
    if (this.isOver) return
    this.isOver = true
    this.pool.released()
  }
}
