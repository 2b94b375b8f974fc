/**
 * One request to one upstream, to the end of its reply. Handles what undici dispatches, without a Readable (60 µs less).
 * What follows a failure or a pause is decided in `candidates.ts`.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { gatewayError, type GatewayError, type WireError } from '../../../errors.js'
import type { Outcome } from '../../../observe/metrics/label-values.js'
import type { ReplyHandler, UpstreamCall } from '../../../upstreams/pool.js'
import type { Timed } from '../../under-way/deadlines.js'
import {
  LATE,
  LEFT,
  NO_FREE_CONNECTION,
  STALLED,
  tooLate,
  transportError,
  UNFORESEEN,
  wireOf,
} from '../../fault.js'
import type { Target } from '../../generation/generation.js'
import { LANDED } from '../../under-way/in-flight.js'
import type { ReplyOwner, ReplyTransform } from '../../streams/reply-transform.js'
import { AttemptClock, limitsOf, type Phase } from './attempt-clock.js'
import { CollectedReply } from './collected-reply.js'
import { Feed, type Fed } from './feed.js'
import { isEventStream, OTHER_TYPE, requestIdIn, unreadable } from '../reply/read-head.js'
import { Leftover } from './leftover.js'
import { openReplyStream, streamsOn, type ReadReply } from '../reply/read-reply.js'
import type { AttemptOwner, Prepared } from './owner.js'
import type { EarlierParts } from '../reply/begun-reply.js'
import type { AttemptResult } from '../result.js'
import { Wait } from './wait.js'

/** Phases in which the rest of a reply can be read on: one that was asked for. */
const DRAINABLE: ReadonlySet<Phase> = new Set(['waiting', 'whole', 'stream'])

const TOO_LARGE: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply is too large.',
}

const PROGRESS = { connecting: 'connecting', waiting: 'sent', whole: 'in reply' } as const

/** Reports exactly one end to its owner: `begun`, `failed` or `paused`. */
export class Attempt implements ReplyHandler, ReplyOwner, Fed, Timed {
  place = LANDED
  readonly result: AttemptResult
  readonly prepared: Prepared
  private readonly owner: AttemptOwner
  private readonly target: Target
  private readonly earlier: EarlierParts
  private readonly wait: Wait
  private phase: Phase = 'connecting'
  private committed: boolean
  upstream: UpstreamCall | null = null
  private stream: ReplyTransform | null
  private feed: Feed | null = null
  private readonly collected: CollectedReply
  readonly clock: AttemptClock
  /** Set once the client has left and the reply is read on. */
  private leftover: Leftover | null = null

  constructor(
    owner: AttemptOwner,
    result: AttemptResult,
    prepared: Prepared,
    earlier: EarlierParts,
  ) {
    this.owner = owner
    this.result = result
    this.prepared = prepared
    this.target = result.candidate.target
    this.earlier = earlier
    this.stream = earlier.stream
    this.committed = earlier.committed
    this.wait = new Wait(earlier.committed || result.occasion === 'hedge' ? null : result)
    const { timeouts } = this.target.upstream.config
    this.collected = new CollectedReply(owner, this.target)
    this.clock = new AttemptClock(limitsOf(owner, timeouts, prepared.outgoing.firstByteMs))
  }

  /** Sends the request; `nowMs` is the time. */
  send(nowMs = performance.now()): void {
    this.result.beganAtMs = nowMs
    this.clock.begin(nowMs)
    this.wait.next('connectMs', nowMs)
    this.target.series.inflight(1)
    this.owner.deadlines.add(this)
    const { reason } = this.owner.exchange.cancellation
    if (reason !== null) return this.cancel(reason)
    const { onFreshConnection = false, outgoing } = this.prepared
    const { path, body } = outgoing
    const traced = this.owner.exchange.trace?.headers(this.result)
    const headers = traced === undefined ? outgoing.headers : [...outgoing.headers, ...traced]
    const request = { path, headers, body, onFreshConnection }
    this.upstream = this.target.upstream.pool.send(request, this)
  }

