/**
 * One request on one upstream connection, as the handler of its reply.
 * Knows no client socket. Its callbacks feed the translation directly: a response body as a Readable
 * costs 60 µs per request that this does not.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../chat/json.js'
import type { ReplyHandler, UpstreamCall } from '../upstreams/pool.js'
import { type ErrorKind, gatewayError, type GatewayError, type WireError } from '../errors.js'
import { AttemptClock, type Phase } from './attempt-clock.js'
import { NOT_BEGUN, type Begun, type Settlement } from './answer.js'
import type { Timed, Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import {
  LEFT,
  NO_FREE_CONNECTION,
  STALLED,
  tooLate,
  transportError,
  UNFORESEEN,
  wireOf,
} from './fault.js'
import type { Target } from './generation.js'
import { Leftover } from './leftover.js'
import { isEventStream, OTHER_TYPE, requestIdIn, unreadable } from './head.js'
import { LANDED } from './in-flight.js'
import type { Outgoing } from './outgoing.js'
import { joined } from './pieces.js'
import type { Call } from './receive.js'
import { openReplyStream, readReply, roomFor, streamsOn } from './replies.js'
import type { ReplyTransform } from './streams/reply-transform.js'
import { Wait } from './wait.js'

/** How long the head may be held for first content; then proxies want to see a status. */
const COMMIT_WAIT_MS = 1000
/** Where there is an answer to read on: one that was asked for. */
const DRAINABLE: ReadonlySet<Phase> = new Set(['waiting', 'whole', 'stream'])

const PROGRESS = { connecting: 'connecting', waiting: 'sent', whole: 'in reply' } as const

/**
 * Settles its promise exactly once: with an answer that has content, or with the error that came first.
 * Where the upstream pauses, or stumbles before it has said anything, another attempt takes over what
 * there is of the answer.
 */
export class Attempt implements ReplyHandler, Timed {
  place = LANDED
  private readonly x: Exchange
  private readonly call: Call
  private readonly target: Target
  private readonly deadlines: Deadlines
  private readonly outgoing: Outgoing
  private readonly settlement: Settlement
  private readonly begun: Begun
  private readonly wait: Wait
  private phase: Phase = 'connecting'
  private committed: boolean
  private upstream: UpstreamCall | null = null
  private stream: ReplyTransform | null
  private chunks: Buffer[] = []
  /** Of a stream: chunks of the current read. */
  private arrived: Buffer[] = []
  private bytes = 0
  private headers: IncomingHttpHeaders = {}
  private readonly clock: AttemptClock
  /** Set once the client has left and the answer is read on. */
  private leftover: Leftover | null = null

  constructor(
    x: Exchange,
    call: Call,
    target: Target,
    deadlines: Deadlines,
    outgoing: Outgoing,
    settlement: Settlement,
    begun = NOT_BEGUN,
  ) {
    this.x = x
    this.call = call
    this.target = target
    this.deadlines = deadlines
    this.outgoing = outgoing
    this.settlement = settlement
    this.begun = begun
    this.stream = begun.stream
    this.committed = begun.committed
    this.wait = new Wait(begun.committed ? null : x.facts)
    const { connectMs, idleMs, totalMs } = target.upstream.config.timeouts
    const { firstByteMs } = outgoing
    const { startedMs } = x
    this.clock = new AttemptClock({ connectMs, firstByteMs, idleMs, totalMs, startedMs })
  }

  /** `nowMs` is the time, for who has just looked. */
  send(nowMs = performance.now()): void {
    this.clock.begin(nowMs)
    this.wait.next('connectMs', nowMs)
    this.target.series.inflight(1)
    this.deadlines.add(this)
    this.x.cancellation.onCancel((reason) => this.cancelled(reason))
    if (this.phase === 'over') return
    const { pool } = this.target.upstream
    const { path, headers, body } = this.outgoing
    this.upstream = pool.send({ path, headers, body }, this)
  }

