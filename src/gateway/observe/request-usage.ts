/**
 * Calculates the usage and cost of a request at all its upstreams. Failed attempts count if the provider
 * bills them.
 */
import { addUsage, isImplausible } from '../../chat/usage.js'
import type { Outcome } from '../../observe/metrics/label-types.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../client-exchange.js'
import { NOTHING_USED, usageOfAttempt, type Used } from './attempt-usage.js'
import type { Results } from './phase-results.js'

/** The total of all attempts. */
export function usageOf(x: RequestContext, results: Results, outcome: Outcome): Used {
  const { identified, sent, call, attempt: finalAttempt } = results
  if (finalAttempt === null) return NOTHING_USED
  if (identified?.operation === 'native') return usageOfNative(finalAttempt)
  if (call === null) return NOTHING_USED
  const billed = { x, request: call.request }
  let total = NOTHING_USED
  for (const attempt of sent?.attempts ?? []) {
    const ended = attempt === finalAttempt ? outcome : attempt.outcome
    const used = usageOfAttempt(attempt, ended, billed)
    if (used !== NOTHING_USED) total = total === NOTHING_USED ? used : sum(total, used)
  }
  return total
}

function sum(one: Used, other: Used): Used {
  const isReported = one.source === 'reported' && other.source === 'reported'
  return {
    usage: addUsage(one.usage, other.usage),
    source: isReported ? 'reported' : 'estimated',
    costNanoUsd: sumOfKnown(one.costNanoUsd, other.costNanoUsd),
    budgetNanoUsd: sumOfKnown(one.budgetNanoUsd, other.budgetNanoUsd),
    tokensAfterDisconnect: one.tokensAfterDisconnect + other.tokensAfterDisconnect,
  }
}

function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

function usageOfNative({ wasSent, replyResult, status, candidate }: AttemptResult): Used {
  const usage = replyResult === null || isImplausible(replyResult.usage) ? {} : replyResult.usage
  const source = Object.keys(usage).length === 0 ? 'none' : 'reported'
  // A request that the upstream refused costs nothing.
  const isFree = !wasSent || (status ?? 0) >= 400
  const { nanoUsdPerRequest } = candidate.target.upstream.config.native
  const cost = isFree ? 0 : nanoUsdPerRequest
  return { ...NOTHING_USED, usage, source, costNanoUsd: cost, budgetNanoUsd: cost }
}
