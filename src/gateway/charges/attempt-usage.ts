/**
 * Calculates the usage and cost of one attempt. An attempt that was sent and whose upstream reported no final
 * counts is charged with what it may have cost, because the provider bills what the model has generated,
 * hidden reasoning included.
 */
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import { addUsage, isImplausible, type Usage } from '../../formats/chat/usage.js'
import type { ErrorKind } from '../../errors.js'
import type { Task } from '../../formats/chat/task.js'
import { billedRequest, pricedTask } from '../../formats/billed-request.js'
import { promptSizeOf, inputTokens, maxInputTokens, outputTokens } from '../../ledger/estimate-tokens.js'
import {
  batchPrice,
  costNanoUsd,
  higherPrice,
  priceFor,
  tierInBatch,
  tierPrice,
  type PriceOfOther,
} from '../../ledger/price.js'
import { completedUsage } from '../../ledger/task-units.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { PricesInForce } from '../../ledger/price-schedule.js'
import { hasFinalCounts, type AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../request-context.js'
import type { Call } from '../phases/call.js'
import { estimateCandidateCost } from './estimate-candidate-cost.js'
import { maxUsage, type CostEstimate } from './estimate-max-cost.js'

/** Tokens and their cost, in nano-dollars. */
export interface Used {
  readonly usage: Usage
  readonly source: UsageSource
  /** Null if a price is not known. */
  readonly costNanoUsd: number | null
  /** The amount that budgets are charged: the cost, or an assumed one; null: the reserved amount. */
  readonly budgetNanoUsd: number | null
  /** The tokens that limits of a minute count: without those that are only assumed. */
  readonly rateTokens: number
  /** Output tokens that the upstream generated after the client had left. */
  readonly tokensAfterDisconnect: number
}

/** The usage of an attempt that the provider does not bill. */
export const NOTHING_USED: Used = {
  usage: {},
  source: 'none',
  costNanoUsd: 0,
  budgetNanoUsd: 0,
  rateTokens: 0,
  tokensAfterDisconnect: 0,
}

interface BilledRequest {
  readonly x: RequestContext
  readonly call: Pick<Call, 'wire' | 'request'>
}

/** Kinds of errors with which an upstream answers a request inside a reply of status 200. */
const ANSWERED_ERRORS: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  'upstream_rejected',
  'context_too_long',
  'upstream_denied',
  'upstream_misconfigured',
  'upstream_busy',
  'upstream_failed',
])

/** The usage of one attempt that has ended; `NOTHING_USED` if the provider does not bill it. */
export function usageOfAttempt(attempt: AttemptResult, billed: BilledRequest): Used {
  if (attempt.isContinued) return NOTHING_USED
  if (isFree(attempt)) return usageBefore(attempt, billed)
  const { replyResult, candidate } = attempt
  const counts = plausibleCounts(replyResult?.usage ?? {})
  const { input, output, total = 0 } = counts
  const reported = total === 0 ? counts : withoutTotal(counts)
  const isComplete = replyResult?.outcome === 'complete' && replyResult.wasCut !== true
  const { wire } = candidate.target
  const { task } = pricedTask(billed.call.request, wire)
  if (isComplete && task !== undefined) return usedByTask(attempt, { reported, task }, billed)
  if (isComplete && billed.call.request.embedding !== undefined && input !== undefined) {
    return used(attempt, { usage: { ...reported, output: 0 }, source: 'reported' }, billed)
  }
  if (hasFinalCounts(attempt) && input !== undefined && output !== undefined) {
    return used(attempt, { usage: reported, source: 'reported' }, billed)
  }
  // Of a reply that a guardrail refused, only what was received counts.
  const isBlocked = replyResult?.blocked !== undefined
  if (replyResult === null || (!isComplete && !isBlocked)) return assumed(attempt, reported, billed)
  const { family } = billed.x.generation.facts(candidate.model)
  const prompt = input ?? inputTokens(promptSizeOf(billedRequest(billed.call.request, wire)), family)
  // What the total has beside the prompt, which may be reasoning that was not sent, is output.
  const counted = Math.max(output ?? 0, outputTokens(replyResult.outputSize, family), total - prompt)
  const usage = { ...reported, input: prompt, output: counted }
  return used(attempt, { usage, source: 'estimated' }, billed)
}

/** The usage of a task: what the upstream counts, and what its price needs besides. */
function usedByTask(
  attempt: AttemptResult,
  { reported, task }: { readonly reported: Usage; readonly task: Task },
  billed: BilledRequest,
): Used {
  const { x, call } = billed
  const { generation, startedMs } = x
  const { candidate, replyResult } = attempt
  const { name } = candidate.target.upstream.config
  const { prices } = generation.pricesAt(startedMs)
  const price = priceFor(prices.find(name, candidate.model, replyResult?.model ?? null), { task })
  const { family } = generation.facts(candidate.model)
  const completed = completedUsage({
    reported,
    task,
    price,
    inputTokens: () => maxInputTokens(promptSizeOf(call.request), family),
  })
  if (completed === null) return assumed(attempt, reported, billed)
  const { usage, isEstimated } = completed
  return used(attempt, { usage, source: isEstimated ? 'estimated' : 'reported' }, billed)
}

/**
 * Whether the provider bills nothing: it did not get the whole request, or answered with an error. A lost
 * connection is no answer.
 */
function isFree(attempt: AttemptResult): boolean {
  const { wasSent, wasFullySent, status, outcome, contentAtMs, replyResult } = attempt
  if (!wasSent || (status !== null && status !== 200)) return true
  if (status === null) return outcome !== null && !wasFullySent
  if (replyResult?.outcome !== 'failed' || contentAtMs !== null) return false
  const { outputSize, error } = replyResult
  // A reply without content that has a finish reason is billed.
  if (outputSize.bytes + outputSize.calls > 0 || replyResult.reason !== null) return false
  return error !== null && ANSWERED_ERRORS.has(error.kind)
}