  onRequestStart(): void {
    this.phase = 'waiting'
    const nowMs = performance.now()
    this.clock.begin(nowMs)
    this.x.facts.attempts += 1
    this.wait.next('firstByteMs', nowMs)
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    const { facts } = this.x
    const nowMs = performance.now()
    this.clock.head(nowMs)
    this.headers = headers
    this.wait.next('replyMs', nowMs)
    facts.upstreamStatus = status
    facts.upstreamRequestId = requestIdIn(headers)
    if (status !== 200) {
      this.phase = 'error'
      return
    }
    // What has begun as a whole reply goes on as one, and what has begun as a stream as a stream.
    const streams =
      this.begun.whole === null && streamsOn(this.call, this.target, isEventStream(headers))
    const wrong = unreadable(headers)
    if (wrong !== null) this.fail(wrong)
    else if (streams) this.guard(() => this.openStream())
    else if (this.stream !== null) this.fail(OTHER_TYPE)
    else this.phase = 'whole'
  }

  onResponseData(chunk: Buffer): void {
    if (this.phase === 'stream') return this.feed(chunk)
    if (this.phase !== 'whole' && this.phase !== 'error') return
    this.clock.heard(performance.now())
    this.guard(() => {
      this.x.held.takeReply(chunk.length)
      this.keep(chunk)
    })
  }