  onRequestStart(): void {
    this.phase = 'waiting'
    const nowMs = performance.now()
    this.clock.begin(nowMs)
    this.result.wasSent = true
    this.wait.next('firstByteMs', nowMs)
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    const { result } = this
    const nowMs = performance.now()
    this.clock.head(nowMs)
    this.collected.headers = headers
    this.wait.next('replyMs', nowMs)
    result.status = status
    result.requestId = requestIdIn(headers)
    if (status !== 200) {
      this.phase = 'error'
      return
    }
    // What has begun as a whole reply goes on as one, and what has begun as a stream as a stream.
    const { call } = this.prepared
    const streams =
      this.earlier.whole === null && streamsOn(call, this.target, isEventStream(headers))
    const wrong = unreadable(headers)
    if (wrong !== null) this.fail(wrong)
    else if (streams) this.guard(() => this.openStream())
    else if (this.stream !== null) this.fail(OTHER_TYPE)
    else this.phase = 'whole'
  }

  onResponseData(chunk: Buffer): void {
    this.result.captured?.take(chunk)
    if (this.phase === 'stream') {
      const gapMs = this.clock.heard(performance.now())
      if (this.committed) this.target.series.chunkGap(gapMs / 1000)
      this.feed?.take(chunk)
      return
    }
    if (this.phase !== 'whole' && this.phase !== 'error') return
    this.clock.heard(performance.now())
    this.guard(() => this.keep(chunk))
  }

  private keep(chunk: Buffer): void {
    const isReply = this.phase === 'whole'
    if (this.collected.keep(chunk, isReply)) return
    if (isReply) this.fail(TOO_LARGE)
    else this.refusedByUpstream()
  }

  onResponseEnd(): void {
    this.feed?.pass()
    if (this.phase === 'whole') this.guard(() => this.finishWhole())
    else this.ended()
  }

  onResponseError(cause: Error): void {
    this.feed?.pass()
    const { phase } = this
    if (phase === 'connecting' || phase === 'waiting' || phase === 'whole') {
      this.fail(transportError(cause, PROGRESS[phase]), cause)
    } else this.ended()
  }

  /** The upstream's body ended, or was cut: what has come says what that means. */
  private ended(): void {
    if (this.phase === 'stream') this.endStream()
    else if (this.phase === 'error') this.guard(() => this.refusedByUpstream())
    else if (this.phase === 'lingering') this.over()
  }

  tick(nowMs: number): void {
    if (this.leftover?.isLate(nowMs) === true) return this.fail(LEFT)
    const overdue = this.clock.overdue(this.phase, nowMs, this.committed)
    if (overdue === 'linger') return this.abandon()
    if (overdue === 'stalled') return this.fail(STALLED)
    if (overdue === 'connect' && this.upstream?.isWaiting === true) {
      return this.fail(NO_FREE_CONNECTION)
    }
    if (overdue !== null) return this.late(LATE[overdue])
    const heldMs = nowMs - this.clock.headMs
    if (this.phase === 'stream' && heldMs > this.owner.headHoldMs) this.commit()
  }

