/**
 * Queues the requests of one upstream and sends them on undici's connections in order of arrival.
 *
 * undici cannot remove a queued request: it keeps the body, and aborting the request when it is sent destroys
 * the connection. Requests beyond `max_connections` therefore wait here, and a cancelled one is removed at
 * once.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Authorizer, Refusal } from './identities/authorizer.js'
import {
  startsWriting,
  type ReplyHandler,
  type UpstreamCall,
  type UpstreamRequest,
  type ConnectionUse,
  type Writing,
} from './upstream-call.js'

/** The origin of the requests, and their maximum number at the same time. */
interface QueueOptions {
  readonly origin: string
  readonly dispatcher: Dispatcher
  readonly maxConnections: number
  /** Opens a dispatcher that has no connection yet, for one request. */
  readonly openFresh: () => Dispatcher
  /** Adds the gateway's credentials when a request is sent; null if its headers have them already. */
  readonly authorizer?: Authorizer | null
}

/** Options of a request of the gateway itself. */
interface GetOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** Characters that are not allowed in paths and header values; undici refuses the same ones. */
const NOT_IN_PATH = /[^\x21-\xff]/
const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

/** A request that cannot be written as HTTP, or a pool that has been destroyed. */
class NotSentError extends Error {
  readonly code: 'BAD_REQUEST' | 'DESTROYED'

  constructor(code: NotSentError['code'], message: string) {
    super(message)
    this.code = code
  }
}

const DESTROYED = new NotSentError('DESTROYED', 'the connections have been closed')

export class RequestQueue {
  private readonly options: QueueOptions
  /**
   * Requests that are sent in the next microtask. Most requests use only this list; a set that is constantly
   * filled and emptied would make V8 reallocate its tables.
   */
  private ready: QueuedRequest[] = []
  /**
   * Requests above `max_connections`, in order of arrival. A set, so that a cancelled request is removed in
   * constant time.
   */
  private readonly waiting = new Set<QueuedRequest>()
  private running = 0
  private isDue = false
  private isDestroyed = false
  private onAllSent: (() => void) | null = null

  constructor(options: QueueOptions) {
    this.options = options
  }

  /**
   * Sends the request as soon as fewer than `max_connections` are running. The handler is called
   * asynchronously.
   */
  send(request: UpstreamRequest, handler: ReplyHandler): UpstreamCall {
    const pooled = new QueuedRequest(request, handler, this)
    if (this.waiting.size === 0 && this.running < this.options.maxConnections) {
      this.running += 1
      this.ready.push(pooled)
    } else {
      this.waiting.add(pooled)
    }
    this.schedule()
    return pooled
  }

