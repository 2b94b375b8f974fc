/**
 * Decides while the store fails which cached results authenticate without a lookup, and when lookups start
 * again.
 */
import { GatewayError } from '../errors.js'
import type { CachedResult } from './key-cache.js'
import { LookupQueueFull } from './key-lookups.js'

/** How long cached results are used without a lookup after the store has failed. */
const BACK_OFF_MS = 1_000
/** Maximum random extension of the back-off, so that not all processes retry the store at once. */
const JITTER = 0.25

/** The back-off from a failing store, for one process. Times are monotonic, in ms. */
export class OutageFallback {
  private readonly now: () => number
  private readonly random: () => number
  private backOffUntilMs = Number.NEGATIVE_INFINITY

  /** `random` returns 0 to 1. */
  constructor(now: () => number, random: () => number) {
    this.now = now
    this.random = random
  }

  /** Begins a back-off, unless the store did not fail but too many lookups wait. */
  storeFailed(error: unknown): void {
    if (error instanceof GatewayError && error.cause instanceof LookupQueueFull) return
    this.backOffUntilMs = this.now() + BACK_OFF_MS * (1 + this.random() * JITTER)
  }

  isBackingOff(nowMs: number): boolean {
    return nowMs < this.backOffUntilMs
  }

  /** Ends the back-off. */
  reset(): void {
    this.backOffUntilMs = Number.NEGATIVE_INFINITY
  }
}

/** The cached result if it may be used while the store fails: it is at most `staleSeconds` old; else null. */
export function usableInOutage(
  cached: CachedResult | null,
  nowMs: number,
  staleSeconds: number,
): CachedResult | null {
  return cached !== null && nowMs - cached.checkedAtMs <= staleSeconds * 1000 ? cached : null
}