  /** A codec that throws must not leave the exchange without an end. */
  private guard(step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.fail(wireOf(cause), cause)
    }
  }

  private openStream(): void {
    const { owner, prepared, target } = this
    const { exchange } = owner
    const stream = this.stream ?? openReplyStream(prepared, target, { exchange, owner: this })
    this.stream = stream
    this.result.isStreamed = true
    this.result.verdict = stream.translation
    stream.onStep = () => this.step(stream)
    this.feed = new Feed(stream, this)
    if (this.leftover !== null) stream.drain()
    this.phase = 'stream'
  }

  /** A failing source is data too: the translation hears an end of file and says what is missing. */
  private endStream(): void {
    this.clock.ended()
    if (this.prepared.outgoing.next === null) this.stream?.end()
    else this.stream?.endPart()
  }

  isStreaming(): boolean {
    return this.phase === 'stream'
  }

  /** After each piece of the stream: commit, refuse or finish. */
  private step(stream: ReplyTransform): void {
    const { translation } = stream
    if (this.phase !== 'stream') return
    // Also where the failure came with it: what the client gets must not hang on how the bytes were cut.
    if (translation.content) {
      this.result.contentAtMs ??= performance.now()
      this.commit()
    }
    if (translation.outcome === 'failed') return this.fail(translation.error ?? UNFORESEEN)
    if (translation.outcome === 'complete') {
      this.linger('ok')
      stream.end()
    } else if (translation.resume !== null) {
      const { resume, mishap } = translation
      this.linger(mishap ?? 'ok')
      if (this.leftover !== null) return
      translation.proceed()
      // The later attempt has the counts of all parts.
      this.result.verdict = null
      this.owner.paused(this, { stream, whole: null, committed: this.committed }, resume)
    } else if (this.leftover?.isCounted(translation) === true) {
      this.result.countsAreFinal = true
      this.abandon()
    }
  }

  /** The exchange was cancelled. */
  cancel(reason: GatewayError): void {
    if (reason.kind === 'client_gone' && DRAINABLE.has(this.phase)) {
      const { exchange, drains } = this.owner
      this.leftover = Leftover.of(this.result, exchange.generation, drains)
    }
    const { leftover } = this
    if (leftover === null) return this.fail(reason.wire)
    this.owner.draining(leftover.ended)
    this.stream?.drain()
    this.feed?.resume()
    this.owner.failed(this, reason)
  }

  /** The reply is whole. Its socket can be used again if the upstream now ends the body as well. */
  private linger(outcome: Outcome): void {
    this.wait.end()
    this.result.outcome = outcome
    this.result.endedAtMs = performance.now()
    if (this.clock.hasEnded) {
      this.over()
    } else {
      this.phase = 'lingering'
      this.clock.begin(performance.now())
      this.upstream?.resume()
    }
  }

  private commit(): void {
    if (this.committed || this.stream === null) return
    this.committed = true
    this.wait.end()
    this.owner.begun(this, { kind: 'stream', stream: this.stream })
  }

  private finishWhole(): void {
    this.wait.next(null, performance.now())
    const read = this.collected.read(this.prepared, this.earlier.whole)
    if (!(read instanceof Promise)) return this.finishRead(read)
    const finish = (later: ReadReply): void => this.guard(() => this.finishRead(later))
    read.then(finish, (cause: unknown) => this.fail(wireOf(cause), cause))
  }

  private finishRead(read: ReadReply): void {
    // A client may have left while it was read.
    if (this.phase === 'over') return
    const { owner, result } = this
    this.over()
    if (read.kind === 'paused') {
      result.outcome = read.reply.mishap ?? 'ok'
      owner.paused(this, { stream: null, whole: read.reply, committed: false }, read.resume)
      return
    }
    const { error } = read.verdict
    result.verdict = read.verdict
    result.outcome = error?.kind ?? 'ok'
    if (error !== null) return owner.failed(this, gatewayError(error))
    const { request, endpoint } = this.prepared.call
    const stream = request.stream && endpoint.array !== true
    owner.begun(this, { kind: 'whole', body: read.body, bytes: read.bytes, stream })
  }

  private refusedByUpstream(): void {
    this.fail(this.collected.refusal(this.result.status ?? 0))
  }

  private late(what: string): void {
    // Its status says more than that the rest of its words did not come.
    if (this.phase === 'error') this.refusedByUpstream()
    else this.fail(tooLate(what))
  }

  /** Another attempt was faster: ends this one, whose reply nobody gets. */
  supersede(): void {
    if (this.phase === 'over') return
    this.result.outcome = 'cancelled'
    const { stream } = this
    this.abandon()
    stream?.destroy()
  }

  /** The attempt that it was made beside has ended: from here on the request waits for this one. */
  countWait(): void {
    this.wait.count(this.result)
  }

  ending(): Promise<void> | null {
    return this.owner.ending(this)
  }

  threw(cause: unknown): void {
    this.owner.threw(cause)
  }

  translated(ms: number): void {
    this.owner.translated(ms)
  }

  private fail(error: WireError, cause?: unknown): void {
    if (this.phase === 'over') return
    if (this.phase === 'lingering') return this.abandon()
    const { result } = this
    const connection = this.upstream?.connection ?? null
    result.hasAll = connection?.hasAll ?? result.wasSent
    result.isReused = connection?.isReused ?? false
    result.outcome = error.kind
    const { stream } = this
    this.abandon()
    if (this.committed && error.kind !== 'client_gone') {
      // The client has the beginning; the relay sends it the error.
      stream?.fail(error)
      return
    }
    stream?.destroy()
    if (!this.committed) this.owner.failed(this, gatewayError(error, cause))
  }

  /** Ends the upstream side; its socket is destroyed, never reused. */
  private abandon(): void {
    if (this.phase === 'over') return
    this.over()
    this.upstream?.abort()
  }

  private over(): void {
    if (this.phase === 'over') return
    this.phase = 'over'
    this.wait.end()
    this.result.endedAtMs ??= performance.now()
    this.collected.drop()
    this.owner.deadlines.remove(this)
    this.target.series.inflight(-1)
    this.leftover?.end()
  }
}
