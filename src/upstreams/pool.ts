/**
 * The connections of one upstream: reused, bounded, and closed before the upstream loses patience.
 * Knows no request's meaning.
 */
import {
  Connection,
  ConnectionError,
  type ConnectionOwner,
  type Destination,
  type ReplyController,
  type ReplyHandler,
} from './connection.js'
import { KnownReplies } from './known-replies.js'
import { RequestLines, type UpstreamRequest } from './request-lines.js'

/** Where to, how many connections, and how long one may be idle. */
export interface PoolOptions {
  readonly destination: Destination
  readonly connections: number
  readonly keepAliveMs: number
}

interface Waiting {
  readonly request: UpstreamRequest
  readonly handler: ReplyHandler
}

/** How often idle connections are looked at. */
const SWEEP_MS = 500

/** For a handler that never got a connection. */
const NO_CONNECTION: ReplyController = {
  pause: () => undefined,
  resume: () => undefined,
  abort: () => undefined,
}

/** Requests wait, in order, where all connections are in use. */
export class Pool implements ConnectionOwner {
  session: Buffer | undefined = undefined
  readonly lines: RequestLines
  readonly replies = new KnownReplies()
  sweptMs = 0
  private readonly options: PoolOptions
  private readonly all = new Set<Connection>()
  /** The one used last is at the end, and is used first: it is the least likely to be closed. */
  private readonly idle: Connection[] = []
  private readonly waiting: Waiting[] = []
  /** Connections that are being made: each will serve one that waits. */
  private connecting = 0
  private isDue = false
  private sweeper: NodeJS.Timeout | null = null
  private isClosed = false
  private onEmpty: (() => void) | null = null
  private readonly send = (): void => {
    this.isDue = false
    this.sendWaiting()
  }

  constructor(options: PoolOptions) {
    this.options = options
    this.lines = new RequestLines(options.destination.authority)
  }

  /** Sends the request as soon as there is a connection; the handler hears how it goes. */
  dispatch(request: UpstreamRequest, handler: ReplyHandler): void {
    this.waiting.push({ request, handler })
    this.schedule()
  }

  /** Lets what runs and what waits finish, and resolves when no connection is left. */
  close(): Promise<void> {
    this.isClosed = true
    for (const connection of this.idle.splice(0)) connection.destroy()
    return new Promise((resolve) => {
      this.onEmpty = resolve
      this.settle()
    })
  }

  /** Ends everything at once. */
  destroy(): Promise<void> {
    this.isClosed = true
    const cause = new ConnectionError('CLOSED', 'the connections were closed')
    for (const { handler } of this.waiting.splice(0)) handler.onResponseError(NO_CONNECTION, cause)
    for (const connection of [...this.all]) connection.destroy()
    return this.close()
  }

  freed(connection: Connection): void {
    if (connection.isNew) this.connecting -= 1
    if (this.waiting.length > 0) {
      this.idle.push(connection)
      this.schedule()
    } else if (this.isClosed) connection.destroy()
    else this.idle.push(connection)
  }

  lost(connection: Connection, cause: Error): void {
    this.all.delete(connection)
    if (connection.isNew) {
      this.connecting -= 1
      // It was made for one that waits, who must hear that there is no way.
      this.waiting.shift()?.handler.onResponseError(NO_CONNECTION, cause)
    } else {
      const at = this.idle.lastIndexOf(connection)
      if (at !== -1) this.idle.splice(at, 1)
    }
    if (this.waiting.length > 0) this.schedule()
    this.settle()
  }

  /**
   * All requests of a turn go out at its end, when whatever has arrived on idle connections has been
   * read: an end, or bytes that nobody asked for, are then seen before a request goes into them.
   */
  private schedule(): void {
    if (this.isDue) return
    this.isDue = true
    setImmediate(this.send)
  }

  private sendWaiting(): void {
    const { waiting, idle } = this
    while (waiting.length > 0) {
      const connection = idle.pop()
      if (connection === undefined) break
      if (!connection.isUsable) continue
      const next = waiting.shift()
      if (next !== undefined) connection.send(next.request, next.handler)
    }
    const { refusal } = this.options.destination
    if (refusal !== undefined) {
      for (const { handler } of waiting.splice(0)) handler.onResponseError(NO_CONNECTION, refusal)
    }
    while (waiting.length > this.connecting && this.all.size < this.options.connections) {
      this.connecting += 1
      this.sweeper ??= this.newSweeper()
      this.all.add(new Connection(this.options.destination, this))
    }
  }

  private newSweeper(): NodeJS.Timeout {
    this.sweptMs = performance.now()
    return setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  private sweep(): void {
    const nowMs = performance.now()
    this.sweptMs = nowMs
    for (const connection of [...this.idle]) {
      const patienceMs = Math.min(this.options.keepAliveMs, connection.keepAliveMs)
      if (nowMs - connection.idleSinceMs > patienceMs) connection.destroy()
    }
    this.settle()
  }

  private settle(): void {
    if (this.all.size > 0 || this.waiting.length > 0) return
    if (this.sweeper !== null) clearInterval(this.sweeper)
    this.sweeper = null
    this.onEmpty?.()
  }
}
