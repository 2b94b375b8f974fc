/**
 * Sums of usage for the page: over time, by model, by key. Pure.
 */
import { FIRST_CONTENT_BOUNDS_MS } from '../../store/first-content.js'
import type { UsageSum } from '../../store/usage-queries.js'
import { sumOfSums, sumsBy, type SumFigures } from '../../usage/add-sums.js'
import type * as schema from './schema/schema.js'

/** Maximum number of groups; all others are summed up as `other`. */
export const MAX_GROUPS = 8
/** The id of the group that sums up all others. */
export const OTHER = 'other'
/** Values above the last bound are drawn as this value. */
const LONGEST_MS = 90_000

/** The figures of all sums together. */
export function figuresOf(sums: Iterable<UsageSum>): schema.Sent<typeof schema.figures> {
  return figures(sumOfSums(sums))
}

/** The figures of each period that has requests, in order of time. */
export function pointsOf(sums: Iterable<UsageSum>): schema.Sent<typeof schema.usagePoint>[] {
  return [...sumsBy(sums, ({ startMs }) => startMs)]
    .sort(([a], [b]) => a - b)
    .map(([startMs, sum]) => ({ startMs, ...figures(sum) }))
}

/** The group that sums up all others. */
export function restGroup(sums: readonly UsageSum[]): schema.Sent<typeof schema.usageGroup> {
  return { id: OTHER, isRest: true, label: OTHER, total: figuresOf(sums), points: pointsOf(sums) }
}

/**
 * A quantile of the times to first content, interpolated within its bucket; null if nothing
 * was counted.
 */
export function quantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let before = 0
  for (const [at, count] of counts.entries()) {
    if (count === 0 || before + count < share * total) {
      before += count
      continue
    }
    const from = at === 0 ? 0 : (FIRST_CONTENT_BOUNDS_MS[at - 1] ?? 0)
    const to = FIRST_CONTENT_BOUNDS_MS[at] ?? LONGEST_MS
    return Math.round(from + ((share * total - before) / count) * (to - from))
  }
  return LONGEST_MS
}

function figures(sum: SumFigures): schema.Sent<typeof schema.figures> {
  const { requests, failed, byCause, inputTokens, outputTokens, reasoningTokens, costNanoUsd } = sum
  return {
    ...{ requests, failed, byCause, inputTokens, outputTokens, reasoningTokens, costNanoUsd },
    cachedTokens: sum.cacheReadTokens,
    unpricedRequests: sum.unpriced,
    estimatedRequests: sum.estimated,
    assumedRequests: sum.assumed,
    ...{ cacheHits: sum.cacheHits, cacheSavedNanoUsd: sum.savedNanoUsd },
    firstTokenP50Ms: quantile(sum.firstContent, 0.5),
    firstTokenP95Ms: quantile(sum.firstContent, 0.95),
  }
}
