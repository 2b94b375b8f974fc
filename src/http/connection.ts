/**
 * One client's connection: requests out of its bytes, one at a time, and their answers.
 * Knows how HTTP/1.1 begins and ends, not what a request may be or what is answered.
 */
import type { Socket } from 'node:net'
import { BodyReader, headEnd, type Framing } from '../wire/http-message.js'
import type { Accepted, Breach, Door } from './door.js'
import { copied, lendReads } from './lent-reads.js'
import { Outbox, type OutboxOwner } from './outbox.js'
import { Request, type Intake } from './request.js'
import { firstOf, mayBeRequest, parseHead } from './request-head.js'
import { Response, type Outlet } from './response.js'

const MAX_HEAD_BYTES = 16 * 1024
const MAX_REQUESTS = 1000
/** As much is held of a body that nobody takes yet, or of requests that wait for their turn. */
const HELD_BYTES = 64 * 1024
/** How long the rest of a body is read and thrown away once its answer has been written. */
const DROP_MS = 250
/** The same where the client has been told that the connection ends; nginx has 5 s. */
const LINGER_MS = 1000

/** What is awaited: a head, a body, the end of an answer; or nothing any more. */
type Phase = 'head' | 'body' | 'answer' | 'over'

/** A connection that has been accepted. */
export class Connection implements Accepted, Intake, Outlet, OutboxOwner {
  private readonly socket: Socket
  private readonly door: Door
  private readonly outbox: Outbox
  private phase: Phase = 'head'
  private request: Request | null = null
  private response: Response | null = null
  private reader: BodyReader | null = null
  /** Bytes of a head that is not whole, or of requests behind the one that is answered. */
  private pending: Buffer | null = null
  private heldBytes = 0
  private requests = 0
  /** When the head began, or the wait for one. */
  private sinceTick: number
  private hasEnded = false
  private isSpoilt = false
  private isPaused = false
  private timer: NodeJS.Timeout | null = null
  private readonly onContent = (piece: Buffer): void => this.content(piece)

  constructor(accepted: Socket, door: Door) {
    const socket = lendReads(accepted, (bytes) => this.take(bytes))
    this.socket = socket
    this.door = door
    this.outbox = new Outbox(socket, this)
    this.sinceTick = door.ticks
    socket
      .on('end', () => this.ended())
      .on('drain', () => this.outbox.caughtUp())
      // `close` follows, and says all there is to know.
      .on('error', () => undefined)
      .on('close', () => this.closed())
  }

  get isIdle(): boolean {
    return this.phase === 'head' && this.pending === null
  }

  get keepsAlive(): boolean {
    const { request } = this
    if (request === null || !request.keepAlive || request.awaitsContinue) return false
    return this.requests < MAX_REQUESTS && !this.door.draining && !this.isSpoilt
  }

  get keepAliveLines(): string {
    return this.door.keepAliveLines
  }

  get writableLength(): number {
    return this.outbox.length
  }

  get address(): string {
    return this.socket.remoteAddress ?? ''
  }

  write(data: string | Buffer, encoding: 'latin1' | 'utf8'): boolean {
    return this.outbox.write(data, encoding)
  }

  answered(): void {
    this.outbox.finish()
  }

  drained(): void {
    this.response?.watcher?.drained()
  }

  /** The answer has left whole. */
  left(): void {
    const { response, request } = this
    if (response === null) return
    if (this.phase !== 'over') {
      if (this.hasEnded) this.cut(true)
      else if (request?.complete !== false) this.next(response)
      else this.drop(request, response)
    }
    response.finished()
  }

  cut(isSoon: boolean): void {
    this.phase = 'over'
    this.outbox.push()
    if (isSoon) this.socket.destroySoon()
    else this.socket.destroy()
  }

