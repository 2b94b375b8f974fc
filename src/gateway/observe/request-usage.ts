/**
 * Calculates the usage and cost of a request at all its upstreams. Failed attempts count if the provider may
 * bill them.
 */
import { addUsage, isImplausible } from '../../chat/usage.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../client-exchange.js'
import { NOTHING_USED, usageOfAttempt, type Used } from './attempt-usage.js'
import type { Results } from './phase-results.js'

/** The total of all attempts. */
export function usageOf(x: RequestContext, results: Results): Used {
  const { identified, sent, call, attempt: finalAttempt } = results
  if (finalAttempt === null) return NOTHING_USED
  if (identified?.operation === 'native') return usageOfNative(finalAttempt)
  if (call === null) return NOTHING_USED
  const billed = { x, call }
  let total = NOTHING_USED
  for (const attempt of sent?.attempts ?? []) {
    const used = usageOfAttempt(attempt, billed)
    if (used !== NOTHING_USED) total = total === NOTHING_USED ? used : sum(total, used)
  }
  return total
}

/** From the most to the least uncertain. */
const SOURCES: readonly UsageSource[] = ['assumed', 'estimated', 'reported']

function sum(one: Used, other: Used): Used {
  return {
    usage: addUsage(one.usage, other.usage),
    source: SOURCES.find((source) => one.source === source || other.source === source) ?? 'none',
    costNanoUsd: sumOfKnown(one.costNanoUsd, other.costNanoUsd),
    budgetNanoUsd: sumOfKnown(one.budgetNanoUsd, other.budgetNanoUsd),
    rateTokens: one.rateTokens + other.rateTokens,
    tokensAfterDisconnect: one.tokensAfterDisconnect + other.tokensAfterDisconnect,
  }
}

function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

function usageOfNative(attempt: AttemptResult): Used {
  const { wasSent, replyResult, status, candidate, nativeNanoUsd } = attempt
  const usage = replyResult === null || isImplausible(replyResult.usage) ? {} : replyResult.usage
  const source = Object.keys(usage).length === 0 ? 'none' : 'reported'
  // A request that the upstream refused costs nothing.
  const isFree = !wasSent || (status ?? 0) >= 400
  const { nanoUsdPerRequest } = candidate.target.upstream.config.native
  const cost = isFree ? 0 : nativeNanoUsd === undefined ? nanoUsdPerRequest : nativeNanoUsd
  return { ...NOTHING_USED, usage, source, costNanoUsd: cost, budgetNanoUsd: cost }
}
