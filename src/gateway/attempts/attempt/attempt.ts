/**
 * One request to one upstream, to the end of its reply. Handles undici's events directly: a Readable would
 * cost 60 µs more per request. `try-candidates.ts` decides what follows a failure or a pause.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { gatewayError, type GatewayError, type WireError } from '../../../errors.js'
import type { ReplyHandler } from '../../../upstreams/pool/upstream-call.js'
import type { Target } from '../../generation/generation.js'
import type { Timed } from '../../in-flight/timeout-timer.js'
import { NOT_LISTED } from '../../in-flight/in-flight-list.js'
import type { ReplyTransform } from '../../streams/reply-transform.js'
import {
  CLIENT_LEFT,
  CLIENT_STALLED,
  NO_FREE_CONNECTION,
  REPLY_TOO_LARGE,
  TIMEOUT_TEXTS,
  timeoutError,
  transportError,
  UNEXPECTED_FAILURE,
  wireErrorOf,
  withUpstream,
} from '../../transport-errors.js'
import type { AttemptResult } from '../attempt-result.js'
import { isEventStream, OTHER_TYPE, requestIdIn, unreadable } from '../reply/read-head.js'
import { openReplyStream, streamsOn, type ReadReply } from '../reply/read-reply.js'
import type { EarlierParts } from '../reply/started-reply.js'
import {
  replyOwnerOf,
  type AttemptOwner,
  type PreparedRequest,
  type StartedAttempt,
} from './attempt-owner.js'
import { ChunkFeed } from './backpressure.js'
import { CollectedReply } from './collected-reply.js'
import { DrainedReply, isDrainable } from './drained-reply.js'
import { UpstreamExchange } from './upstream-exchange.js'

const PROGRESS = { connecting: 'connecting', waiting: 'sent', whole: 'in reply' } as const

/** Reports exactly one end to its owner: `begun`, `failed` or `paused`. */
export class Attempt implements ReplyHandler, Timed {
  listIndex = NOT_LISTED
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
  private readonly owner: AttemptOwner
  private readonly target: Target
  private readonly earlier: EarlierParts
  private readonly exchange: UpstreamExchange
  /** The client has the beginning of the reply. */
  private isCommitted: boolean
  private stream: ReplyTransform | null
  private feed: ChunkFeed | null = null
  private readonly collected: CollectedReply
  /** Set if the client has left and the rest of the reply is read for its usage. */
  private drainedReply: DrainedReply | null = null

  constructor(owner: AttemptOwner, { result, prepared }: StartedAttempt, earlier: EarlierParts) {
    this.owner = owner
    this.result = result
    this.prepared = prepared
    this.target = result.candidate.target
    this.earlier = earlier
    this.stream = earlier.stream
    this.isCommitted = earlier.committed
    const countsWait = !earlier.committed && result.occasion !== 'hedge'
    this.exchange = new UpstreamExchange({ owner, result, prepared, countsWait })
    this.collected = new CollectedReply(owner, this.target)
    this.exchange.onFinish = () => {
      this.collected.drop()
      this.drainedReply?.end()
    }
  }

  /** Sends the request. */
  send(): void {
    this.exchange.start(this)
    const { reason } = this.owner.exchange.cancellation
    if (reason === null) this.exchange.send(this)
    else this.cancel(reason)
  }

  onRequestStart(): void {
    this.exchange.connected()
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    const { result, exchange } = this
    exchange.headArrived()
    this.collected.headers = headers
    result.status = status
    result.requestId = requestIdIn(headers)
    if (status !== 200) {
      exchange.phase = 'error'
      return
    }
    // A continued reply keeps its form: whole, or a stream.
    const { call } = this.prepared
    const isStream =
      this.earlier.whole === null && streamsOn(call, this.target, isEventStream(headers))
    const wrong = unreadable(headers)
    if (wrong !== null) this.fail(wrong)
    else if (isStream) this.guard(() => this.openStream())
    else if (this.stream !== null) this.fail(OTHER_TYPE)
    else exchange.phase = 'whole'
  }