  wanted(): void {
    const { request, response } = this
    this.heldBytes = 0
    this.resume()
    if (request?.awaitsContinue !== true || response?.headersSent !== false) return
    request.awaitsContinue = false
    this.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  sweep(): void {
    const passed = this.door.ticks - this.sinceTick
    if (this.phase === 'head') {
      if (this.requests > 0 && this.pending === null) {
        if (passed > this.door.idleTicks) this.cut(false)
      } else if (passed > this.door.headTicks) {
        this.fail('timeout')
      }
    } else if (this.phase === 'body' && passed > this.door.requestTicks && this.timer === null) {
      this.fail('timeout')
    }
  }

  /** What comes of a client is only lent: what is kept of it is copied. */
  private take(chunk: Buffer): void {
    // An answer that only waits for the turn to end is no answer on its way.
    if (this.outbox.isFinished) this.outbox.flush()
    switch (this.phase) {
      case 'head': {
        const { pending } = this
        this.pending = null
        this.requestsOf(
          pending === null ? chunk : Buffer.concat([pending, chunk]),
          pending === null,
        )
        return
      }
      case 'body':
        this.body(chunk)
        return
      case 'answer':
        this.hold(chunk)
        return
      default:
    }
  }

  /** Requests out of `bytes`, until one has to be waited for. */
  private requestsOf(bytes: Buffer, isFresh: boolean): void {
    let at = 0
    let isNew = isFresh
    while (this.phase === 'head') {
      // Some clients put an empty line behind a body.
      at = firstOf(bytes, at)
      if (at === bytes.length) return
      if (isNew && this.requests > 0) this.sinceTick = this.door.ticks
      isNew = true
      const end = headEnd(bytes, at)
      if (end === -1) {
        this.beginning(at === 0 ? bytes : bytes.subarray(at))
        return
      }
      if (end - at > MAX_HEAD_BYTES) {
        this.fail('head_too_large')
        return
      }
      at = this.begin(bytes, at, end)
      if (this.outbox.isFinished && at < bytes.length) this.outbox.flush()
    }
    if (this.phase === 'answer' && at < bytes.length) this.hold(bytes.subarray(at))
  }

  /** A head that is not whole: refused as soon as it can become none. */
  private beginning(bytes: Buffer): void {
    if (bytes.length > MAX_HEAD_BYTES) this.fail('head_too_large')
    else if (!mayBeRequest(bytes)) this.fail('malformed')
    else this.pending = Buffer.from(bytes)
  }

  /** One request, with as much of its body as is here; answers where what is behind it begins. */
  private begin(bytes: Buffer, from: number, to: number): number {
    const head = parseHead(bytes.toString('latin1', from, to))
    if (head === null) {
      this.fail('malformed')
      return bytes.length
    }
    if (head.method === 'CONNECT') {
      this.cut(false)
      return bytes.length
    }
    this.requests += 1
    const request = new Request(head)
    const response = new Response(this, request.httpVersion, request.method)
    this.request = request
    this.response = response
    const end = this.beginBody(request, head.framing, bytes, to)
    this.door.requested(request, response)
    this.checkBody()
    return end
  }

  /** Takes what is here of the body; answers where what is behind it begins. */
  private beginBody(
    request: Request,
    framing: Framing | null,
    bytes: Buffer,
    from: number,
  ): number {
    if (framing === null) {
      this.phase = 'answer'
      request.finish()
      return from
    }
    if (framing.kind === 'length' && bytes.length - from >= framing.bytes) {
      const end = from + framing.bytes
      this.phase = 'answer'
      request.push(copied(bytes, from, end))
      request.finish()
      return end
    }
    const reader = new BodyReader(framing)
    this.reader = reader
    this.phase = 'body'
    request.awaitFor(this)
    const end = reader.read(bytes, from, this.onContent)
    if (reader.done) this.bodyEnded(request, reader)
    return end
  }

  private body(chunk: Buffer): void {
    const { reader, request } = this
    if (reader === null || request === null || reader.fault !== null) return
    const end = reader.read(chunk, 0, this.onContent)
    this.checkBody()
    if (!reader.done) return
    this.bodyEnded(request, reader)
    if (end < chunk.length) this.take(chunk.subarray(end))
  }

  private checkBody(): void {
    const { reader } = this
    // Once it is answered, a body is only thrown away.
    if (reader === null || reader.fault === null || this.timer !== null) return
    this.fail(reader.fault)
  }

  private content(piece: Buffer): void {
    if (this.request?.push(Buffer.from(piece)) !== false) return
    this.heldBytes += piece.length
    if (this.heldBytes > HELD_BYTES) this.pause()
  }

  private bodyEnded(request: Request, reader: BodyReader): void {
    this.phase = 'answer'
    this.reader = null
    this.heldBytes = 0
    request.finish(reader.trailers)
    // Its answer came first, and waited for nothing but this.
    if (this.response?.writableFinished === true) this.next(this.response)
  }

  /** What comes while an answer is on its way: no use where it is no request, and no other will be. */
  private hold(bytes: Buffer): void {
    if (this.request?.keepAlive !== true || this.isSpoilt) return
    const { pending } = this
    const held = pending === null ? Buffer.from(bytes) : Buffer.concat([pending, bytes])
    const start = firstOf(held, 0)
    if (start < held.length && !mayBeRequest(start === 0 ? held : held.subarray(start))) {
      // An error now would be taken for the answer that is on its way.
      this.isSpoilt = true
      return
    }
    this.pending = held
    if (held.length > HELD_BYTES) this.pause()
  }

  /**
   * The rest of a body whose answer did not wait for it. Closing on unread bytes resets the connection,
   * and with it an answer that the client has not read yet.
   */
  private drop(request: Request, { closes }: Response): void {
    request.discard()
    this.resume()
    // Where its end cannot be told, the client has to be the one that stops.
    if (this.reader === null || !this.reader.endIsTold) this.socket.end()
    this.timer = setTimeout(() => this.cut(closes), closes ? LINGER_MS : DROP_MS)
  }

  /** Both the request and its answer are over. */
  private next(response: Response): void {
    this.stopTimer()
    if (response.closes || this.isSpoilt) {
      this.pending = null
      this.cut(true)
      return
    }
    this.request = null
    this.response = null
    this.phase = 'head'
    this.sinceTick = this.door.ticks
    if (this.pending !== null) process.nextTick(() => this.goOn())
    this.resume()
  }

  private goOn(): void {
    const { pending } = this
    if (pending === null || this.phase !== 'head') return
    this.pending = null
    this.requestsOf(pending, true)
  }

  /** What comes from here on is no request: says so where that can be told from another answer. */
  private fail(breach: Breach): void {
    const { request, response } = this
    if (response !== null && (request?.complete !== false || response.headersSent)) {
      this.cut(false)
      return
    }
    if (response === null) {
      this.phase = 'over'
      this.pending = null
      const goodbye = new Response(this, '1.1', '')
      this.response = goodbye
      this.timer = setTimeout(() => this.cut(false), DROP_MS)
      this.door.breached(breach, null, goodbye)
      this.outbox.flush()
      this.socket.end()
      return
    }
    this.door.breached(breach, request, response)
  }

  /** The client sends no more. It may still read an error, but for an answer it is taken to have left. */
  private ended(): void {
    this.hasEnded = true
    this.outbox.flush()
    switch (this.phase) {
      case 'head':
        if (this.pending === null) this.cut(true)
        else this.fail('malformed')
        return
      case 'body':
        if (this.response?.writableFinished === true) this.cut(true)
        else this.fail('malformed')
        return
      case 'answer':
        this.response?.lost(false)
        this.cut(true)
        return
      default:
        this.cut(true)
    }
  }

  private closed(): void {
    this.phase = 'over'
    this.stopTimer()
    this.pending = null
    this.response?.lost(true)
    this.door.closed(this)
  }

  private pause(): void {
    if (this.isPaused) return
    this.isPaused = true
    this.socket.pause()
  }

  private resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.socket.resume()
  }

  private stopTimer(): void {
    if (this.timer === null) return
    clearTimeout(this.timer)
    this.timer = null
  }
}
