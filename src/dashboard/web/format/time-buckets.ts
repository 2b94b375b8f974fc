/** Sums over time for charts: one value per bucket of the range, without gaps. */
import type { UsagePoint, UsageReply } from '../../../control/dashboard/schema/schema.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './time.js'

/** Longer ranges have bars of six hours. */
const LONG_MS = 3 * DAY_MS
const COARSE_MS = 6 * HOUR_MS

/** The minutes, hours or days of a range. */
export interface Buckets {
  readonly startsMs: readonly number[]
  readonly bucketMs: number
  /** The last bucket is incomplete. */
  readonly partial: boolean
}

/** The minutes, hours or days of a reply, up to now. */
export function bucketsOf({
  starts,
  stepMs,
  nowMs,
  toMs,
}: Pick<UsageReply, 'starts' | 'stepMs' | 'nowMs' | 'toMs'>): Buckets {
  const startsMs = starts.filter((start) => start < Math.min(toMs, nowMs))
  return { startsMs, bucketMs: stepMs, partial: toMs >= nowMs }
}

/** Buckets for bars; in long ranges of hours they are six hours wide. */
export function barsOf(usage: UsageReply): Buckets {
  const { by, fromMs, toMs } = usage
  const buckets = bucketsOf(usage)
  if (by !== 'hour' || toMs - fromMs <= LONG_MS) return buckets
  // The first bar is as wide as the others: its start may be before the range.
  const starts = buckets.startsMs.map((start) => Math.floor(start / COARSE_MS) * COARSE_MS)
  return { ...buckets, startsMs: [...new Set(starts)], bucketMs: COARSE_MS }
}

/** The width of the buckets as a text: `per minute`, `per 5 min`, `per hour`, `per 6 h`, `per day`. */
export function perText({ bucketMs }: Buckets): string {
  if (bucketMs < HOUR_MS) return bucketMs === MINUTE_MS ? 'per minute' : `per ${bucketMs / MINUTE_MS} min`
  if (bucketMs === HOUR_MS) return 'per hour'
  return bucketMs === DAY_MS ? 'per day' : `per ${bucketMs / HOUR_MS} h`
}

/** The sum of each bucket; 0 without requests. Points are in order. */
export function sumsOf(
  { startsMs }: Buckets,
  points: readonly UsagePoint[],
  pick: (point: UsagePoint) => number,
): number[] {
  const sums = startsMs.map(() => 0)
  let at = 0
  for (const point of points) {
    while ((startsMs[at + 1] ?? Number.POSITIVE_INFINITY) <= point.startMs) at += 1
    sums[at] = (sums[at] ?? 0) + pick(point)
  }
  return sums
}

/** One value per bucket, which must be as wide as the points; null without requests. */
export function valuesOf<Point extends { readonly startMs: number }>(
  { startsMs }: Buckets,
  points: readonly Point[],
  pick: (point: Point) => number | null,
): (number | null)[] {
  const byStart = new Map(points.map((point) => [point.startMs, pick(point)]))
  return startsMs.map((start) => byStart.get(start) ?? null)
}
