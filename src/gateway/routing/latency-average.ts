/**
 * Expected latency of a target: the peak exponentially weighted moving average of its time to first content,
 * times its load, as in Finagle's load balancer. It rises at once with a slow reply and falls slowly with
 * fast ones.
 * Pure: times are arguments.
 */

/** Time over which a sample loses two thirds of its weight. */
const DECAY_MS = 10_000
/** The assumed latency of a target that has requests but no sample yet: higher than any measured one. */
const UNKNOWN_MS = 600_000

/** The latency of one target. */
export class PeakEwma {
  private averageMs = 0
  private sampledAtMs = 0
  private running = 0

  /**
   * Records the start of an attempt. Call the returned function once: at its first content, or when it ended
   * without content.
   */
  begin(startedMs: number): (nowMs: number, hasContent: boolean) => void {
    this.running += 1
    return (nowMs, hasContent) => {
      this.running -= 1
      const tookMs = nowMs - startedMs
      // A fast failure does not lower the average.
      if (hasContent || tookMs > this.averageMs) this.sample(tookMs, nowMs)
    }
  }

  /** Number of attempts that wait for their first content. */
  get waiting(): number {
    return this.running
  }

  /**
   * The expected time to first content with one more request, in ms; 0 for a target that has not been used
   * yet. It decays towards 0 without new samples, so that a slow target gets requests again.
   */
  expectedMs(nowMs: number): number {
    const average = this.averageMs * this.remaining(nowMs)
    if (this.averageMs === 0) return this.running === 0 ? 0 : UNKNOWN_MS + this.running
    return average * (this.running + 1)
  }

  private sample(tookMs: number, nowMs: number): void {
    const share = this.remaining(nowMs)
    const average = this.averageMs
    this.averageMs = tookMs > average ? tookMs : average * share + tookMs * (1 - share)
    this.sampledAtMs = nowMs
  }

  /** The remaining weight of the average after the time since the last sample. */
  private remaining(nowMs: number): number {
    return Math.exp(-Math.max(0, nowMs - this.sampledAtMs) / DECAY_MS)
  }
}