/** The usage of the earlier parts of a reply, whose continuation the provider does not bill. */
function usageBefore(attempt: AttemptResult, billed: BilledRequest): Used {
  const usage = plausibleCounts(attempt.earlierUsage)
  if (usage.input === undefined && usage.output === undefined) return NOTHING_USED
  return used(attempt, { usage, source: 'reported' }, billed)
}

function used(
  attempt: AttemptResult,
  { usage, source }: Pick<Used, 'usage' | 'source'>,
  { x: { generation, startedMs, isInBatch }, call }: BilledRequest,
): Used {
  const { candidate, replyResult } = attempt
  const { name } = candidate.target.upstream.config
  const { prices } = generation.pricesAt(startedMs)
  const ofModel = prices.find(name, candidate.model, replyResult?.model ?? null)
  const usual = priceFor(ofModel, pricedTask(call.request, candidate.target.wire))
  const price = usual !== null && isInBatch ? batchPrice(usual) : usual
  const reported = replyResult?.tier ?? null
  const tier = isInBatch ? tierInBatch(reported) : reported
  const served = price === null ? null : tierPrice(price, tier)
  const priceOfOther = pricesOfOthers(prices, name, tier)
  const cost = served === null ? null : costNanoUsd(served, usage, priceOfOther)
  return {
    usage,
    source,
    costNanoUsd: cost,
    budgetNanoUsd: cost ?? generation.budgetPrices.charge(price, { tier, usage, priceOfOther }),
    rateTokens: (usage.input ?? 0) + (usage.output ?? 0),
    tokensAfterDisconnect: tokensAfterDisconnect(attempt, usage.output ?? 0),
  }
}

/** The prices of other models of the upstream, whose options are those of the reply. */
function pricesOfOthers(
  prices: PricesInForce['prices'],
  upstream: string,
  tier: string | null,
): PriceOfOther {
  return (model) => {
    const price = prices.find(upstream, model, null)
    return price === null ? null : higherPrice(price, tier)
  }
}

/**
 * The maximum that the attempt may have used: the prompt as reported, else its upper bound, and the longest
 * output that the model may generate.
 */
function assumed(attempt: AttemptResult, reported: Usage, { x, call }: BilledRequest): Used {
  const { candidate, replyResult, earlierUsage } = attempt
  const { generation } = x
  const served = replyResult ?? undefined
  const { isInBatch } = x
  const base = { withUnknown: true, isInBatch }
  const options = served === undefined ? base : { ...base, served }
  const estimate = estimateCandidateCost(generation, attempt.call ?? call, candidate, options)
  const { family } = generation.facts(candidate.model)
  const measured = outputTokens(replyResult?.outputSize ?? NO_OUTPUT, family)
  const received = Math.max(reported.output ?? 0, measured)
  const usage = mostUsage(estimate, { reported, received, earlier: earlierUsage })
  const { price, isPriced, nanoUsd, callsNanoUsd, modelsNanoUsd } = estimate
  const isBounded = price !== null && nanoUsd !== null
  const { prices } = generation.pricesAt(x.startedMs)
  const others = pricesOfOthers(prices, candidate.target.upstream.config.name, replyResult?.tier ?? null)
  const own = isBounded ? costNanoUsd(price, usage, others) : null
  const cost = own === null ? null : own + modelsNanoUsd
  // The price of a call may be unknown.
  const tokens = isBounded ? costNanoUsd(price, { ...usage, calls: {} }) : null
  return {
    usage,
    source: 'assumed',
    costNanoUsd: isPriced ? cost : null,
    budgetNanoUsd: cost ?? (tokens === null ? null : tokens + callsNanoUsd),
    rateTokens: (reported.input ?? estimate.likelyInput) + received,
    tokensAfterDisconnect: tokensAfterDisconnect(attempt, received),
  }
}

/** The counts of an attempt so far: of all parts of its reply, and of the earlier ones among them. */
interface CountsSoFar {
  readonly reported: Usage
  /** Output tokens that were reported, or measured in the content. */
  readonly received: number
  readonly earlier: Usage
}

function mostUsage(estimate: CostEstimate, { reported, received, earlier }: CountsSoFar): Usage {
  const { input, output, longestOutput, unseen, added, units } = estimate
  const { input: earlierInput = 0, output: earlierOutput = 0 } = earlier
  const own = Math.max(0, received - earlierOutput)
  // Without a known maximum, a model may generate more than the assumed length.
  const longest = output === null ? own + (longestOutput ?? 0) : Math.max(output, own)
  // A continuation sends the earlier parts of the reply, too.
  const ofAttempt = { ...estimate, input: input + earlierOutput, longestOutput: longest }
  const most = addUsage(earlier, maxUsage(ofAttempt))
  // Tools of the provider add input while the model runs. Tasks cost what was reserved.
  if (units !== undefined || (reported.input ?? 0) <= earlierInput || unseen !== null || added > 0)
    return most
  const { output: mostOutput, reasoning, calls } = most
  return {
    ...reported,
    ...(mostOutput === undefined ? {} : { output: mostOutput }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(calls === undefined ? {} : { calls }),
  }
}

function tokensAfterDisconnect({ outputWhenLeft }: AttemptResult, output: number): number {
  return outputWhenLeft === null ? 0 : Math.max(0, output - outputWhenLeft)
}

function withoutTotal(usage: Usage): Usage {
  const { ...counts } = usage
  delete counts.total
  return counts
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
