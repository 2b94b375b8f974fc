/**
 * What a key used of a model on each day of a span, packed into one record, so that a question about ten
 * thousand keys reads one record of each and not one of each day. Has what lists of keys show and no more;
 * sums have the rest. Knows no engine.
 */
import { NUMBER_BYTES, NumberReader, writeNumber } from './numbers.js'

/** Days of one record: some 600 bytes where a key is used every day. */
const DAYS = 64
const DAY_MS = 86_400_000
/** How long a span is; spans begin at multiples of it, since 1970. */
export const SPAN_MS = DAYS * DAY_MS
/** The version that this code writes and reads. */
const VERSION = 1

/** What was used on a day. */
export interface DayUse {
  readonly requests: number
  readonly costNanoUsd: number
  /** Requests that used tokens and whose price is not known. */
  readonly unpriced: number
}

/** The days of a span: numbers of each, and when the last request arrived. */
export interface DaysOfUse {
  lastAtMs: number
  /** By the day's place in the span. */
  readonly days: Map<number, DayUse>
}

/** Nothing yet. */
export function newDays(): DaysOfUse {
  return { lastAtMs: 0, days: new Map() }
}

/** Where the span begins that a time is in. */
export function spanOf(atMs: number): number {
  return Math.floor(Math.max(0, atMs) / SPAN_MS) * SPAN_MS
}

/** Adds to the day that the time is in. */
export function addToDays(of: DaysOfUse, atMs: number, use: DayUse): void {
  const day = dayOf(atMs)
  const before = of.days.get(day) ?? NOTHING
  of.lastAtMs = Math.max(of.lastAtMs, Math.floor(atMs))
  of.days.set(day, added(before, use))
}

/** Puts a day in the place of what there is of it. */
export function putDay(of: DaysOfUse, startMs: number, use: DayUse, lastAtMs: number): void {
  of.lastAtMs = Math.max(of.lastAtMs, Math.floor(lastAtMs))
  of.days.set(dayOf(startMs), use)
}

/** The bytes of a span's days: a version, when it was used last, then each day with its numbers. */
export function writeDays({ lastAtMs, days }: DaysOfUse): Buffer {
  SCRATCH[0] = VERSION
  let at = writeNumber(SCRATCH, 1, lastAtMs)
  for (const [day, { requests, costNanoUsd, unpriced }] of days) {
    for (const number of [day, requests, costNanoUsd, unpriced]) {
      at = writeNumber(SCRATCH, at, Math.min(Number.MAX_SAFE_INTEGER, number))
    }
  }
  return Buffer.from(SCRATCH.subarray(0, at))
}

/** Throws an Error that says how the bytes are damaged. */
export function readDays(bytes: Uint8Array): DaysOfUse {
  const of = newDays()
  of.lastAtMs = eachDay(bytes, (day, requests, costNanoUsd, unpriced) => {
    of.days.set(day, { requests, costNanoUsd, unpriced })
  })
  return of
}

/**
 * What was used on days of the span from one time to another, both days in; and when the key was used
 * last, at whatever time. Throws as `readDays`.
 */
export function usedBetween(
  bytes: Uint8Array,
  spanMs: number,
  fromMs: number,
  toMs: number,
): DayUse & { readonly lastAtMs: number } {
  const first = Math.floor((fromMs - spanMs) / DAY_MS)
  const last = Math.floor((toMs - spanMs) / DAY_MS)
  const use = { requests: 0, costNanoUsd: 0, unpriced: 0, lastAtMs: 0 }
  use.lastAtMs = eachDay(bytes, (day, requests, costNanoUsd, unpriced) => {
    if (day < first || day > last) return
    use.requests += requests
    use.costNanoUsd += costNanoUsd
    use.unpriced += unpriced
  })
  return use
}

/** Both together. */
export function added(a: DayUse, b: DayUse): DayUse {
  return {
    requests: a.requests + b.requests,
    costNanoUsd: a.costNanoUsd + b.costNanoUsd,
    unpriced: a.unpriced + b.unpriced,
  }
}

const NOTHING: DayUse = { requests: 0, costNanoUsd: 0, unpriced: 0 }
const SCRATCH = Buffer.alloc(1 + (1 + DAYS * 4) * NUMBER_BYTES)

function dayOf(atMs: number): number {
  return Math.floor((Math.max(0, atMs) - spanOf(atMs)) / DAY_MS)
}

/** Calls back with each day's numbers; gives back when the key was used last. */
function eachDay(
  bytes: Uint8Array,
  found: (day: number, requests: number, costNanoUsd: number, unpriced: number) => void,
): number {
  if (bytes[0] !== VERSION) throw new Error(`its version is not ${VERSION}`)
  const numbers = new NumberReader(bytes, 1)
  const lastAtMs = numbers.next()
  while (!numbers.done) {
    const day = numbers.next()
    if (day >= DAYS) throw new Error('it has a day beyond its span')
    found(day, numbers.next(), numbers.next(), numbers.next())
  }
  return lastAtMs
}
