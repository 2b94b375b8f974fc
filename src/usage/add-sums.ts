/** Adds up sums of usage, and takes some away. Pure. */
import { NO_UNITS } from '../base/unit-counts.js'
import { addNanoUsd, withoutNanoUsd, type NanoUsd } from '../base/nano-usd.js'
import { CAUSES } from '../errors.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../store/first-content.js'
import type { UsageSum } from '../store/usage-queries.js'

/** What a sum has besides its name and its time. */
export type SumFigures = Omit<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'>
type Counted = Exclude<keyof SumFigures, 'costNanoUsd' | 'firstContent' | 'byCause'>
/** Figures that are being added up. */
interface RunningFigures extends Record<Counted, number> {
  costNanoUsd: NanoUsd
  readonly byCause: Record<(typeof CAUSES)[number], number>
  readonly firstContent: number[]
}

const NOTHING: Readonly<Record<Counted, number>> = {
  requests: 0,
  failed: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  unpriced: 0,
  estimated: 0,
  assumed: 0,
  cacheHits: 0,
  savedNanoUsd: 0,
  ...NO_UNITS,
}
const COUNTED = Object.keys(NOTHING) as readonly Counted[]

/** All sums together. */
export function sumOfSums(sums: Iterable<UsageSum>): SumFigures {
  const total = newFigures()
  for (const sum of sums) addSum(total, sum)
  return total
}

/** The sums of each period or group together, in the order of the first of each. */
export function sumsBy<Sum extends UsageSum, Name>(
  sums: Iterable<Sum>,
  nameOf: (sum: Sum) => Name,
): Map<Name, SumFigures> {
  const found = new Map<Name, RunningFigures>()
  for (const sum of sums) {
    const name = nameOf(sum)
    const own = found.get(name) ?? newFigures()
    found.set(name, own)
    addSum(own, sum)
  }
  return found
}

function newFigures(): RunningFigures {
  return {
    ...NOTHING,
    costNanoUsd: 0,
    byCause: { client: 0, limits: 0, gateway: 0, provider: 0 },
    firstContent: FIRST_CONTENT_BOUNDS_MS.map(() => 0).concat(0),
  }
}

function addSum(to: RunningFigures, sum: UsageSum): void {
  for (const name of COUNTED) to[name] += sum[name]
  for (const cause of CAUSES) to.byCause[cause] += sum.byCause[cause]
  to.costNanoUsd = addNanoUsd(to.costNanoUsd, sum.costNanoUsd)
  sum.firstContent.forEach((count, at) => (to.firstContent[at] = (to.firstContent[at] ?? 0) + count))
}

/** The sums of all requests minus those of `some`, as `keyId`. Periods without requests are omitted. */
export function remainingSums(
  all: readonly UsageSum[],
  some: readonly UsageSum[],
  keyId: string,
): UsageSum[] {
  const nameOf = ({ startMs, model }: UsageSum): string => `${startMs} ${model}`
  const rest = new Map(all.map((sum) => [nameOf(sum), { ...sum, keyId }]))
  for (const sum of some) {
    const left = rest.get(nameOf(sum))
    if (left !== undefined) rest.set(nameOf(sum), without(left, sum))
  }
  return [...rest.values()].filter(({ requests }) => requests > 0)
}

/** Never below 0: the two sums may have been read at different moments. */
function without<S extends UsageSum>(a: S, b: UsageSum): S {
  const left = (of: number, part: number): number => Math.max(0, of - part)
  const { byCause, firstContent, costNanoUsd } = a
  const counts = { ...NOTHING }
  for (const name of COUNTED) counts[name] = left(a[name], b[name])
  return {
    ...a,
    ...counts,
    byCause: {
      client: left(byCause.client, b.byCause.client),
      limits: left(byCause.limits, b.byCause.limits),
      gateway: left(byCause.gateway, b.byCause.gateway),
      provider: left(byCause.provider, b.byCause.provider),
    },
    costNanoUsd: costNanoUsd > b.costNanoUsd ? withoutNanoUsd(costNanoUsd, b.costNanoUsd) : 0,
    firstContent: firstContent.map((count, at) => left(count, b.firstContent[at] ?? 0)),
  }
}