  /**
   * Sends one GET without waiting in the queue of clients' requests. Rejects if there is no reply within
   * `timeoutMs` or it is longer than `maxBytes`.
   */
  async get(
    path: string,
    { headers, maxBytes, timeoutMs }: GetOptions,
  ): Promise<{ readonly status: number; readonly body: Buffer }> {
    const { dispatcher, origin, authorizer = null } = this.options
    const signal = AbortSignal.timeout(timeoutMs)
    const list = Object.entries(headers).flat()
    const request = { method: 'GET' as const, path, headers: list, body: null }
    const authorized = authorizer === null ? list : [...(await authorizer.headers(request))]
    const reply = await dispatcher.request({ ...request, origin, headers: authorized, signal })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of reply.body) {
      const data = Buffer.from(chunk as Uint8Array)
      bytes += data.length
      if (bytes > maxBytes) throw new Error(`the reply is longer than ${maxBytes} bytes`)
      chunks.push(data)
    }
    return { status: reply.statusCode, body: Buffer.concat(chunks, bytes) }
  }

  /** Finishes all running and waiting requests; resolves when all connections are closed. */
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

  isWaiting(request: QueuedRequest): boolean {
    return this.waiting.has(request)
  }

  /** Removes a request that was cancelled while it waited. */
  cancelWaiting(request: QueuedRequest): void {
    if (this.waiting.delete(request) && this.waiting.size === 0 && this.ready.length === 0) this.allSent()
  }

  /** Frees the slot of a request that has ended. */
  released(): void {
    this.running -= 1
    if (this.waiting.size > 0) this.schedule()
  }

  /** Deferred, because this may be called in a callback of undici's parser, which is not reentrant. */
  private schedule(): void {
    if (this.isDue) return
    this.isDue = true
    queueMicrotask(() => this.flush())
  }

  private flush(): void {
    this.isDue = false
    const { ready } = this
    this.ready = []
    for (const request of ready) {
      if (request.isCancelled) this.running -= 1
      else this.authorize(request)
    }
    for (const request of this.waiting) {
      if (this.running >= this.options.maxConnections && !this.isDestroyed) return
      this.waiting.delete(request)
      this.running += 1
      this.authorize(request)
    }
    this.allSent()
  }

  private authorize(request: QueuedRequest): void {
    const { authorizer = null } = this.options
    if (authorizer === null) return this.dispatch(request, request.request.headers)
    request.authorizedAtMs = Date.now()
    const headers = authorizer.headers(request.request)
    if (!(headers instanceof Promise)) return this.dispatch(request, headers)
    headers.then(
      (authorized) => {
        if (request.isCancelled) this.released()
        else this.dispatch(request, authorized)
      },
      (error: unknown) =>
        request.onResponseError(null, error instanceof Error ? error : new Error(String(error))),
    )
  }

  /** The refusals of a credential that a request reads before its handler; null if it reads none. */
  get refusals(): Pick<Authorizer, 'mayRefuse'> | null {
    return this.options.authorizer ?? null
  }

  /** Sends a refused request a second time if there are new credentials; else passes the refusal. */
  async refused(request: QueuedRequest, refusal: Refusal): Promise<void> {
    const { authorizer } = this.options
    const isRenewed = (await authorizer?.renew(refusal, request.authorizedAtMs)) === true
    if (request.isCancelled) return
    if (!isRenewed) return request.passRefusal()
    request.again()
    this.waiting.add(request)
    this.schedule()
  }

  private dispatch(request: QueuedRequest, headers: readonly string[]): void {
    const { dispatcher, origin } = this.options
    const { path, body, stream, method = 'POST' } = request.request
    // Those of the authorizer were checked when the credential arrived.
    const problem = this.isDestroyed ? DESTROYED : problemOf(path, request.request.headers)
    if (problem !== null) {
      request.onResponseError(null, problem)
      return
    }
    const isFresh = request.request.onFreshConnection === true
    const requestDispatcher = isFresh ? this.options.openFresh() : dispatcher
    requestDispatcher.dispatch(
      // The gateway has its own timeouts; 0 turns undici's off.
      {
        origin,
        path,
        method,
        headers: headers as string[],
        body: stream ?? body,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      request,
    )
    // `close` waits for the request.
    if (isFresh) void requestDispatcher.close()
  }

  private allSent(): void {
    this.onAllSent?.()
    this.onAllSent = null
  }
}

/**
 * Checks a request as undici does, because an undici pool that refuses a request marks its connection as busy
 * permanently.
 */
function problemOf(path: string, headers: readonly string[]): NotSentError | null {
  if (NOT_IN_PATH.test(path)) {
    return new NotSentError('BAD_REQUEST', 'the path contains an invalid character')
  }
  for (let index = 1; index < headers.length; index += 2) {
    if (NOT_IN_HEADER.test(headers[index] ?? '')) {
      const name = headers[index - 1] ?? ''
      const message = `the header "${name}" contains an invalid character`
      return new NotSentError('BAD_REQUEST', message)
    }
  }
  return null
}

/**
 * Thrown to undici when it is about to send a cancelled request: undici drops the request and keeps the
 * connection.
 */
const CANCELLED = new Error('the request was cancelled before it was sent')

interface Queue {
  isWaiting(request: QueuedRequest): boolean
  /** Removes a request that was cancelled while it waited. */
  cancelWaiting(request: QueuedRequest): void
  /** Frees the slot of a request that has ended. */
  released(): void
  readonly refusals: Pick<Authorizer, 'mayRefuse'> | null
  /** The upstream refused the credential of the request. */
  refused(request: QueuedRequest, refusal: Refusal): Promise<void>
}

/** Bytes of a refusal that are read; the head is passed on in any case. */
const MAX_REFUSAL_BYTES = 64 * 1024

/** A refusal whose body is read. */
interface ReadRefusal {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly chunks: Buffer[]
  bytes: number
}