  onResponseData(chunk: Buffer): void {
    this.result.captured?.take(chunk)
    this.prepared.call.replyReader?.read(chunk, this.target)
    const { exchange } = this
    const { phase } = exchange
    if (phase === 'stream') {
      const gapMs = exchange.clock.received(performance.now())
      if (this.isCommitted) this.target.series.chunkGap(gapMs / 1000)
      this.feed?.add(chunk)
    } else if (phase === 'whole' || phase === 'error') {
      exchange.clock.received(performance.now())
      this.guard(() => this.collect(chunk, phase === 'whole'))
    }
  }

  private collect(chunk: Buffer, isReply: boolean): void {
    if (this.collected.keep(chunk, isReply)) return
    if (isReply) this.fail(REPLY_TOO_LARGE)
    else this.failWithRefusal()
  }

  onResponseEnd(): void {
    this.feed?.flush()
    if (this.exchange.phase === 'whole') this.guard(() => this.finishWhole())
    else this.bodyEnded()
  }

  onResponseError(cause: Error): void {
    this.feed?.flush()
    const { phase } = this.exchange
    if (phase === 'connecting' || phase === 'waiting' || phase === 'whole') {
      this.fail(transportError(cause, PROGRESS[phase]), cause)
    } else this.bodyEnded()
  }

  /** The upstream's body ended or was truncated: the bytes received so far decide which. */
  private bodyEnded(): void {
    const { exchange } = this
    if (exchange.phase === 'stream') {
      // The end is an input of the translation, which reports what is missing.
      exchange.clock.ended()
      if (this.prepared.outgoing.next === null) this.stream?.end()
      else this.stream?.endPart()
    } else if (exchange.phase === 'error') this.guard(() => this.failWithRefusal())
    else if (exchange.phase === 'lingering') exchange.finish()
  }

  tick(nowMs: number): void {
    const { exchange } = this
    if (this.drainedReply?.isLate(nowMs) === true) return this.fail(CLIENT_LEFT)
    const passed = exchange.passedTimeout(nowMs, this.isCommitted)
    if (passed === 'linger') return exchange.abandon()
    if (passed === 'stalled') return this.fail(CLIENT_STALLED)
    if (passed === 'connect' && exchange.isQueued) return this.fail(NO_FREE_CONNECTION)
    if (passed !== null) {
      // The status of an error is more useful than the timeout of its body.
      if (exchange.phase === 'error') return this.failWithRefusal()
      return this.fail(timeoutError(TIMEOUT_TEXTS[passed]))
    }
    const heldMs = nowMs - exchange.clock.headMs
    if (exchange.isStreaming() && heldMs > this.owner.headHoldMs) this.commit()
  }

