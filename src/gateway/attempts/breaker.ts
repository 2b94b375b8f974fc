/**
 * The circuit breaker of an upstream: opens after failures of the provider, allows one test request at a time
 * when `open_seconds` have passed, and closes with a slow start. The breaker is advisory:
 * `skip-open-breakers.ts` sends a request to an upstream with an open breaker if there is no other upstream.
 */
import type { BreakerConfig } from '../../config/config.js'
import { RollingSums, type Clock } from '../../base/rolling-sums.js'

/** Closed: requests are sent. Open: none. Half-open: one at a time, as a test. */
export type BreakerState = 'closed' | 'half_open' | 'open'

/** The value of the metric `sluice_breaker_state`. */
export const BREAKER_LEVELS: Readonly<Record<BreakerState, number>> = {
  closed: 0,
  half_open: 1,
  open: 2,
}

/**
 * After closing, the share of requests that are sent grows to all in this part of `open_seconds`, at most 5
 * s.
 */
const SLOW_START_OF_OPEN = 1 / 6
const MAX_SLOW_START_MS = 5_000
const SLOW_START_SHARE = 0.1
/** `open_seconds` is exceeded by up to this share, so that not all workers test at the same moment. */
const JITTER = 0.1

const ATTEMPTS = 0
const FAILURES = 1

/**
 * Requests of which an upstream with an open breaker may be the second or a later target, in this time:
 * enough to notice that it has recovered, and no multiple of the load if it has not.
 */
const MAX_OPEN_TRIES = 10
const OPEN_TRIES_MS = 10_000

/** The breaker's record of one attempt. Call one of the three once; later calls do nothing. */
export interface BreakerAttempt {
  /** The first content arrived, or the provider refused the request as the client's fault. */
  succeeded(): void
  /** The provider failed, and not the client or the gateway. */
  failed(): void
  /** The attempt ended for another reason: the client left, or a hedge was cancelled. */
  abandoned(): void
}

/** The breaker of one upstream. */
export class Breaker {
  private readonly config: BreakerConfig
  private readonly clock: Clock
  private readonly recent: RollingSums
  private readonly openTries = new RollingSums(OPEN_TRIES_MS, 1)
  private readonly slowStartMs: number
  /** When it last opened or closed, by the clock; null: it has been closed from the start. */
  changedAtMs: number | null = null
  private consecutive = 0
  private probesFailed = 0
  /** Null while closed. */
  private openUntilMs: number | null = null
  private closedAtMs = Number.NEGATIVE_INFINITY
  private test: BreakerAttempt | null = null
  /** Incremented at each opening and closing, so that results of earlier attempts are ignored. */
  private era = 0
  private readonly onChange: (state: BreakerState) => void

  /** `onChange` is called when it opens, closes, and lets a request test the upstream. */
  constructor(
    config: BreakerConfig,
    clock: Clock,
    onChange: (state: BreakerState) => void = () => undefined,
  ) {
    this.config = config
    this.clock = clock
    this.onChange = onChange
    this.recent = new RollingSums(config.windowMs, 2)
    this.slowStartMs = Math.min(MAX_SLOW_START_MS, config.openMs * SLOW_START_OF_OPEN)
  }

  get state(): BreakerState {
    if (this.openUntilMs === null) return 'closed'
    return this.clock.now() < this.openUntilMs ? 'open' : 'half_open'
  }

  /** Time until the next request may test the upstream, in ms; 0 if it is closed or the time has come. */
  get testInMs(): number {
    return this.openUntilMs === null ? 0 : Math.max(0, this.openUntilMs - this.clock.now())
  }

  /** Whether a request should be sent now. Random during the slow start. */
  allows(): boolean {
    switch (this.state) {
      case 'open':
        return false
      case 'half_open':
        return this.test === null
      case 'closed': {
        const sinceMs = this.clock.now() - this.closedAtMs
        if (sinceMs >= this.slowStartMs) return true
        const share = SLOW_START_SHARE + (1 - SLOW_START_SHARE) * (sinceMs / this.slowStartMs)
        return this.clock.random() < share
      }
    }
  }

  /** Whether a request whose other targets have failed may be sent although the breaker is open. */
  tryOpen(): boolean {
    const nowMs = this.clock.now()
    if (this.openTries.sum(0, nowMs) >= MAX_OPEN_TRIES) return false
    this.openTries.add(0, 1, nowMs)
    return true
  }

  /** Records the start of an attempt. */
  begin(): BreakerAttempt {
    const { era } = this
    let isOver = false
    const once = (then: () => void) => () => {
      if (isOver) return
      isOver = true
      if (this.test === attempt) this.test = null
      if (era === this.era) then()
    }
    const attempt: BreakerAttempt = {
      succeeded: once(() => this.succeeded()),
      failed: once(() => this.failed()),
      abandoned: once(() => undefined),
    }
    if (this.state === 'half_open' && this.test === null) {
      this.test = attempt
      this.onChange('half_open')
    }
    return attempt
  }

  /** An active health check succeeded: an open breaker may be tested at once. */
  probeSucceeded(): void {
    this.probesFailed = 0
    if (this.openUntilMs !== null) this.openUntilMs = Math.min(this.openUntilMs, this.clock.now())
  }

  /** An active health check failed: `failures` of them in a row open the breaker, and keep it open. */
  probeFailed(): void {
    this.probesFailed += 1
    if (this.openUntilMs !== null || this.probesFailed >= this.config.failures) this.open()
  }

  private succeeded(): void {
    const nowMs = this.clock.now()
    this.consecutive = 0
    this.recent.add(ATTEMPTS, 1, nowMs)
    if (this.openUntilMs === null) return
    this.openUntilMs = null
    this.closedAtMs = nowMs
    this.changedAtMs = nowMs
    this.reset()
    this.onChange('closed')
  }

  private failed(): void {
    const nowMs = this.clock.now()
    if (this.openUntilMs !== null) {
      // A failed test opens it again; a request that was sent because no other target was left changes
      // nothing.
      if (this.state === 'half_open') this.open()
      return
    }
    this.consecutive += 1
    this.recent.add(ATTEMPTS, 1, nowMs)
    this.recent.add(FAILURES, 1, nowMs)
    const attempts = this.recent.sum(ATTEMPTS, nowMs)
    const failures = this.recent.sum(FAILURES, nowMs)
    const { failures: maxConsecutive, errorRate, minRequests } = this.config
    const isRateHigh = attempts >= minRequests && failures / attempts >= errorRate
    if (this.consecutive >= maxConsecutive || isRateHigh) this.open()
  }

  private open(): void {
    const nowMs = this.clock.now()
    const openMs = this.config.openMs * (1 + JITTER * this.clock.random())
    const wasOpen = this.state === 'open'
    if (this.openUntilMs === null) this.changedAtMs = nowMs
    this.openUntilMs = nowMs + openMs
    this.reset()
    if (!wasOpen) this.onChange('open')
  }

  private reset(): void {
    this.era += 1
    this.consecutive = 0
    this.recent.clear()
    this.test = null
  }
}
