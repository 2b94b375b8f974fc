/**
 * The intervals in which sums count times to first content, and the counters by which stores keep them. Pure.
 *
 * Versions up to schema 8 count in thirteen intervals. Each of them has parts now, so that there are eight
 * bounds or more in a decade: its counter stays, and all but one of its parts have a counter, too. The part
 * without one has the rest. So stores of those versions, and gateways that still write as they do, need no
 * conversion: what they count is in that part, which is the middle one.
 */

/** The parts of each former interval, by their upper bounds in ms. */
const FORMER: readonly (readonly number[])[] = [
  [10, 13, 17, 22, 29, 38, 50],
  [65, 80, 100],
  [125, 160, 200],
  [265, 350],
  [420, 500],
  [610, 750],
  [1_000],
  [1_220, 1_500],
  [1_930, 2_500],
  [3_150, 4_000, 5_000],
  [6_300, 8_000, 10_000],
  [13_000, 17_000, 22_600, 30_000],
  [40_000, 53_000, 70_000, Infinity],
]
/** The former interval whose parts are counted first: a cell in Redis ends with its last count. */
const COMMON = 3

/** A part of a former interval. */
interface Part {
  readonly overMs: number
  readonly upToMs: number
  /** The place of its former interval, which is that of its counter. */
  readonly former: number
  readonly isRest: boolean
}

/** All parts in the order of time. */
const PARTS: readonly Part[] = FORMER.flatMap((bounds, former) =>
  bounds.map((upToMs, at) => {
    const overMs = bounds[at - 1] ?? FORMER[former - 1]?.at(-1) ?? 0
    return { overMs, upToMs, former, isRest: at === Math.floor(bounds.length / 2) }
  }),
)
/** Those with a counter of their own, in the order of these counters. */
const COUNTED: readonly Part[] = PARTS.filter(({ isRest }) => !isRest).sort((a, b) => rank(a) - rank(b))
/** The counter of each part; null for the rests. */
const OWN_COUNTERS = PARTS.map((part) => (part.isRest ? null : FORMER.length + COUNTED.indexOf(part)))

/** The former interval of each counter of a part. */
const COUNTED_FORMERS = COUNTED.map(({ former }) => former)
/** The counter of each part; of a rest -1 less its former interval. */
const OWN_OR_REST = PARTS.map(({ former }, at) => OWN_COUNTERS[at] ?? -1 - former)

function rank({ former }: Part): number {
  return former < COMMON ? 2 * FORMER.length - former : former
}

/** Upper bounds of the counts in `UsageSum.firstContent`, in ms; one more count is above the last. */
export const FIRST_CONTENT_BOUNDS_MS: readonly number[] = PARTS.slice(0, -1).map(({ upToMs }) => upToMs)

/** The number of former intervals, whose counters are first. */
export const FORMER_COUNTERS = FORMER.length

/** What each counter counts: times above `overMs`, up to `upToMs`, which may be infinite. */
export const FIRST_CONTENT_COUNTERS: readonly Pick<Part, 'overMs' | 'upToMs'>[] = [
  ...FORMER.map((bounds, at) => ({ overMs: FORMER[at - 1]?.at(-1) ?? 0, upToMs: bounds.at(-1) ?? 0 })),
  ...COUNTED,
]

/** The counters that count a time: that of its former interval, and that of its part, if it has one. */
export function countersOfTime(ms: number): readonly [former: number, own: number | null] {
  const at = PARTS.findIndex(({ upToMs }) => ms <= upToMs)
  return [PARTS[at]?.former ?? 0, OWN_COUNTERS[at] ?? null]
}

/** `UsageSum.firstContent` as counters. */
export function countersOfParts(counts: readonly number[]): number[] {
  const counters = FIRST_CONTENT_COUNTERS.map(() => 0)
  for (const [at, { former }] of PARTS.entries()) {
    const [count, own] = [counts[at] ?? 0, OWN_COUNTERS[at] ?? null]
    counters[former] = (counters[former] ?? 0) + count
    if (own !== null) counters[own] = count
  }
  return counters
}

/** Counters as `UsageSum.firstContent`; missing ones are 0. */
export function partsOfCounters(counters: readonly number[]): number[] {
  const rests = counters.slice(0, FORMER.length)
  let at = FORMER.length
  // Answers have thousands of sums: loops without a list or an object for each part.
  for (const former of COUNTED_FORMERS) rests[former] = (rests[former] ?? 0) - (counters[at++] ?? 0)
  return OWN_OR_REST.map((own) => {
    return own < 0 ? Math.max(0, rests[-1 - own] ?? 0) : (counters[own] ?? 0)
  })
}
