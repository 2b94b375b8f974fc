/**
 * Sums of usage for the page: over time, by model, by key. Pure.
 */
import { addNanoUsd, compareNanoUsd, type NanoUsd } from '../../base/nano-usd.js'
import { CAUSES, type Cause } from '../../errors.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../store/first-content.js'
import type { UsageSum } from '../../store/usage-queries.js'
import type * as schema from './schema/schema.js'

/** Maximum number of groups; all others are summed up as `other`. */
export const MAX_GROUPS = 8
/** The id of the group that sums up all others. */
export const OTHER = 'other'
/** Values above the last bound are drawn as this value. */
const LONGEST_MS = 90_000

/** Running sums of a period or a group. */
interface Sum {
  requests: number
  failed: number
  byCause: Record<Cause, number>
  inputTokens: number
  outputTokens: number
  cachedTokens: number
  reasoningTokens: number
  costNanoUsd: NanoUsd
  unpricedRequests: number
  estimatedRequests: number
  assumedRequests: number
  firstContent: number[]
}

/** The figures of all sums together. */
export function figuresOf(sums: Iterable<UsageSum>): schema.Sent<typeof schema.figures> {
  const total = newSum()
  for (const sum of sums) add(total, sum)
  return figures(total)
}

/** The figures of each period that has requests, in order of time. */
export function pointsOf(sums: Iterable<UsageSum>): schema.Sent<typeof schema.usagePoint>[] {
  const byStart = new Map<number, Sum>()
  for (const sum of sums) add(sumAt(byStart, sum.startMs), sum)
  return [...byStart.entries()]
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

function figures({ firstContent, ...sum }: Sum): schema.Sent<typeof schema.figures> {
  return {
    ...sum,
    firstTokenP50Ms: quantile(firstContent, 0.5),
    firstTokenP95Ms: quantile(firstContent, 0.95),
  }
}

function newSum(): Sum {
  return {
    requests: 0,
    failed: 0,
    byCause: { client: 0, limits: 0, gateway: 0, provider: 0 },
    inputTokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    reasoningTokens: 0,
    costNanoUsd: 0,
    unpricedRequests: 0,
    estimatedRequests: 0,
    assumedRequests: 0,
    firstContent: FIRST_CONTENT_BOUNDS_MS.map(() => 0).concat(0),
  }
}

function sumAt(sums: Map<number, Sum>, startMs: number): Sum {
  const known = sums.get(startMs)
  if (known !== undefined) return known
  const made = newSum()
  sums.set(startMs, made)
  return made
}

function add(to: Sum, sum: UsageSum): void {
  to.requests += sum.requests
  to.failed += sum.failed
  for (const cause of CAUSES) to.byCause[cause] += sum.byCause[cause]
  to.inputTokens += sum.inputTokens
  to.outputTokens += sum.outputTokens
  to.cachedTokens += sum.cacheReadTokens
  to.reasoningTokens += sum.reasoningTokens
  to.costNanoUsd = addNanoUsd(to.costNanoUsd, sum.costNanoUsd)
  to.unpricedRequests += sum.unpriced
  to.estimatedRequests += sum.estimated
  to.assumedRequests += sum.assumed
  sum.firstContent.forEach((count, at) => (to.firstContent[at] = (to.firstContent[at] ?? 0) + count))
}
