/**
 * The requests of one upstream on undici's connections, in the order in which they came.
 *
 * undici cannot take back a request once it is queued: it keeps the body, and aborting the request when its turn
 * comes destroys the connection. Requests beyond `max_connections` therefore wait here, where a cancelled one is
 * removed at once.
 */
import type { Dispatcher } from 'undici'
import { PooledRequest } from './pooled-request.js'
import type { ReplyHandler, UpstreamCall, UpstreamRequest } from './upstream-call.js'

/** The origin of the requests, and their maximum number at the same time. */
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
  private ready: PooledRequest[] = []
  /** Those above `max_connections`, in the order in which they came; a set: a cancelled one leaves in constant time. */
  private readonly waiting = new Set<PooledRequest>()
  private running = 0
  private isDue = false
  private isDestroyed = false
  private onAllSent: (() => void) | null = null

  constructor(options: PoolOptions) {
    this.options = options
  }

  /** Sends the request as soon as fewer than `max_connections` are under way. The handler is called later. */
  send(request: UpstreamRequest, handler: ReplyHandler): UpstreamCall {
    const pooled = new PooledRequest(request, handler, this)
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
      const data = Buffer.from(chunk as Uint8Array)
      bytes += data.length
      if (bytes > maxBytes) throw new Error(`the reply is longer than ${maxBytes} bytes`)
      chunks.push(data)
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

  isWaiting(request: PooledRequest): boolean {
    return this.waiting.has(request)
  }

  /** A request was cancelled while it waited. */
  left(request: PooledRequest): void {
    if (this.waiting.delete(request) && this.waiting.size === 0 && this.ready.length === 0)
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

  private dispatch(request: PooledRequest): void {
    const { dispatcher, origin } = this.options
    const { path, headers, body, method = 'POST' } = request.request
    const problem = this.isDestroyed ? DESTROYED : problemOf(request.request)
    if (problem !== null) {
      request.onResponseError(null, problem)
      return
    }
    const isFresh = request.request.onFreshConnection === true
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
      request,
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
