/**
 * One request to one upstream, to the end of its reply. Handles undici's events directly: a Readable would
 * cost 60 µs more per request. `try-candidates.ts` decides what follows a failure or a pause.
 */
import { isAscii } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { gatewayError, type GatewayError, type WireError } from '../../errors.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import { ReplyScan } from '../../formats/wire/json/reply-scan.js'
import type { Steps } from '../../formats/wire/steps.js'
import { outputTokens } from '../../ledger/estimate-tokens.js'
import type { Timed } from '../deadlines.js'
import type { Target } from '../generation.js'
import { NOT_LISTED, type DrainedReplySlots } from '../in-flight-list.js'
import { inTurns } from '../streams/in-turns.js'
import { joinChunks, LARGE_BYTES } from '../streams/join-chunks.js'
import type { ReplyTransform } from '../streams/reply-transform.js'
import type { WholeReply } from '../streams/whole-reply.js'
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
} from '../transport-errors.js'
import type { ReplyHandler } from '../upstreams/upstream-call.js'
import {
  replyOwnerOf,
  type EarlierParts,
  type AttemptOwner,
  type PreparedRequest,
  type StartedAttempt,
} from './attempt-owner.js'
import { hasFinalCounts, type AttemptResult } from './attempt-result.js'
import type { Phase } from './attempt-timeouts.js'
import {
  isEventStream,
  OTHER_TYPE,
  requestIdIn,
  unreadable,
  openReplyStream,
  streamsOn,
  readReply,
  roomFor,
  type ReadReply,
} from './read-reply.js'
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

/** The upstream is paused while this number of bytes waits. */
const PAUSE_BYTES = 64 * 1024
/** A read of this number of bytes is one of a fast stream. Models send less than a tenth of it. */
const FAST_BYTES = 16 * 1024
/** Fast streams are translated for this time in one turn, all of them together. */
const FAST_MS = 4

/**
 * The chunks of one stream.
 *
 * Passes chunks of an upstream's reply to the client's stream, and pauses the upstream while that stream is
 * full. Streams that arrive fast share the turns of the event loop, so that they delay no other request.
 */
class ChunkFeed {
  private readonly stream: ReplyTransform
  private readonly exchange: UpstreamExchange
  /** Chunks that the stream does not have yet, and their size. */
  private arrived: Buffer[] = []
  private bytes = 0
  /** The chunks wait for a turn of the event loop. */
  private isWaiting = false

  constructor(stream: ReplyTransform, exchange: UpstreamExchange) {
    this.stream = stream
    this.exchange = exchange
    stream.onDrain = () => this.resume()
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.arrived.push(chunk) === 1 && !this.isWaiting) process.nextTick(() => this.pass())
    if (this.bytes >= PAUSE_BYTES) this.exchange.pause()
  }

  /** Writes the collected chunks at once, before the end of the reply. */
  flush(): void {
    if (this.arrived.length > 0) this.write()
  }

  /**
   * Writes the collected chunks to the stream. Chunks of one read are written together, because a write to
   * the client costs more than the translation of many frames.
   */
  private pass(): void {
    if (this.bytes < FAST_BYTES) this.flush()
    else if (!FAST_STREAMS.pass(this)) {
      this.isWaiting = true
      this.exchange.pause()
    }
  }

  /** Writes the chunks in their turn. */
  write(): void {
    const { arrived, exchange, stream } = this
    this.isWaiting = false
    this.arrived = []
    this.bytes = 0
    if (arrived.length === 0 || !exchange.isStreaming()) return
    const takesMore = stream.write(joinChunks(arrived))
    // A stream that this chunk ended would never be resumed, and its connection could not be reused.
    if (!exchange.isStreaming()) return
    if (takesMore) this.resume()
    else if (!exchange.clock.isPaused) exchange.pause()
  }

  resume(): void {
    if (this.exchange.clock.isPaused && !this.isWaiting) this.exchange.resume()
  }
}

/** The fast streams of this process. */
class FastStreams {
  private waiting: ChunkFeed[] = []
  private usedMs = 0
  private hasTurn = false

  /** Writes the chunks if this turn has time for them; else they wait, in the order of their arrival. */
  pass(feed: ChunkFeed): boolean {
    const isNow = this.usedMs < FAST_MS && this.waiting.length === 0
    if (isNow) this.write(feed)
    else this.waiting.push(feed)
    return isNow
  }

  private write(feed: ChunkFeed): void {
    const beganMs = performance.now()
    feed.write()
    this.usedMs += performance.now() - beganMs
    if (this.hasTurn) return
    this.hasTurn = true
    setImmediate(() => this.turn())
  }

  private turn(): void {
    this.hasTurn = false
    this.usedMs = 0
    let next = 0
    const { waiting } = this
    for (; next < waiting.length && this.usedMs < FAST_MS; next += 1) {
      const feed = waiting[next]
      if (feed !== undefined) this.write(feed)
    }
    this.waiting = this.waiting.slice(next)
  }
}

