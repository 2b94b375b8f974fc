/**
 * The timeouts of the data plane: one timer for all of them, and the clock of one attempt, which reports
 * which of its timeouts has passed. A timer per request and phase would cost 0.4 µs each and a restart for
 * each chunk; a sweep over the requests in flight costs nothing per chunk and is late by at most one tick.
 * Times are monotonic, in ms.
 */
import { ATTEMPT_STATES, type AttemptState, type StateTimeout } from './attempts/attempt-states.js'
import { InFlightList, type InFlightItem } from './in-flight-list.js'

/** Interval of the sweep, and the maximum delay of a timeout, in ms. */
export const TICK_MS = 100

/** An item with timeouts, checked in each `tick`. `nowMs` is monotonic. */
export interface Timed extends InFlightItem {
  tick(nowMs: number): void
}

/** The items with timeouts. The timer runs from the first `add` until `close`. */
export class Timeouts {
  private readonly inFlight = new InFlightList<Timed>()
  private timer: NodeJS.Timeout | null = null

  /** Calls `tick` every `TICK_MS` until `remove`. */
  add(timed: Timed): void {
    this.inFlight.add(timed)
    this.timer ??= setInterval(() => this.sweep(), TICK_MS).unref()
  }

  remove(timed: Timed): void {
    this.inFlight.remove(timed)
  }

  /** Stops the timer when the process exits. */
  close(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private sweep(): void {
    const nowMs = performance.now()
    this.inFlight.each((timed) => timed.tick(nowMs))
  }
}

/** A timeout that has passed. `stalled`: the total time, spent on a client that does not read. */
export type PassedTimeout = StateTimeout | 'total' | 'stalled'

/** The maximum durations. */
interface TimeLimits {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  /** From `startedMs`, when the client's request came. */
  readonly totalMs: number
  readonly startedMs: number
}

/** An upstream that ends its body within this time after its terminator keeps its connection for reuse. */
const LINGER_MS = 1000

/** The times of one attempt. */
export class AttemptClock {
  headMs = 0
  private readonly limits: TimeLimits
  /** When the state of connecting, waiting or lingering began. */
  private sinceMs = 0
  /** When the last bytes of the upstream arrived; the time of a pause does not count. */
  private receivedMs = 0
  private pausedMs: number | null = null
  /** Total time for which the upstream was paused because the client did not read. */
  private clientMs = 0
  private bodyEnded = false
  private isUploading = false

  constructor(limits: TimeLimits) {
    this.limits = limits
  }

  /** Starts a state that has its own timeout. */
  begin(nowMs: number): void {
    this.sinceMs = nowMs
  }

  /** A form is sent while it arrives: only the time in which the upstream does not take its bytes counts. */
  upload(form: { readonly isSent: boolean; readonly isBlocked: boolean }, nowMs: number): void {
    this.isUploading = !form.isSent
    if (this.isUploading && !form.isBlocked) this.sinceMs = nowMs
  }

  /** The head of the reply arrived. */
  head(nowMs: number): void {
    this.headMs = nowMs
    this.receivedMs = nowMs
  }

  /** A chunk arrived; returns the time since the previous bytes. */
  received(nowMs: number): number {
    const gapMs = nowMs - this.receivedMs
    this.receivedMs = nowMs
    return gapMs
  }

  /** The upstream's body ended, complete or not. */
  ended(): void {
    this.bodyEnded = true
  }

  get hasEnded(): boolean {
    return this.bodyEnded
  }

  get isPaused(): boolean {
    return this.pausedMs !== null
  }

  pause(nowMs: number): void {
    this.pausedMs ??= nowMs
  }

  resume(nowMs: number): void {
    if (this.pausedMs === null) return
    this.clientMs += nowMs - this.pausedMs
    this.pausedMs = null
    this.receivedMs = nowMs
  }

  /** Null while no timeout has passed. `hasClient`: the client has the beginning of the reply. */
  passedTimeout(state: AttemptState, nowMs: number, hasClient: boolean): PassedTimeout | null {
    if (state === 'over') return null
    const passed = this.passedIn(ATTEMPT_STATES[state].timeout, nowMs)
    return passed === null && state !== 'lingering' ? this.passedTotal(nowMs, hasClient) : passed
  }

  private passedIn(timeout: StateTimeout, nowMs: number): StateTimeout | null {
    const { connectMs, firstByteMs, idleMs } = this.limits
    const isPast = (ms: number): boolean => nowMs - this.sinceMs > ms
    switch (timeout) {
      case 'connect':
        return isPast(connectMs) ? timeout : null
      case 'linger':
        return isPast(LINGER_MS) ? timeout : null
      case 'first byte':
        if (this.isUploading) return isPast(idleMs) ? 'idle' : null
        return isPast(firstByteMs) ? timeout : null
      case 'idle':
        // An upstream that is paused, or has sent its whole body, is not silent.
        return !this.isPaused && !this.bodyEnded && nowMs - this.receivedMs > idleMs ? timeout : null
    }
  }

  private passedTotal(nowMs: number, hasClient: boolean): PassedTimeout | null {
    const { totalMs, startedMs } = this.limits
    if (nowMs - startedMs <= totalMs) return null
    return hasClient && this.isClientSlow() ? 'stalled' : 'total'
  }

  /**
   * Whether a client that does not read used up the time: it does not read now, or did not for most of the
   * time.
   */
  private isClientSlow(): boolean {
    return this.isPaused || this.bodyEnded || this.clientMs > this.limits.totalMs / 2
  }
}
