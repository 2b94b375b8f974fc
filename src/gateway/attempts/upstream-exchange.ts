/**
 * The upstream's side of one attempt: the phase and times of the request, and the connection. `finish`, which
 * every end of the attempt calls, releases all resources.
 */
import type { Outcome } from '../../observe/metrics/label-types.js'
import type { Deadlines, Timed } from '../deadlines.js'
import type { ReplyHandler, UpstreamCall } from '../upstreams/upstream-call.js'
import type { AttemptOwner, PreparedRequest } from './attempt-owner.js'
import type { AttemptResult } from './attempt-result.js'
import { AttemptClock, limitsOf, type PassedTimeout, type Phase } from './attempt-timeouts.js'

/** The attempt that an exchange belongs to. */
export interface UpstreamExchangeOptions {
  readonly owner: AttemptOwner
  readonly result: AttemptResult
  readonly prepared: PreparedRequest
  /** Whether the wait for the upstream counts in `result` from the start; see `UpstreamWait`. */
  readonly countsWait: boolean
}

/** One request to one upstream. */
export class UpstreamExchange {
  phase: Phase = 'connecting'
  readonly clock: AttemptClock
  private readonly options: UpstreamExchangeOptions
  private readonly wait: UpstreamWait
  private upstream: UpstreamCall | null = null
  private deadlines: Deadlines | null = null
  private timed: Timed | null = null

  constructor(options: UpstreamExchangeOptions) {
    const { owner, result, prepared, countsWait } = options
    this.options = options
    const { timeouts } = result.candidate.target.upstream.config
    this.clock = new AttemptClock(limitsOf(owner, timeouts, prepared.outgoing.firstByteMs))
    this.wait = new UpstreamWait(countsWait ? result : null)
  }

  /** Starts the clocks; `timed` is called for each tick until `finish`. */
  start(timed: Timed): void {
    const { owner, result } = this.options
    const nowMs = performance.now()
    result.beganAtMs = nowMs
    this.clock.begin(nowMs)
    this.wait.next('connectMs', nowMs)
    result.candidate.target.series.inflight(1)
    this.timed = timed
    this.deadlines = owner.deadlines
    this.deadlines.add(timed)
  }

  /** Sends the request. `handler` receives the reply. */
  send(handler: ReplyHandler): void {
    const { owner, result, prepared } = this.options
    const { onFreshConnection = false, outgoing } = prepared
    const { path, body } = outgoing
    const traced = owner.exchange.trace?.headers(result)
    const headers = traced === undefined ? outgoing.headers : [...outgoing.headers, ...traced]
    const request = { path, headers, body, onFreshConnection }
    this.upstream = result.candidate.target.upstream.pool.send(request, handler)
  }

  /** The request goes out on a connection. */
  connected(): void {
    this.phase = 'waiting'
    const nowMs = performance.now()
    this.clock.begin(nowMs)
    this.options.result.wasSent = true
    this.wait.next('firstByteMs', nowMs)
  }

  /** The head of the reply has arrived. */
  headArrived(): void {
    const nowMs = performance.now()
    this.clock.head(nowMs)
    this.wait.next('replyMs', nowMs)
  }

  /** The reply to the client begins now, or its body is complete. */
  endWait(): void {
    this.wait.end()
  }

  /** Counts the wait in the result from now on: the attempt that this one hedges has ended. */
  countWait(): void {
    this.wait.count(this.options.result)
  }

  /** The timeout that has passed; null if none has. */
  passedTimeout(nowMs: number, isCommitted: boolean): PassedTimeout | null {
    return this.clock.passedTimeout(this.phase, nowMs, isCommitted)
  }

  /** True while the request waits for one of the upstream's connections. */
  get isQueued(): boolean {
    return this.upstream?.isWaiting === true
  }

  get isOver(): boolean {
    return this.phase === 'over'
  }

  isStreaming(): boolean {
    return this.phase === 'stream'
  }

  pause(): void {
    this.clock.pause(performance.now())
    this.upstream?.pause()
  }

  resume(): void {
    this.clock.resume(performance.now())
    this.upstream?.resume()
  }

  /** The reply is complete. Its connection can be reused if the upstream ends the body within a second. */
  linger(outcome: Outcome): void {
    const { result } = this.options
    this.wait.end()
    result.outcome = outcome
    result.endedAtMs = performance.now()
    if (this.clock.hasEnded) {
      this.finish()
    } else {
      this.phase = 'lingering'
      this.clock.begin(performance.now())
      this.upstream?.resume()
    }
  }

  /** Notes how far the request had got on its connection when it failed. */
  noteConnection(): void {
    const { result } = this.options
    const connection = this.upstream?.connection ?? null
    result.wasFullySent = connection?.wasFullySent ?? result.wasSent
    result.isReused = connection?.isReused ?? false
    result.hasReplied = connection?.hasReplied ?? false
  }

  /** Ends the exchange and destroys its connection. */
  abandon(): void {
    if (this.isOver) return
    this.finish()
    this.upstream?.abort()
  }

  /** Ends the exchange. The connection is reused if the upstream's body has ended. */
  finish(): void {
    if (this.isOver) return
    const { result } = this.options
    this.phase = 'over'
    this.wait.end()
    result.endedAtMs ??= performance.now()
    if (this.timed !== null) this.deadlines?.remove(this.timed)
    result.candidate.target.series.inflight(-1)
    this.onFinish()
  }

  /** Called once, by `finish`. */
  onFinish: () => void = () => undefined
}

/**
 * The events that an attempt waits for: a connection; the head; the first content, or the end of a whole
 * body.
 */
type Awaited = 'connectMs' | 'firstByteMs' | 'replyMs'

/** Adds the waiting times to the attempt's result, so that they do not count as the gateway's own time. */
class UpstreamWait {
  private result: AttemptResult | null
  private awaited: Awaited | null = null
  private sinceMs = 0

  /**
   * `result` is null if the reply has begun, because the client's wait then counts as relaying; and for a
   * hedge, while the time counts for the other attempt.
   */
  constructor(result: AttemptResult | null) {
    this.result = result
  }

  /** The awaited event occurred at `nowMs`, and `awaited` is the next one. */
  next(awaited: Awaited | null, nowMs: number): void {
    const { result } = this
    if (result === null) {
      this.awaited = awaited
      return
    }
    const waitedMs = nowMs - this.sinceMs
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
    this.awaited = awaited
    this.sinceMs = nowMs
  }

  /** Counts the time in `result` from now on. */
  count(result: AttemptResult): void {
    this.result = result
    this.sinceMs = performance.now()
  }

  /** Stops measuring, whether the awaited event occurred or not. */
  end(): void {
    if (this.awaited !== null) this.next(null, performance.now())
  }
}
