/** Sums over time as charts need them: one value for each hour or day of the range, with none left out. */
import type { UsagePoint, UsageReply } from '../../server/schema/schema.js'

/** One hour, in ms. */
export const HOUR_MS = 3_600_000
/** One day, in ms. */
export const DAY_MS = 24 * HOUR_MS

/** The hours or days of a range. */
export interface Buckets {
  readonly startsMs: readonly number[]
  readonly bucketMs: number
  /** The last one is not over. */
  readonly partial: boolean
}

/** The hours or days that a reply covers, up to now. */
export function bucketsOf({ by, fromMs, toMs, nowMs }: UsageReply): Buckets {
  const bucketMs = by === 'hour' ? HOUR_MS : DAY_MS
  const startsMs: number[] = []
  for (let at = fromMs; at < Math.min(toMs, nowMs); at += bucketMs) startsMs.push(at)
  const last = startsMs.at(-1) ?? 0
  return { startsMs, bucketMs, partial: last + bucketMs > nowMs }
}

/** One value for each bucket; `missing` where there were no requests: 0 for counts, null for times. */
export function valuesOf(
  { startsMs }: Buckets,
  points: readonly UsagePoint[],
  pick: (point: UsagePoint) => number | null,
  missing: 0 | null,
): (number | null)[] {
  const byStart = new Map(points.map((point) => [point.startMs, point]))
  return startsMs.map((start) => {
    const point = byStart.get(start)
    return point === undefined ? missing : pick(point)
  })
}
