/**
 * Sums of usage for the page: over time, by model, by key. Pure.
 */
import { compareNanoUsd } from '../../base/nano-usd.js'
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

/** The largest groups by cost and then by requests, and the sum of all others. */
export function groupsOf(
  sums: readonly UsageSum[],
  nameOf: (sum: UsageSum) => string,
): schema.Sent<typeof schema.usageGroup>[] {
  const byName = new Map<string, UsageSum[]>()
  for (const sum of sums) {
    const list = byName.get(nameOf(sum))
    if (list === undefined) byName.set(nameOf(sum), [sum])
    else list.push(sum)
  }
  const rest = byName.get(OTHER) ?? []
  byName.delete(OTHER)
  const groups = [...byName.entries()]
    .map(([id, own]) => ({ id, own, total: figuresOf(own) }))
    .sort(
      (a, b) =>
        compareNanoUsd(b.total.costNanoUsd, a.total.costNanoUsd) || b.total.requests - a.total.requests,
    )
  const shown = groups.slice(0, MAX_GROUPS).map(({ id, own, total }) => {
    return { id, label: id, total, points: pointsOf(own) }
  })
  rest.push(...groups.slice(MAX_GROUPS).flatMap(({ own }) => own))
  if (rest.length === 0) return shown
  return [...shown, restGroup(rest)]
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