  /** Ends the attempt if a codec throws. */
  private guard(step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.fail(wireErrorOf(cause), cause)
    }
  }

  private openStream(): void {
    const { prepared, target, exchange } = this
    const open = { exchange: this.owner.exchange, owner: replyOwnerOf(this.owner, this) }
    const stream = this.stream ?? openReplyStream(prepared, target, open)
    this.stream = stream
    this.result.isStreamed = true
    this.result.replyResult = stream.translation
    stream.onStep = () => this.step(stream)
    this.feed = new ChunkFeed(stream, exchange)
    if (this.drainedReply !== null) stream.drain()
    exchange.phase = 'stream'
  }

  /** After each step of the translation: commits, fails, finishes or pauses. */
  private step(stream: ReplyTransform): void {
    const { result, exchange } = this
    const { translation } = stream
    if (!exchange.isStreaming()) return
    // Content commits also if a failure arrived in the same chunk: the result must not depend on chunk
    // boundaries.
    if (translation.content) {
      result.contentAtMs ??= performance.now()
      this.commit()
    }
    if (translation.outcome === 'failed') return this.fail(translation.error ?? UNEXPECTED_FAILURE)
    if (translation.outcome === 'complete') {
      exchange.linger('ok')
      stream.end()
    } else if (translation.resume !== null) {
      const { resume, repeatCause } = translation
      exchange.linger(repeatCause ?? 'ok')
      result.isPaused = true
      if (this.drainedReply !== null) return
      translation.proceed()
      // The result of the next attempt includes the usage of all parts.
      result.replyResult = null
      this.owner.paused(this, { stream, whole: null, committed: this.isCommitted }, resume)
    } else if (this.drainedReply?.isCounted() === true) {
      exchange.abandon()
    }
  }

  /** The exchange was cancelled. If the client left, the rest of the reply may be read for its usage. */
  cancel(reason: GatewayError): void {
    if (reason.kind === 'client_gone' && isDrainable(this.exchange.phase)) {
      this.drainedReply = DrainedReply.of(this.result, this.owner)
    }
    const { drainedReply } = this
    if (drainedReply === null) return this.fail(reason.wire)
    this.owner.draining(drainedReply.ended)
    this.stream?.drain()
    this.feed?.resume()
    this.owner.failed(this, reason)
  }

  private commit(): void {
    if (this.isCommitted || this.stream === null) return
    this.isCommitted = true
    this.exchange.endWait()
    this.owner.begun(this, { kind: 'stream', stream: this.stream })
  }

  private finishWhole(): void {
    this.exchange.endWait()
    const read = this.collected.read(this.prepared, this.earlier.whole)
    if (!(read instanceof Promise)) return this.finishRead(read)
    const finish = (later: ReadReply): void => this.guard(() => this.finishRead(later))
    read.then(finish, (cause: unknown) => this.fail(wireErrorOf(cause), cause))
  }

  private finishRead(read: ReadReply): void {
    // The client may have left while the reply was read.
    if (this.exchange.isOver) return
    const { owner, result } = this
    this.exchange.finish()
    if (read.kind === 'paused') {
      result.outcome = read.reply.repeatCause ?? 'ok'
      owner.paused(this, { stream: null, whole: read.reply, committed: false }, read.resume)
      return
    }
    const { error } = read.replyResult
    result.replyResult = read.replyResult
    result.outcome = error?.kind ?? 'ok'
    if (error !== null) return owner.failed(this, gatewayError(this.named(error)))
    const { request, endpoint } = this.prepared.call
    const stream = request.stream && endpoint.array !== true
    owner.begun(this, { kind: 'whole', body: read.body, bytes: read.bytes, stream })
  }

  private failWithRefusal(): void {
    this.fail(this.collected.refusal(this.result.status ?? 0))
  }

  /** Another attempt was faster: cancels this one and drops its reply. */
  supersede(): void {
    if (this.exchange.isOver) return
    this.exchange.noteConnection()
    this.result.outcome = 'cancelled'
    this.exchange.abandon()
    this.stream?.destroy()
  }

  /** The attempt that this one hedges has ended: from now on the request waits for this one. */
  countWait(): void {
    this.exchange.countWait()
  }

  /** The error with the name of the upstream. */
  private named(error: WireError): WireError {
    const { status, candidate } = this.result
    return withUpstream(error, candidate.target.upstream.config.name, status)
  }

  private fail(failure: WireError, cause?: unknown): void {
    const { exchange, result, stream } = this
    const error = this.named(failure)
    if (exchange.isOver) return
    if (exchange.phase === 'lingering') return exchange.abandon()
    exchange.noteConnection()
    result.outcome = error.kind
    exchange.abandon()
    if (this.isCommitted && error.kind !== 'client_gone') {
      // The client has the beginning of the reply; the relay sends it the error.
      stream?.fail(error)
      return
    }
    stream?.destroy()
    if (!this.isCommitted) this.owner.failed(this, gatewayError(error, cause))
  }
}
