/** What is left of sums after those of some groups. Pure. */
import { withoutNanoUsd } from '../base/nano-usd.js'
import type { UsageSum } from '../store/usage-queries.js'

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
  const left = (of: (sum: UsageSum) => number): number => Math.max(0, of(a) - of(b))
  return {
    ...a,
    requests: left(({ requests }) => requests),
    failed: left(({ failed }) => failed),
    byCause: {
      client: left(({ byCause }) => byCause.client),
      limits: left(({ byCause }) => byCause.limits),
      gateway: left(({ byCause }) => byCause.gateway),
      provider: left(({ byCause }) => byCause.provider),
    },
    inputTokens: left(({ inputTokens }) => inputTokens),
    outputTokens: left(({ outputTokens }) => outputTokens),
    cacheReadTokens: left(({ cacheReadTokens }) => cacheReadTokens),
    cacheWriteTokens: left(({ cacheWriteTokens }) => cacheWriteTokens),
    reasoningTokens: left(({ reasoningTokens }) => reasoningTokens),
    costNanoUsd: a.costNanoUsd > b.costNanoUsd ? withoutNanoUsd(a.costNanoUsd, b.costNanoUsd) : 0,
    unpriced: left(({ unpriced }) => unpriced),
    estimated: left(({ estimated }) => estimated),
    assumed: left(({ assumed }) => assumed),
    firstContent: a.firstContent.map((_, at) => left((each) => each.firstContent[at] ?? 0)),
  }
}
