/**
 * A process's slice of a limit of places: so many may be in use by its requests without a word to Redis. Pure but
 * for the slice's own counts; who calls says what time it is.
 *
 * Redis holds at least as many for the process as it uses by itself: what is given back is not used from the moment
 * that it is reports, and what is asked for not before it is granted. Words are numbered, since one that was held up
 * may arrive after those that follow it.
 */
import type { LimitState } from '../../ledger.js'
import type { SliceReport } from './encode-demands.js'

/** Of a limit with fewer, a tenth is less than one for each of two processes. */
export const MIN_CONCURRENT = 20
/** Asked for beyond what was in use at the same time, at the least. */
const SPARE = 2

/** A limit of places that this process asks for. */
export interface ConcurrencySlice {
  readonly kind: 'concurrent'
  readonly name: string
  limit: number
  /** Places that Redis holds for us, as far as we may use them, and those in use. */
  held: number
  inUse: number
  /** The number of the last word that gave something back, or of the first. */
  lastReturn: number
  /** So many that are not in use may be held, by what Redis said last. */
  maxIdle: number
  /** All places that are taken or held, by anybody, as Redis said last. */
  takenByAll: number
  isLow: boolean
  usableUntilMs: number
  reportedAtMs: number
  /** What was asked for in the running window, and in the one before; and how many at the same time. */
  windowMs: number
  count: number
  countBefore: number
  peak: number
  peakBefore: number
  /** Requests since the last word that found no place. */
  missed: number
}

/** One that nothing is held of yet, and that only words from `word` on speak of. */
export function newConcurrencySlice(
  name: string,
  limit: number,
  nowMs: number,
  word: number,
): ConcurrencySlice {
  return {
    kind: 'concurrent',
    name,
    limit,
    held: 0,
    inUse: 0,
    lastReturn: word,
    maxIdle: limit,
    takenByAll: 0,
    isLow: false,
    usableUntilMs: Number.NEGATIVE_INFINITY,
    reportedAtMs: Number.NEGATIVE_INFINITY,
    windowMs: nowMs,
    count: 0,
    countBefore: 0,
    peak: 0,
    peakBefore: 0,
    missed: 0,
  }
}

/** Whether one more request may run by it. */
export function hasFreeSlot(slice: ConcurrencySlice, nowMs: number): boolean {
  return nowMs < slice.usableUntilMs && !slice.isLow && slice.inUse < slice.held
}

/** One more request runs by it. */
export function takeSlot(slice: ConcurrencySlice): void {
  slice.inUse += 1
  slice.peak = Math.max(slice.peak, slice.inUse)
}

/** How many places are held and not in use. */
export function idleSlots({ held, inUse: busy }: ConcurrencySlice): number {
  return Math.max(0, held - busy)
}

/** The next window begins where the last is over. */
export function rollConcurrencyWindow(
  slice: ConcurrencySlice,
  nowMs: number,
  windowMs: number,
): void {
  const sinceMs = nowMs - slice.windowMs
  if (sinceMs < windowMs) return
  const isNext = sinceMs < 2 * windowMs
  slice.countBefore = isNext ? slice.count : 0
  slice.peakBefore = isNext ? slice.peak : slice.inUse
  slice.windowMs = nowMs
  slice.count = 0
  slice.peak = slice.inUse
}

/** Whether there are too few. */
export function needsSlots(slice: ConcurrencySlice): boolean {
  return !slice.isLow && slice.maxIdle > 0 && (slice.missed > 0 || idleSlots(slice) === 0)
}

/**
 * What is reports now, as a word that is numbered higher than all before it: limit, number of the word, how many
 * are ours whatever the answer is, how many are wanted, and in use. From now on no more is used than that.
 */
export function reportConcurrencySlice(
  slice: ConcurrencySlice,
  isHot: boolean,
  nowMs: number,
  word: number,
): SliceReport {
  const { inUse: busy, peak, peakBefore } = slice
  const most = Math.max(peak, peakBefore)
  const idle = slice.isLow || !isHot ? 0 : slice.maxIdle
  const spare = Math.max(SPARE, most >> 2) + slice.missed
  const want = isHot ? Math.min(busy + idle, most + spare) : busy
  slice.missed = 0
  slice.reportedAtMs = nowMs
  // Not heard of for so long, they may be others' by now.
  const isStale = nowMs >= slice.usableUntilMs
  // Who wants no more than it has gives the rest back, whatever answers are still to come.
  if (want <= slice.held || isStale) {
    slice.held = isStale ? busy : want
    slice.lastReturn = word
  }
  const wanted = Math.max(want, slice.held)
  return [slice.name, slice.kind, slice.limit, word, slice.held, wanted, busy]
}

/** What Redis answered: places held, all that are taken, to which word, most that may be idle, whether few are left. */
export function applyConcurrencyReply(
  slice: ConcurrencySlice,
  [held = 0, counted = 0, word = 0, idleMost = 0, isLow = 0]: readonly number[],
  usableUntilMs: number,
): void {
  // What was granted before something was given back may be what was given back.
  if (word < slice.lastReturn) return
  slice.held = Math.max(slice.held, held)
  slice.takenByAll = counted
  slice.maxIdle = idleMost
  slice.isLow = isLow === 1
  slice.usableUntilMs = usableUntilMs
}

/** As it stood when it was last heard of; what is held counts as taken. */
export function concurrencyState({ limit, takenByAll: counted }: ConcurrencySlice): LimitState {
  return { limit, remaining: Math.max(0, limit - counted), resetMs: 0, retryAfterMs: 0 }
}
