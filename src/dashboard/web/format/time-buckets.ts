/** Sums over time for charts: one value per bucket of the range, without gaps. */
import type { UsagePoint, UsageReply } from '../../server/schema/schema.js'

/** One hour, in ms. */
export const HOUR_MS = 3_600_000
/** One day, in ms. */
export const DAY_MS = 24 * HOUR_MS
/** Longer ranges have bars of six hours. */
const LONG_MS = 3 * DAY_MS
const COARSE_MS = 6 * HOUR_MS

/** The hours or days of a range. */
export interface Buckets {
  readonly startsMs: readonly number[]
  readonly bucketMs: number
  /** The last bucket is incomplete. */
  readonly partial: boolean
}

/** The hours or days of a reply, up to now. */
export function bucketsOf({ by, fromMs, toMs, nowMs }: UsageReply): Buckets {
  return made(by === 'hour' ? HOUR_MS : DAY_MS, { fromMs, toMs: Math.min(toMs, nowMs), nowMs })
}

/** Buckets for bars; in long ranges of hours they are six hours wide (UTC). */
export function barsOf(usage: UsageReply): Buckets {
  const { by, fromMs, toMs, nowMs } = usage
  if (by === 'day' || toMs - fromMs <= LONG_MS) return bucketsOf(usage)
  const startMs = Math.floor(fromMs / COARSE_MS) * COARSE_MS
  return made(COARSE_MS, { fromMs: startMs, toMs: Math.min(toMs, nowMs), nowMs })
}

function made(
  bucketMs: number,
  { fromMs, toMs, nowMs }: Pick<UsageReply, 'fromMs' | 'toMs' | 'nowMs'>,
): Buckets {
  const startsMs: number[] = []
  for (let at = fromMs; at < toMs; at += bucketMs) startsMs.push(at)
  const last = startsMs.at(-1) ?? 0
  return { startsMs, bucketMs, partial: last + bucketMs > nowMs }
}

/** The width of the buckets as a text: `per hour`, `per 6 h`, `per day (UTC)`. */
export function perText({ bucketMs }: Buckets): string {
  if (bucketMs === HOUR_MS) return 'per hour'
  return bucketMs === DAY_MS ? 'per day (UTC)' : `per ${bucketMs / HOUR_MS} h`
}

/** The sum of each bucket; 0 without requests. */
export function sumsOf(
  { startsMs, bucketMs }: Buckets,
  points: readonly UsagePoint[],
  pick: (point: UsagePoint) => number,
): number[] {
  const first = startsMs[0] ?? 0
  const sums = startsMs.map(() => 0)
  for (const point of points) {
    const at = Math.floor((point.startMs - first) / bucketMs)
    const before = sums[at]
    if (before !== undefined) sums[at] = before + pick(point)
  }
  return sums
}

/** One value per bucket, which must be as wide as the points; null without requests. */
export function valuesOf(
  { startsMs }: Buckets,
  points: readonly UsagePoint[],
  pick: (point: UsagePoint) => number | null,
): (number | null)[] {
  const byStart = new Map(points.map((point) => [point.startMs, point]))
  return startsMs.map((start) => {
    const point = byStart.get(start)
    return point === undefined ? null : pick(point)
  })
}