const FAST_STREAMS = new FastStreams()

/** Collects the body of one reply. */
class CollectedReply {
  headers: IncomingHttpHeaders = {}
  private readonly owner: Pick<AttemptOwner, 'exchange' | 'held' | 'translated'>
  private readonly target: Target
  private chunks: Buffer[] = []
  private bytes = 0
  /** Set for a large reply in JSON, which is scanned while it arrives. */
  private scan: ReplyScan | null = null
  /** Number of chunks that were scanned. */
  private scanned = 0
  private isScanning = false

  constructor(
    owner: Pick<AttemptOwner, 'exchange' | 'held' | 'translated'>,
    target: CollectedReply['target'],
  ) {
    this.owner = owner
    this.target = target
  }

  /** Keeps a chunk; false if the body exceeds its limit. Throws `overloaded` if there is no memory for it. */
  keep(chunk: Buffer, isReply: boolean): boolean {
    this.owner.held.takeReply(chunk.length)
    this.bytes += chunk.length
    if (this.bytes > roomFor(isReply)) return false
    this.chunks.push(chunk)
    if (this.bytes > LARGE_BYTES && isReply && !isEventStream(this.headers)) this.startScan()
    return true
  }

  /** Scans what has arrived, in turns of the event loop of its own. */
  private startScan(): void {
    this.scan ??= new ReplyScan()
    if (this.isScanning) return
    this.isScanning = true
    void inTurns(this.scanSteps(this.scan)).finally(() => {
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
  read(prepared: PreparedRequest, begun: WholeReply | null): ReadReply | Promise<ReadReply> {
    const beganMs = performance.now()
    const { chunks, bytes, target, owner } = this
    const scan = this.scan === null ? null : this.scanSteps(this.scan)
    const isEvents = isEventStream(this.headers)
    const { exchange, held } = owner
    const read = readReply(
      { chunks, bytes, scan, target, isEvents, begun },
      { prepared, exchange, held },
    )
    const translated = (): void => owner.translated(performance.now() - beganMs)
    if (!(read instanceof Promise)) translated()
    return read instanceof Promise ? read.finally(translated) : read
  }

  /** The error in the body. Throws what the codec throws. */
  refusal(status: number): WireError {
    const text = joinChunks(this.chunks).toString('utf8')
    return this.target.egress.decodeError(status, withDate(this.headers), text)
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

/** Whether the rest of a reply can be read in this phase after the client has left. */
function isDrainable(phase: Phase): boolean {
  return phase === 'waiting' || phase === 'whole' || phase === 'stream'
}

/** The rest of one reply. The exchange waits for `ended` before its ledger entry is written. */
class DrainedReply {
  readonly ended: Promise<void>
  private readonly result: AttemptResult
  private readonly slots: DrainedReplySlots
  private readonly key: string
  private readonly untilUsage: boolean
  private readonly lateMs: number
  private resolve: () => void = () => undefined

  /**
   * Null if the configuration cancels the upstream, or if the maximum number of drained replies is reached.
   */
  static of(
    result: AttemptResult,
    owner: Pick<AttemptOwner, 'exchange' | 'payer' | 'drainedReplySlots'>,
  ): DrainedReply | null {
    const { payer, drainedReplySlots, exchange } = owner
    const { onDisconnect } = result.candidate.target.upstream.config
    const effect = onDisconnect ?? (payer.hasBudget ? 'drain_until_usage' : 'cancel')
    if (effect === 'cancel') return null
    const key = `${payer.accountId} ${payer.keyId}`
    const { afterDisconnect } = exchange.generation.snapshot.config
    if (!drainedReplySlots.enter(key, afterDisconnect)) return null
    return new DrainedReply(result, owner, { key, untilUsage: effect === 'drain_until_usage' })
  }

  private constructor(
    result: AttemptResult,
    {
      exchange: { generation },
      drainedReplySlots,
    }: Pick<AttemptOwner, 'exchange' | 'drainedReplySlots'>,
    { key, untilUsage }: { readonly key: string; readonly untilUsage: boolean },
  ) {
    this.result = result
    this.slots = drainedReplySlots
    this.key = key
    this.untilUsage = untilUsage
    this.lateMs = performance.now() + generation.snapshot.config.afterDisconnect.maxMs
    const { family } = generation.facts(result.candidate.model)
    result.outputWhenLeft = outputTokens(result.replyResult?.outputSize ?? NO_OUTPUT, family)
    this.ended = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  /** Whether the time limit has passed. */
  isLate(nowMs: number): boolean {
    return nowMs > this.lateMs
  }

  /** Whether the final counts have arrived, with `drain_until_usage`. */
  isCounted(): boolean {
    return this.untilUsage && hasFinalCounts(this.result)
  }

  /** The attempt has ended. Frees the slot. */
  end(): void {
    this.slots.leave(this.key)
    this.resolve()
  }
}
