/**
 * One request to one upstream, to the end of its reply. Handles undici's events directly: a Readable would
 * cost 60 µs more per request. `try-candidates.ts` decides what follows a failure or a pause.
 */
import { isAscii } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { gatewayError, type GatewayError, type WireError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import { ReplyScan } from '../../formats/wire/json/reply-scan.js'
import type { Steps } from '../../base/steps.js'
import type { Outcome } from '../../observe/metrics/closed-labels.js'
import { AttemptClock, type Timeouts, type Timed } from '../timeouts.js'
import { DrainedReply, type DrainedRequest } from '../drained-replies.js'
import type { Target } from '../generation.js'
import { NOT_LISTED } from '../in-flight-list.js'
import { ChunkFeed, type StreamSource } from '../streams/chunk-feed.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { joinChunks, LARGE_BYTES } from '../streams/join-chunks.js'
import type { ReplyOwner, ReplyTransform } from '../streams/reply-transform.js'
import {
  CLIENT_LEFT,
  NO_FREE_CONNECTION,
  REPLY_TOO_LARGE,
  timeoutErrorOf,
  transportError,
  UNEXPECTED_FAILURE,
  wireErrorOf,
  withUpstream,
} from '../transport-errors.js'
import type { ReplyHandler, UpstreamCall } from '../upstreams/upstream-call.js'
import type { AttemptResult, ReplyListener, SendResult } from './attempt-result.js'
import { ATTEMPT_STATES, stateAfter, type AttemptState } from './attempt-states.js'
import type { PreparedRequest } from './prepare-candidate.js'
import {
  bodyForm,
  isEventStream,
  isStray,
  isSniffed,
  isSound,
  withoutBom,
  OTHER_TYPE,
  strayBody,
  requestIdIn,
  unreadable,
  openReplyStream,
  streamsOn,
  readReply,
  roomFor,
  type EarlierReply,
  type ReadReply,
} from './read-reply.js'
import type { CandidateTurn } from './retry-or-fallback.js'

/** The request that an attempt is made for, and the services that the attempt uses. */
export interface AttemptRequest extends DrainedRequest {
  readonly timeouts: Timeouts
  /** The client's deadline for the whole reply, in ms from its request; infinite if it sent none. */
  readonly timeoutMs: number
  readonly sent: SendResult
}

/** The candidate loop, which starts attempts and gets their ends. */
export interface AttemptLoop {
  /** How long the head of a stream may wait for its first content, in ms. */
  readonly headWaitMs: number
  /** The reply to the client can begin. Called at most once, and `failed` never after it. */
  begun(attempt: Attempt, reply: StartedReply): void
  /** The attempt ended before the reply to the client could begin. Calls after the first have no effect. */
  failed(attempt: Attempt, error: GatewayError): void
  /** The upstream paused, or its reply was empty: another attempt requests the rest with `resume`. */
  paused(attempt: Attempt, parts: EarlierParts, resume: JsonObject): void
  /** As `ReplyOwner`, for the stream of the attempt. */
  ending(attempt: Attempt): Promise<void> | null
}

/** A reply that has begun: a whole body, or a stream with its first content. */
export type StartedReply =
  | {
      readonly kind: 'whole'
      readonly body: string | Buffer
      /** Size of the body, in UTF-8 if it is text. */
      readonly bytes: number
      /** It is all of a stream. */
      readonly stream: boolean
      /** The content type of a body that is neither JSON nor events. */
      readonly type?: string
    }
  | { readonly kind: 'stream'; readonly stream: ReplyTransform }

/** The earlier parts of a reply that the upstream paused; the next attempt continues it. */
export interface EarlierParts {
  readonly stream: ReplyTransform | null
  readonly whole: EarlierReply | null
  /** The client has the beginning of it. */
  readonly committed: boolean
}

/** An attempt that continues nothing. */
export const NO_PARTS: EarlierParts = { stream: null, whole: null, committed: false }

interface AttemptParts {
  readonly turn: CandidateTurn
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
  /** The parts of the reply that earlier attempts read. */
  readonly earlier: EarlierParts
}

/**
 * The events that an attempt waits for: a connection; the head; the first content, or the end of a whole
 * body.
 */
type Awaited = 'connectMs' | 'firstByteMs' | 'replyMs'

/** Reports exactly one end to its loop: `begun`, `failed` or `paused`. */
export class Attempt implements ReplyHandler, ReplyOwner, StreamSource, Timed {
  listIndex = NOT_LISTED
  readonly turn: CandidateTurn
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
  /** The stream of the reply; null before it, and for a whole reply. */
  stream: ReplyTransform | null
  private readonly request: AttemptRequest
  private readonly loop: AttemptLoop
  private readonly target: Target
  private readonly listeners: readonly ReplyListener[]
  private readonly earlier: EarlierParts
  private readonly clock: AttemptClock
  private state: AttemptState = 'connecting'
  private upstream: UpstreamCall | null = null
  /** The client has the beginning of the reply. */
  private isCommitted: boolean
  private feed: ChunkFeed | null = null
  /** The first bytes of a reply whose form is not known yet; null once it is. */
  private firstBytes: Buffer | null = null
  private readonly collected: CollectedReply
  /** Set if the client has left and the rest of the reply is read for its usage. */
  private drainedReply: DrainedReply | null = null
  /** Resolves when a whole reply that takes several turns has been read and judged; null before that. */
  private reading: Promise<void> | null = null
  private awaited: Awaited | null = null
  private awaitedSinceMs = 0
  /** Whether the waits count: those after a beginning are relaying, those of a hedge the other attempt's. */
  private countsWaits: boolean

  constructor(request: AttemptRequest, loop: AttemptLoop, { turn, result, prepared, earlier }: AttemptParts) {
    this.request = request
    this.loop = loop
    this.turn = turn
    this.result = result
    this.prepared = prepared
    this.target = result.candidate.target
    this.listeners = request.sent.listeners
    this.earlier = earlier
    this.stream = earlier.stream
    this.isCommitted = earlier.committed
    this.countsWaits = !earlier.committed && result.occasion !== 'hedge'
    this.collected = new CollectedReply(request, this.target)
    const { connectMs, idleMs, totalMs } = this.target.upstream.config.timeouts
    const { firstByteMs } = prepared.outgoing
    const { startedMs } = request.x
    const maxMs = Math.min(totalMs, request.timeoutMs)
    this.clock = new AttemptClock({ connectMs, firstByteMs, idleMs, totalMs: maxMs, startedMs })
  }

  /** Sends the request. */
  send(): void {
    const { result, prepared, target } = this
    const { x, timeouts } = this.request
    const nowMs = performance.now()
    result.beganAtMs = nowMs
    this.clock.begin(nowMs)
    this.awaitNext('connectMs', nowMs)
    target.series.inflight(1)
    timeouts.add(this)
    const { reason } = x.cancellation
    if (reason !== null) return this.cancel(reason)
    const { onFreshConnection = false, outgoing } = prepared
    const { path, body } = outgoing
    const traced = x.trace?.headers(result)
    const headers = traced === undefined ? outgoing.headers : [...outgoing.headers, ...traced]
    for (const listener of this.listeners) listener.sent?.(result, { path, headers, body })
    const stream = outgoing.streamed?.open()
    const sent = { path, headers, body, onFreshConnection, ...(stream && { stream }) }
    this.upstream = target.upstream.pool.send(sent, this)
  }

  onRequestStart(): void {
    this.state = stateAfter(this.state, 'sent')
    const nowMs = performance.now()
    this.clock.begin(nowMs)
    this.result.wasSent = true
    this.awaitNext('firstByteMs', nowMs)
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    const { result } = this
    const nowMs = performance.now()
    this.clock.head(nowMs)
    this.awaitNext('replyMs', nowMs)
    this.collected.headers = headers
    for (const listener of this.listeners) listener.head?.(result, status, headers)
    result.status = status
    result.requestId = requestIdIn(headers)
    if (status !== 200) {
      this.state = stateAfter(this.state, 'refused')
      return
    }
    // A continued reply keeps its form: whole, or a stream.
    const wrong = unreadable(headers)
    if (wrong !== null) return this.fail(wrong)
    if (isSound(this.prepared.call, headers)) {
      this.guard(() => this.openStream())
      return
    }
    if (isSniffed(this.target, headers)) this.firstBytes = Buffer.alloc(0)
    this.open(isEventStream(headers))
  }

  /** Reads the reply as a stream of events, or whole. */
  private open(isEvents: boolean): void {
    const { call } = this.prepared
    this.collected.isEvents = isEvents
    const isStream = this.earlier.whole === null && streamsOn(call, this.target, isEvents)
    if (isStream) this.guard(() => this.openStream())
    else if (this.stream !== null) this.fail(OTHER_TYPE)
    else this.state = stateAfter(this.state, 'body')
  }

  /**
   * The form of the reply by its first bytes, because some upstreams send another content type. Returns the
   * bytes so far once the form is known; null before.
   */
  private sniffed(chunk: Buffer, isLast = false): Buffer | null {
    const { firstBytes, collected } = this
    if (firstBytes === null) return chunk
    const bytes = firstBytes.length === 0 ? chunk : Buffer.concat([firstBytes, chunk])
    const isBinary = this.target.upstreamCodec.framing !== 'sse'
    const form = bodyForm(bytes, isBinary) ?? (isLast ? 'other' : null)
    this.firstBytes = form === null ? bytes : null
    if (form === null) return null
    if (form === 'other') {
      if (isStray(bytes, collected.headers, isBinary)) this.state = stateAfter(this.state, 'refused')
      return bytes
    }
    const isEvents = form === 'events'
    if (isEvents !== collected.isEvents) this.reopen(isEvents)
    return isEvents ? bytes : withoutBom(bytes)
  }

  /** The reply has another form than its content type. A head that the client has stays. */
  private reopen(isEvents: boolean): void {
    if (this.isCommitted || this.earlier.stream !== null) return
    if (this.stream !== null) {
      const { stream, result } = this
      this.stream = null
      this.feed = null
      stream.onStep = () => undefined
      stream.onOutput = () => undefined
      stream.destroy()
      result.isStreamed = false
      result.replyResult = null
    }
    this.open(isEvents)
  }

  onResponseData(chunk: Buffer): void {
    for (const listener of this.listeners) listener.bytes?.(this.result, chunk)
    const bytes = this.state === 'error' ? chunk : this.sniffed(chunk)
    const { state } = this
    if (state === 'stream') {
      const gapMs = this.clock.received(performance.now())
      if (this.isCommitted) this.target.series.chunkGap(gapMs / 1000)
      if (bytes !== null) this.feed?.add(bytes)
    } else if (state === 'whole' || state === 'error') {
      this.clock.received(performance.now())
      if (bytes !== null) this.guard(() => this.collect(bytes, state === 'whole'))
    }
  }

  private collect(chunk: Buffer, isReply: boolean): void {
    if (this.collected.keep(chunk, isReply)) return
    if (isReply) this.fail(REPLY_TOO_LARGE)
    else this.failWithRefusal()
  }

  onResponseEnd(): void {
    this.takeFirstBytes()
    this.feed?.flush()
    if (this.state === 'whole') this.guard(() => this.finishWhole())
    else this.bodyEnded()
  }

  /** The body ended before its form was known. */
  private takeFirstBytes(): void {
    const rest = this.firstBytes === null ? null : this.sniffed(Buffer.alloc(0), true)
    if (rest === null || rest.length === 0) return
    const { state } = this
    if (state === 'stream') this.feed?.add(rest)
    else if (state === 'whole' || state === 'error') this.guard(() => this.collect(rest, state === 'whole'))
  }

  onResponseError(cause: Error): void {
    const { error: own = null } = this.prepared.outgoing.streamed ?? {}
    if (own !== null) return this.fail(own.wire, own)
    this.takeFirstBytes()
    this.feed?.flush()
    const { state } = this
    if (state === 'connecting' || state === 'waiting' || state === 'whole') {
      this.fail(transportError(cause, ATTEMPT_STATES[state].progress), cause)
    } else if (this.stream?.translation.endsWithBody === true) {
      this.fail(transportError(cause, ATTEMPT_STATES[state].progress), cause)
    } else this.bodyEnded()
  }

  /** The upstream's body ended or was truncated: the bytes received so far decide which. */
  private bodyEnded(): void {
    if (this.state === 'stream') {
      // The end is an input of the translation, which reports what is missing.
      this.clock.ended()
      if (this.prepared.outgoing.next === null) this.stream?.end()
      else this.stream?.endPart()
    } else if (this.state === 'error') this.guard(() => this.failWithRefusal())
    else if (this.state === 'lingering') this.finish()
  }

  tick(nowMs: number): void {
    const { clock, state } = this
    if (this.drainedReply?.isLate(nowMs) === true) return this.fail(CLIENT_LEFT)
    const { streamed } = this.prepared.outgoing
    if (streamed !== undefined && state === 'waiting') clock.upload(streamed, nowMs)
    const passed = clock.passedTimeout(state, nowMs, this.isCommitted)
    if (passed === 'linger') return this.abandon()
    if (passed === 'connect' && this.upstream?.isWaiting === true) {
      return this.fail(NO_FREE_CONNECTION)
    }
    if (passed !== null) {
      // The status of an error is more useful than the timeout of its body.
      if (state === 'error' && passed !== 'stalled') return this.failWithRefusal()
      return this.fail(timeoutErrorOf(passed))
    }
    // The status of a guarded reply is not known before the first verdict.
    const isGuarded = this.prepared.call.guard !== undefined
    if (!isGuarded && this.isStreaming() && nowMs - clock.headMs > this.loop.headWaitMs) {
      this.commit()
    }
  }

  isStreaming(): boolean {
    return this.state === 'stream'
  }

  get isPaused(): boolean {
    return this.clock.isPaused
  }

  pause(): void {
    this.clock.pause(performance.now())
    this.upstream?.pause()
  }

  resume(): void {
    this.clock.resume(performance.now())
    this.upstream?.resume()
  }

  ending(): Promise<void> | null {
    // The entry of a refused reply that is read on is written when that ends.
    if (this.stream?.translation.blocked === 'cut' && this.drainRefused()) return null
    return this.loop.ending(this)
  }

  /** A guardrail refused the rest of the stream. Whether it is read for its usage, as without a client. */
  private drainRefused(): boolean {
    if (!this.isStreaming() || this.notePause()) return false
    this.drainedReply ??= DrainedReply.of(this.result, this.request)
    if (this.drainedReply === null) return false
    this.request.sent.drain(this.drainedReply.ended)
    return true
  }

  /** Whether the upstream has paused: its counts are final, and nothing follows unless it is requested. */
  private notePause(): boolean {
    this.result.isPaused ||= (this.stream?.translation.resume ?? null) !== null
    return this.result.isPaused
  }

  threw(cause: unknown): void {
    this.request.sent.failure = cause
  }

  translated(ms: number): void {
    this.request.sent.translateMs += ms
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
    const { prepared, target } = this
    const { x } = this.request
    const stream =
      this.stream ?? openReplyStream(prepared, target, { x, owner: this, headers: this.collected.headers })
    this.stream = stream
    this.result.isStreamed = true
    this.result.replyResult = stream.translation
    stream.onStep = () => this.step(stream)
    stream.onOutput = () => this.noteContent(stream)
    this.feed = new ChunkFeed(stream, this)
    if (this.drainedReply !== null) stream.drain()
    this.state = stateAfter(this.state, 'events')
  }

  /** After each step of the translation: commits, fails, finishes or pauses. */
  private step(stream: ReplyTransform): void {
    const { result } = this
    const { translation } = stream
    if (!this.isStreaming()) return
    if (stream.isMetered) {
      if (translation.blocked === 'complete' || this.notePause()) {
        this.linger(translation.error?.kind ?? 'ok')
      }
      return
    }
    // Content commits also if a failure arrived in the same chunk: the result must not depend on chunk
    // boundaries.
    this.noteContent(stream)
    const isCut = translation.blocked === 'cut'
    if (translation.outcome === 'failed') {
      const error = translation.error ?? UNEXPECTED_FAILURE
      if (!isCut || !this.drainRefused()) return this.fail(error)
      result.outcome = error.kind
      stream.drain()
      stream.meter()
      this.loop.failed(this, gatewayError(this.named(error)))
    } else if (translation.outcome === 'complete') {
      if (isCut && this.drainedReply !== null) {
        result.outcome = 'ok'
        stream.meter()
        return
      }
      this.linger('ok')
      // A guardrail refused the rest.
      if (isCut) this.abandon()
      stream.end()
    } else if (translation.resume !== null) {
      const { resume, repeatCause } = translation
      this.linger(repeatCause ?? 'ok')
      this.notePause()
      if (this.drainedReply !== null) return
      translation.proceed()
      // The result of the next attempt includes the usage of all parts.
      result.replyResult = null
      this.loop.paused(this, { stream, whole: null, committed: this.isCommitted }, resume)
    } else if (this.drainedReply?.isCounted() === true) {
      this.abandon()
    }
  }

  /** The reply has content: the client gets it. */
  private noteContent({ translation }: ReplyTransform): void {
    if (!translation.content || !this.isStreaming()) return
    this.result.contentAtMs ??= performance.now()
    this.commit()
  }

  private commit(): void {
    if (this.isCommitted || this.stream === null) return
    this.isCommitted = true
    this.endWait()
    this.loop.begun(this, { kind: 'stream', stream: this.stream })
  }

  private finishWhole(): void {
    this.clock.ended()
    this.endWait()
    const read = this.collected.read(this.prepared, this.earlier.whole)
    if (!(read instanceof Promise)) return this.finishRead(read)
    const finish = (later: ReadReply): void => this.guard(() => this.finishRead(later))
    this.reading = read.then(finish, (cause: unknown) => this.fail(wireErrorOf(cause), cause))
  }

  private finishRead(read: ReadReply): void {
    // The client may have left while the reply was read.
    if (this.state === 'over') return
    const { loop, result } = this
    this.finish()
    if (read.kind === 'paused') {
      result.outcome = read.reply.repeatCause ?? 'ok'
      loop.paused(this, { stream: null, whole: read.reply, committed: false }, read.resume)
      return
    }
    const { error } = read.replyResult
    result.replyResult = read.replyResult
    result.outcome = error?.kind ?? 'ok'
    if (error !== null) return loop.failed(this, gatewayError(this.named(error)))
    const { request, endpoint } = this.prepared.call
    const stream = request.stream && endpoint.array !== true
    const { body, bytes, type } = read
    loop.begun(this, { kind: 'whole', body, bytes, stream, ...(typeof type === 'string' && { type }) })
  }

  /** The exchange was cancelled. If the client left, the rest of the reply may be read for its usage. */
  cancel(reason: GatewayError): void {
    const { state } = this
    if (this.stream?.isMetered === true) {
      if (reason.kind !== 'client_gone') this.abandon()
      return
    }
    if (reason.kind === 'client_gone' && this.reading !== null) {
      // The whole reply has arrived.
      this.request.sent.drain(this.reading)
      this.loop.failed(this, reason)
      return
    }
    const isDrainable = state === 'whole' || state === 'stream' || (state === 'waiting' && !this.isUploading)
    if (reason.kind === 'client_gone' && isDrainable) {
      this.drainedReply = DrainedReply.of(this.result, this.request)
    }
    const { drainedReply } = this
    if (drainedReply === null) return this.fail(reason.wire)
    this.request.sent.drain(drainedReply.ended)
    this.stream?.drain()
    this.feed?.resume()
    this.loop.failed(this, reason)
  }

  /** Another attempt was faster: cancels this one and drops its reply. */
  supersede(): void {
    if (this.state === 'over') return
    this.noteConnection()
    this.result.outcome = 'cancelled'
    this.abandon()
    this.stream?.destroy()
  }

  private failWithRefusal(): void {
    this.fail(this.collected.refusal(this.result.status ?? 0))
  }

  private fail(failure: WireError, cause?: unknown): void {
    const { result, stream, state } = this
    const error = this.named(failure)
    if (state === 'over') return
    if (state === 'lingering' || stream?.isMetered === true) return this.abandon()
    this.noteConnection()
    result.outcome = error.kind
    this.abandon()
    if (this.isCommitted && error.kind !== 'client_gone') {
      // The client has the beginning of the reply; the relay sends it the error.
      stream?.fail(error)
      return
    }
    stream?.destroy()
    if (!this.isCommitted) this.loop.failed(this, gatewayError(error, cause))
  }

  /** Whether the upstream has got only a part of a form that is passed on while it arrives. */
  private get isUploading(): boolean {
    return this.prepared.outgoing.streamed?.isSent === false
  }

  /** The error with the name of the upstream. */
  private named(error: WireError): WireError {
    return withUpstream(error, this.target.upstream.config.name, this.result.status)
  }

  /** Notes how far the request had got on its connection when it failed. */
  private noteConnection(): void {
    const { result } = this
    const connection = this.upstream?.connection ?? null
    result.wasFullySent = (connection?.wasFullySent ?? result.wasSent) && !this.isUploading
    result.isReused = connection?.isReused ?? false
    result.hasReplied = connection?.hasReplied ?? false
  }

  /** The reply is complete. Its connection can be reused if the upstream ends the body within a second. */
  private linger(outcome: Outcome): void {
    const nowMs = performance.now()
    this.endWait()
    this.result.outcome = outcome
    this.result.endedAtMs = nowMs
    if (this.clock.hasEnded) return this.finish()
    this.state = stateAfter(this.state, 'complete')
    this.clock.begin(nowMs)
    this.upstream?.resume()
  }

  /** Ends the attempt and destroys its connection. */
  private abandon(): void {
    if (this.state === 'over') return
    this.finish()
    this.upstream?.abort()
  }

  /** Ends the attempt: every end calls it. The connection is reused if the upstream's body has ended. */
  private finish(): void {
    if (this.state === 'over') return
    this.state = stateAfter(this.state, 'end')
    this.endWait()
    this.result.endedAtMs ??= performance.now()
    this.request.timeouts.remove(this)
    this.target.series.inflight(-1)
    this.collected.drop()
    this.drainedReply?.end()
  }

  /** The awaited event occurred at `nowMs`, and `awaited` is the next one. */
  private awaitNext(awaited: Awaited | null, nowMs: number): void {
    if (this.countsWaits) {
      const { result } = this
      const waitedMs = nowMs - this.awaitedSinceMs
      // One assignment for each member: a computed key is slower (docs/explanation/performance.md).
      switch (this.awaited) {
        case 'connectMs':
          result.connectMs = (result.connectMs ?? 0) + waitedMs
          break
        case 'firstByteMs':
          result.firstByteMs = (result.firstByteMs ?? 0) + waitedMs
          break
        case 'replyMs':
          result.replyMs = (result.replyMs ?? 0) + waitedMs
          break
        default:
      }
      this.awaitedSinceMs = nowMs
    }
    this.awaited = awaited
  }

  /** Stops measuring, whether the awaited event occurred or not. */
  private endWait(): void {
    if (this.awaited !== null) this.awaitNext(null, performance.now())
  }

  /** The attempt that this one hedges has ended: from now on the request waits for this one. */
  countWaits(): void {
    this.countsWaits = true
    this.awaitedSinceMs = performance.now()
  }
}

/** Collects the body of one reply. */
class CollectedReply {
  headers: IncomingHttpHeaders = {}
  /** The body is a stream of events. */
  isEvents = false
  private readonly request: AttemptRequest
  private readonly target: Target
  private chunks: Buffer[] = []
  private bytes = 0
  /** Set for a large reply in JSON, which is scanned while it arrives. */
  private scan: ReplyScan | null = null
  /** Number of chunks that were scanned. */
  private scanned = 0
  private isScanning = false

  constructor(request: AttemptRequest, target: Target) {
    this.request = request
    this.target = target
  }

  /** Keeps a chunk; false if the body exceeds its limit. Throws `overloaded` if there is no memory for it. */
  keep(chunk: Buffer, isReply: boolean): boolean {
    this.request.x.held.takeReply(chunk.length)
    this.bytes += chunk.length
    if (this.bytes > roomFor(isReply)) {
      // The beginning of a large error has its words.
      if (!isReply && this.chunks.length === 0) this.chunks.push(chunk.subarray(0, roomFor(false)))
      return false
    }
    this.chunks.push(chunk)
    if (this.bytes > LARGE_BYTES && isReply && !this.isEvents) this.startScan()
    return true
  }

  /** Scans what has arrived, in turns of the event loop of its own. */
  private startScan(): void {
    this.scan ??= new ReplyScan()
    if (this.isScanning) return
    this.isScanning = true
    void bodyTurns.run(this.scanSteps(this.scan)).finally(() => {
      this.isScanning = false
    })
  }

  private *scanSteps(scan: ReplyScan): Steps<ReplyScan> {
    for (;;) {
      const chunk = this.chunks[this.scanned]
      if (chunk === undefined) return scan
      this.scanned += 1
      scan.add(chunk.toString('latin1'), isAscii(chunk))
      yield
    }
  }

  /** Reads the whole reply; `begun` has the earlier parts, null if there are none. Throws as `readReply`. */
  read(prepared: PreparedRequest, begun: EarlierReply | null): ReadReply | Promise<ReadReply> {
    const beganMs = performance.now()
    const { chunks, bytes, target, headers } = this
    const { x, sent } = this.request
    const scan = this.scan === null ? null : this.scanSteps(this.scan)
    const read = readReply(
      { headers, chunks, bytes, scan, target, isEvents: this.isEvents, begun },
      { prepared, x },
    )
    const translated = (): void => void (sent.translateMs += performance.now() - beganMs)
    if (!(read instanceof Promise)) translated()
    return read instanceof Promise ? read.finally(translated) : read
  }

  /** The error in the body. Throws what the codec throws. */
  refusal(status: number): WireError {
    const text = joinChunks(this.chunks).toString('utf8')
    if (status === 200) return strayBody(text, this.headers)
    return this.target.upstreamCodec.decodeError(status, withDate(this.headers), text)
  }

  /** Drops the body. */
  drop(): void {
    this.chunks = []
  }
}

/** The headers with a date: a `retry-after` that is a date is relative to it. */
function withDate(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const isDated = !Number.isNaN(Date.parse(headers.date ?? ''))
  return isDated ? headers : { ...headers, date: new Date().toUTCString() }
}