/** Receives undici's events for one request, and is the handle that the caller of the queue holds. */
class QueuedRequest implements UpstreamCall, Writing, Dispatcher.DispatchHandler {
  readonly request: UpstreamRequest
  connection: ConnectionUse | null = null
  private readonly queue: Queue
  /** Null once the caller has aborted the request. */
  private handler: ReplyHandler | null
  private controller: Dispatcher.DispatchController | null = null
  private isOver = false
  private isPaused = false
  /** The connection has ended while the reply was paused: what undici had of it arrives, and is held. */
  private isEnding = false
  private held: Buffer[] = []
  /** The held reply is complete. */
  private hasEnded = false
  /** Ends the watch over the connection of a paused reply; null if it is not watched. */
  private unwatch: (() => void) | null = null
  /** Unix time in ms; set if the queue authorizes its requests. */
  authorizedAtMs = 0
  private refusal: ReadRefusal | null = null
  private isRepeated = false

  constructor(request: UpstreamRequest, handler: ReplyHandler, queue: Queue) {
    this.request = request
    this.handler = handler
    this.queue = queue
  }

  get path(): string {
    return this.request.path
  }

  written(connection: ConnectionUse): void {
    this.connection = connection
  }

  /** The caller has aborted the request. */
  get isCancelled(): boolean {
    return this.handler === null
  }

  get isWaiting(): boolean {
    return this.queue.isWaiting(this)
  }

  pause(): void {
    this.isPaused = true
    if (this.isEnding) return
    this.unwatch ??= this.connection?.beforeEnd(() => this.takeRest()) ?? null
    this.controller?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.endWatch()
    if (this.isEnding) this.passHeld()
    else this.controller?.resume()
  }

  abort(): void {
    this.handler = null
    this.held = []
    if (this.controller === null) this.queue.cancelWaiting(this)
    else if (!this.isOver) this.controller.abort(CANCELLED)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.handler === null) throw CANCELLED
    this.controller = controller
    startsWriting(this)
    if (!this.isRepeated) this.handler.onRequestStart()
  }

  /** Prepares for being sent a second time. */
  again(): void {
    this.isRepeated = true
    this.isOver = false
    this.controller = null
    this.refusal = null
    this.isEnding = false
  }

  /** Passes a refusal that was read to the handler. */
  passRefusal(): void {
    const { refusal } = this
    if (refusal === null) return
    this.handler?.onResponseStart(refusal.status, refusal.headers)
    for (const chunk of refusal.chunks) this.handler?.onResponseData(chunk)
    this.handler?.onResponseEnd()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Informational replies (1xx) precede the final one.
    if (status < 200) return
    if (!this.isRepeated && this.queue.refusals?.mayRefuse(status) === true) {
      this.refusal = { status, headers, chunks: [], bytes: 0 }
    } else this.handler?.onResponseStart(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { refusal } = this
    // Undici has an empty one at the end of a connection.
    if (chunk.length === 0) return
    if (refusal === null) {
      if (this.isEnding && this.isPaused) this.held.push(chunk)
      else this.handler?.onResponseData(chunk)
      return
    }
    refusal.bytes += chunk.length
    if (refusal.bytes <= MAX_REFUSAL_BYTES) refusal.chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.release()
    const { refusal } = this
    if (refusal === null) {
      this.hasEnded = this.isPaused
      if (!this.hasEnded) this.handler?.onResponseEnd()
      return
    }
    const { status, headers, chunks } = refusal
    const body = Buffer.concat(chunks).toString('utf8')
    if (this.handler !== null) void this.queue.refused(this, { status, headers, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, cause: Error): void {
    this.release()
    this.held = []
    this.handler?.onResponseError(cause)
  }

  /**
   * Lets undici go on with a paused reply when its connection ends: it throws, where nothing can catch it, if
   * a reply that ends with the connection is paused. No more than one read of the socket arrives.
   */
  private takeRest(): void {
    this.isEnding = true
    this.controller?.resume()
  }

  /** Passes on what is held until the reply is paused again. */
  private passHeld(): void {
    while (!this.isPaused) {
      const chunk = this.held.shift()
      if (chunk === undefined) break
      this.handler?.onResponseData(chunk)
    }
    if (!this.hasEnded || this.isPaused) return
    this.hasEnded = false
    this.handler?.onResponseEnd()
  }

  private endWatch(): void {
    this.unwatch?.()
    this.unwatch = null
  }

  private release(): void {
    if (this.isOver) return
    this.isOver = true
    this.endWatch()
    this.queue.released()
  }
}