  private keep(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes <= roomFor(this.phase === 'whole')) this.chunks.push(chunk)
    else if (this.phase === 'error') this.refusedByUpstream()
    else this.fail({ kind: 'upstream_malformed', message: 'The upstream’s reply is too large.' })
  }

  onResponseEnd(): void {
    this.pass()
    switch (this.phase) {
      case 'stream':
        this.endStream()
        return
      case 'error':
        this.guard(() => this.refusedByUpstream())
        return
      case 'whole':
        this.guard(() => this.finishWhole())
        return
      case 'lingering':
        this.over()
        return
      default:
    }
  }

  onResponseError(cause: Error): void {
    this.pass()
    switch (this.phase) {
      case 'stream':
        this.endStream()
        return
      case 'lingering':
        this.over()
        return
      case 'error':
        this.refusedByUpstream()
        return
      case 'over':
        return
      default:
        this.fail(transportError(cause, PROGRESS[this.phase]), cause)
    }
  }

  tick(nowMs: number): void {
    if (this.leftover?.isLate(nowMs) === true) return this.fail(LEFT)
    switch (this.clock.overdue(this.phase, nowMs, this.committed)) {
      case 'connect':
        if (this.upstream?.isWaiting === true) this.fail(NO_FREE_CONNECTION)
        else this.late('did not accept a connection in time')
        return
      case 'first byte':
        return this.late('did not begin to answer in time')
      case 'idle':
        return this.late('fell silent')
      case 'total':
        return this.late('took too long')
      case 'stalled':
        return this.fail(STALLED)
      case 'linger':
        return this.abandon()
      case null:
    }
    if (this.phase === 'stream' && nowMs - this.clock.headMs > COMMIT_WAIT_MS) this.commit()
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
    const { x, call, target } = this
    const stream = this.stream ?? openReplyStream(x, call, target, this.outgoing.next !== null)
    this.stream = stream
    this.x.facts.verdict = stream.translation
    stream.onStep = () => this.step(stream)
    stream.onDrain = () => this.resume()
    if (this.leftover !== null) stream.drain()
    this.phase = 'stream'
  }

  /** A failing source is data too: the translation hears an end of file and says what is missing. */
  private endStream(): void {
    this.clock.ended()
    if (this.outgoing.next === null) this.stream?.end()
    else this.stream?.endPart()
  }

  private isStreaming(): boolean {
    return this.phase === 'stream'
  }

  private feed(chunk: Buffer): void {
    const nowMs = performance.now()
    const gapMs = this.clock.heard(nowMs)
    if (this.committed) this.target.series.chunkGap(gapMs / 1000)
    if (this.arrived.push(chunk) === 1) process.nextTick(() => this.pass())
  }

  /** Chunks of one read go on together: a write to the client costs more than the translation of many frames. */
  private pass(): void {
    const { stream, arrived } = this
    if (stream === null || arrived.length === 0 || !this.isStreaming()) return
    this.arrived = []
    const takesMore = stream.write(joined(arrived))
    // If this chunk ended the stream nobody would resume, and the socket could not be used again.
    if (takesMore || !this.isStreaming() || this.clock.isPaused) return
    this.clock.pause(performance.now())
    this.upstream?.pause()
  }

  private resume(): void {
    if (!this.clock.isPaused) return
    this.clock.resume(performance.now())
    this.upstream?.resume()
  }

  /** After each piece of the stream: commit, refuse or finish. */
  private step(stream: ReplyTransform): void {
    const { translation } = stream
    if (this.phase !== 'stream') return
    // Also where the failure came with it: what the client gets must not hang on how the bytes were cut.
    if (translation.content) this.commit()
    if (translation.outcome === 'failed') return this.fail(translation.error ?? UNFORESEEN)
    if (translation.outcome === 'complete') {
      this.linger('ok')
      stream.end()
    } else if (translation.resume !== null) {
      const { resume, mishap } = translation
      this.linger(mishap ?? 'ok')
      if (this.leftover !== null) return
      translation.proceed()
      this.handOver({ stream, whole: null, committed: this.committed }, resume)
    } else if (this.leftover?.isCounted(translation) === true) {
      this.x.facts.countsAreFinal = true
      this.abandon()
    }
  }

  private cancelled(reason: GatewayError): void {
    if (reason.kind === 'client_gone' && DRAINABLE.has(this.phase)) {
      this.leftover = Leftover.of(this.x, this.target)
    }
    if (this.leftover === null) return this.fail(reason.wire)
    this.stream?.drain()
    this.resume()
    this.settlement.reject(reason)
  }

  /** The reply is whole. Its socket can be used again if the upstream now ends the body as well. */
  private linger(kind: ErrorKind | 'ok'): void {
    this.wait.end()
    this.target.series.attempt(kind)
    if (this.clock.hasEnded) {
      this.over()
    } else {
      this.phase = 'lingering'
      this.clock.begin(performance.now())
      this.upstream?.resume()
    }
  }

  /** The upstream paused, or said nothing worth telling: another attempt asks for the rest. */
  private handOver(begun: Begun, resume: JsonObject): void {
    const outgoing = this.outgoing.next?.(resume)
    if (outgoing === undefined) return this.fail(UNFORESEEN)
    const { x, call, target, deadlines, settlement } = this
    new Attempt(x, call, target, deadlines, outgoing, settlement, begun).send()
  }

  private commit(): void {
    if (this.committed || this.stream === null) return
    this.committed = true
    this.wait.end()
    this.settlement.resolve({ kind: 'stream', stream: this.stream })
  }

  private finishWhole(): void {
    const { x, call, target, begun } = this
    const { facts } = x
    const text = joined(this.chunks)
    const before = performance.now()
    this.wait.next(null, before)
    const read = readReply(text, x, call, target, {
      isEvents: isEventStream(this.headers),
      mayPause: this.outgoing.next !== null,
      begun: begun.whole,
    })
    this.over()
    facts.translateMs += performance.now() - before
    if (read.kind === 'paused') {
      target.series.attempt(read.answer.mishap ?? 'ok')
      this.handOver({ stream: null, whole: read.answer, committed: false }, read.resume)
      return
    }
    const { error } = read.verdict
    facts.verdict = read.verdict
    target.series.attempt(error?.kind ?? 'ok')
    if (error !== null) return this.settlement.reject(gatewayError(error))
    const { body, bytes } = read
    const stream = call.request.stream && call.endpoint.array !== true
    this.settlement.resolve({ kind: 'whole', body, bytes, stream })
  }

  private refusedByUpstream(): void {
    const status = this.x.facts.upstreamStatus ?? 0
    const text = joined(this.chunks).toString('utf8')
    this.fail(this.target.egress.decodeError(status, this.headers, text))
  }

  private late(what: string): void {
    // Its status says more than that the rest of its words did not come.
    if (this.phase === 'error') this.refusedByUpstream()
    else this.fail(tooLate(what))
  }

  private fail(error: WireError, cause?: unknown): void {
    if (this.phase === 'over') return
    if (this.phase === 'lingering') return this.abandon()
    this.target.series.attempt(error.kind)
    const { stream } = this
    this.abandon()
    if (this.committed && error.kind !== 'client_gone') {
      // The client has the beginning; the relay sends it the error.
      stream?.fail(error)
      return
    }
    stream?.destroy()
    this.settlement.reject(gatewayError(error, cause))
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
    this.chunks = []
    this.deadlines.remove(this)
    this.target.series.inflight(-1)
    this.leftover?.end()
  }
}
