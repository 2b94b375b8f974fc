/**
 * Queues the requests of one upstream and sends them on undici's connections in order of arrival.
 *
 * undici cannot remove a queued request: it keeps the body, and aborting the request when it is sent destroys
 * the connection. Requests beyond `max_connections` therefore wait here, and a cancelled one is removed at
 * once.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import {
  startsWriting,
  type ReplyHandler,
  type UpstreamCall,
  type UpstreamRequest,
  type ConnectionUse,
  type Writing,
} from './upstream-call.js'

/** The origin of the requests, and their maximum number at the same time. */
export interface QueueOptions {
  readonly origin: string
  readonly dispatcher: Dispatcher
  readonly maxConnections: number
  /** Opens a dispatcher that has no connection yet, for one request. */
  readonly openFresh: () => Dispatcher
}

/** Options of a request of the gateway itself. */
export interface GetOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** Characters that are not allowed in paths and header values; undici refuses the same ones. */
const NOT_IN_PATH = /[^\x21-\xff]/
const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

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
    const { dispatcher, origin } = this.options
    const signal = AbortSignal.timeout(timeoutMs)
    const reply = await dispatcher.request({ origin, path, method: 'GET', headers, signal })
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
    if (this.waiting.delete(request) && this.waiting.size === 0 && this.ready.length === 0)
      this.allSent()
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
      else this.dispatch(request)
    }
    for (const request of this.waiting) {
      if (this.running >= this.options.maxConnections && !this.isDestroyed) return
      this.waiting.delete(request)
      this.running += 1
      this.dispatch(request)
    }
    this.allSent()
  }

  private dispatch(request: QueuedRequest): void {
    const { dispatcher, origin } = this.options
    const { path, headers, body, method = 'POST' } = request.request
    const problem = this.isDestroyed ? DESTROYED : problemOf(request.request)
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
        body,
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
function problemOf({ path, headers }: UpstreamRequest): NotSentError | null {
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

/** The queue that the request is in. */
interface Queue {
  isWaiting(request: QueuedRequest): boolean
  /** Removes a request that was cancelled while it waited. */
  cancelWaiting(request: QueuedRequest): void
  /** Frees the slot of a request that has ended. */
  released(): void
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
    this.controller?.pause()
  }

  resume(): void {
    this.controller?.resume()
  }

  abort(): void {
    this.handler = null
    if (this.controller === null) this.queue.cancelWaiting(this)
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
    // Informational replies (1xx) precede the final one.
    if (status >= 200) this.handler?.onResponseStart(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler?.onResponseData(chunk)
  }

  onResponseEnd(): void {
    this.release()
    this.handler?.onResponseEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, cause: Error): void {
    this.release()
    this.handler?.onResponseError(cause)
  }

  private release(): void {
    if (this.isOver) return
    this.isOver = true
    this.queue.released()
  }
}
