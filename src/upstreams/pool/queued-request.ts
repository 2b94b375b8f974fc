/** One request of the queue: passes undici's events to the caller's handler until the caller aborts it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { startsWriting, type ConnectionUse, type Writing } from './connection-use.js'
import type { ReplyHandler, UpstreamCall, UpstreamRequest } from './upstream-call.js'

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
export class QueuedRequest implements UpstreamCall, Writing, Dispatcher.DispatchHandler {
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
