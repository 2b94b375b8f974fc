/**
 * Estimates the maximum that a request may use, before it is sent: prompt tokens, output tokens and cost.
 * Pure; counts bytes, not tokens.
 */
import { objectOf } from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import type { ChatRequest } from '../../chat/request.js'
import { promptSizeOf, inputTokens, maxInputTokens } from '../../ledger/estimate-tokens.js'
import { isOutputFree, maxCostNanoUsd, type Price } from '../../ledger/price.js'
import type { Call } from '../phases/receive.js'
import type { BudgetPrice } from './budget-price.js'

/** The bounds of one request. */
export interface CostEstimate {
  /** Prompt tokens: more than the vendor will count. */
  readonly input: number
  /** About as many as it will count. */
  readonly likelyInput: number
  /** Of all answers: what the client allows, else what the model can; null where neither is known. */
  readonly output: number | null
  /** The client names no maximum. */
  readonly isOpen: boolean
  /** Requested number of choices. */
  readonly answers: number
  /** What a budget counts with; null: it has no price for the request. */
  readonly price: Price | null
  /** The price is that of the model, not `limiting.assumed_price`. */
  readonly isPriced: boolean
  /** Null: the price, or the length of a reply that is not free, is not known. */
  readonly nanoUsd: number | null
}

/** OpenAI's Responses take no fewer. */
const LEAST_OUTPUT_TOKENS = 16

/** Estimates a request; `facts` and `budgetPrice` are those of the model that is requested from the upstream. */
export function estimateCost(
  request: ChatRequest,
  facts: ModelFacts,
  budgetPrice: BudgetPrice,
): CostEstimate {
  const { price, isPriced, unknownLength } = budgetPrice
  const bulk = promptSizeOf(request)
  const { family, contextWindow = Number.POSITIVE_INFINITY } = facts
  const input = Math.min(maxInputTokens(bulk, family), contextWindow)
  const answers = Math.max(1, request.candidates ?? 1)
  const each = mostOutput(request) ?? facts.maxOutputTokens
  const output = each === undefined ? null : each * answers
  return {
    input,
    likelyInput: Math.min(inputTokens(bulk, family), input),
    output,
    isOpen: request.maxOutputTokens === undefined,
    answers,
    price,
    isPriced,
    nanoUsd: maxNanoUsd(
      price,
      input,
      output ?? (unknownLength === null ? null : unknownLength * answers),
    ),
  }
}

function maxNanoUsd(price: Price | null, input: number, output: number | null): number | null {
  if (price === null) return null
  if (output === null)
    return isOutputFree(price) ? maxCostNanoUsd(price, { input, output: 0 }) : null
  return maxCostNanoUsd(price, { input, output })
}

/**
 * The client's limit for one answer, as an upstream may count it: OpenAI's Responses raise a smaller one to
 * 16, and some upstreams count a budget for thinking besides it (Alibaba Model Studio, "Deep thinking").
 */
function mostOutput({ maxOutputTokens, rest, embedding }: ChatRequest): number | undefined {
  if (embedding !== undefined) return 0
  if (maxOutputTokens === undefined) return undefined
  return Math.max(maxOutputTokens, LEAST_OUTPUT_TOKENS) + thinkingTokens(rest)
}

/** The largest budget for thinking that the request names in the words of any vendor; 0 if none. */
function thinkingTokens(rest: ChatRequest['rest']): number {
  const extra = objectOf(rest['extra_body'])
  const google = [rest['extra_content'], extra].map(
    (each) => objectOf(objectOf(each)['google'])['thinking_config'],
  )
  const budgets = [rest, extra, ...google.map(objectOf)].flatMap((each) => [
    objectOf(each['thinking'])['budget_tokens'],
    objectOf(each['reasoning'])['max_tokens'],
    each['thinking_budget'],
    each['thinkingBudget'],
  ])
  return budgets.reduce<number>(
    (most, each) =>
      typeof each === 'number' && Number.isFinite(each) ? Math.max(most, each) : most,
    0,
  )
}

/** The longest answer that so much money can pay; null where that is none worth asking for. */
export function outputFor(estimate: CostEstimate, leftNanoUsd: number): number | null {
  const { price, input, answers } = estimate
  if (price === null) return null
  const base = maxCostNanoUsd(price, { input, output: 0 })
  const million = maxCostNanoUsd(price, { input, output: 1_000_000 })
  if (base === null || million === null || base > leftNanoUsd) return null
  const perToken = (million - base) / 1_000_000
  // One less, so that no rounding makes it dearer than what is left.
  const affordable = perToken <= 0 ? 0 : Math.floor((leftNanoUsd - base) / perToken) - 1
  const each = Math.floor(affordable / answers)
  return each < LEAST_OUTPUT_TOKENS ? null : each * answers
}

/** The same request with a shorter answer. */
export function shortened(estimate: CostEstimate, output: number): CostEstimate {
  const { price, input } = estimate
  const nanoUsd = price === null ? null : maxCostNanoUsd(price, { input, output })
  return { ...estimate, output, nanoUsd }
}

/** The call with a maximum of its own for the answer. */
export function withOutput(call: Call, output: number, { answers }: CostEstimate): Call {
  const each = Math.floor(output / answers)
  return {
    ...call,
    request: { ...call.request, maxOutputTokens: each },
    added: ({ family }) => {
      const key = family === 'openai' ? 'max_completion_tokens' : 'max_tokens'
      return call.ingress.outputEdit?.(call.body, each) ?? { key, json: String(each) }
    },
  }
}
