/**
 * Calculates the usage and cost of one attempt from the reported counts, or estimates them if the provider
 * bills the attempt without counts.
 */
import type { ChatRequest } from '../../chat/request.js'
import { NO_OUTPUT } from '../../chat/reply/output-size.js'
import { isImplausible, type Usage } from '../../chat/usage.js'
import { promptSizeOf, inputTokens, outputTokens } from '../../ledger/estimate-tokens.js'
import { costNanoUsd, tierPrice } from '../../ledger/price.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../client-exchange.js'

/** Tokens and their cost, in nano-dollars. */
export interface Used {
  readonly usage: Usage
  readonly source: UsageSource
  /** Null if a price is not known. */
  readonly costNanoUsd: number | null
  /** The amount that budgets are charged: the cost, or an assumed one; null: the reserved amount. */
  readonly budgetNanoUsd: number | null
  /** Output tokens that the upstream generated after the client had left. */
  readonly tokensAfterDisconnect: number
}

/** The usage of an attempt that the provider does not bill. */
export const NOTHING_USED: Used = {
  usage: {},
  source: 'none',
  costNanoUsd: 0,
  budgetNanoUsd: 0,
  tokensAfterDisconnect: 0,
}

/** The request of an attempt. */
export interface BilledRequest {
  readonly x: RequestContext
  readonly request: ChatRequest
}

/** The usage of one attempt that ended with `outcome`; `NOTHING_USED` if the provider does not bill it. */
export function usageOfAttempt(
  attempt: AttemptResult,
  outcome: AttemptResult['outcome'],
  { x, request }: BilledRequest,
): Used {
  const { replyResult, candidate } = attempt
  if (!attempt.wasSent && replyResult === null) return NOTHING_USED
  const { outputSize } = replyResult ?? { outputSize: NO_OUTPUT }
  const hasWords = outputSize.bytes + outputSize.calls > 0
  const isComplete = replyResult?.outcome === 'complete'
  const isFinished = isComplete || (replyResult?.reason ?? null) !== null
  if (!isFinished && !hasWords && !wasCancelledByGateway(x, attempt, outcome)) return NOTHING_USED
  const reported = plausibleCounts(replyResult?.usage ?? {})
  const { input, output = hasWords ? undefined : reported.output } = reported
  if (request.embedding !== undefined && input !== undefined) {
    const counts = { ...reported, output: 0 }
    return used(attempt, { usage: counts, source: isComplete ? 'reported' : 'estimated' }, x)
  }
  const isFinal = isFinished || attempt.countsAreFinal
  if (isFinal && input !== undefined && output !== undefined) {
    return used(attempt, { usage: reported, source: 'reported' }, x)
  }
  const { family } = x.generation.facts(candidate.model)
  const counted = Math.max(reported.output ?? 0, outputTokens(outputSize, family))
  const prompt = input ?? inputTokens(promptSizeOf(request), family)
  const usage = { ...reported, input: prompt, output: counted }
  return used(attempt, { usage, source: 'estimated' }, x)
}

function used(
  { candidate, replyResult, outputWhenLeft }: AttemptResult,
  { usage, source }: Pick<Used, 'usage' | 'source'>,
  { generation }: RequestContext,
): Used {
  const { name } = candidate.target.upstream.config
  const price = generation.prices.find(name, candidate.model, replyResult?.model ?? null)
  const tier = replyResult?.tier ?? null
  const served = price === null ? null : tierPrice(price, tier)
  const cost = served === null ? null : costNanoUsd(served, usage)
  const after = outputWhenLeft === null ? 0 : Math.max(0, (usage.output ?? 0) - outputWhenLeft)
  return {
    usage,
    source,
    costNanoUsd: cost,
    budgetNanoUsd: cost ?? generation.budgetPrices.charge(price, tier, usage),
    tokensAfterDisconnect: after,
  }
}

/**
 * Whether the gateway cancelled the attempt: the upstream then bills the prompt that it has read. An upstream
 * that reported a failure, or whose connection was lost, bills nothing.
 */
function wasCancelledByGateway(
  x: RequestContext,
  { status, wasSent }: AttemptResult,
  outcome: AttemptResult['outcome'],
): boolean {
  if (!wasSent || (status !== null && status !== 200)) return false
  if (x.cancellation.reason !== null && x.cancellation.reason.kind === outcome) return true
  return outcome === 'upstream_timeout' || outcome === 'client_stalled' || outcome === 'cancelled'
}

/**
 * The plausible counts: without zeros, because prompts and replies have tokens, and without impossibly large
 * numbers.
 */
function plausibleCounts(usage: Usage): Usage {
  const { input, output } = usage
  if (isImplausible(usage)) return {}
  if (input !== 0 && output !== 0) return usage
  const plausible = { ...usage }
  if (input === 0) delete plausible.input
  if (output === 0) delete plausible.output
  return plausible
}
