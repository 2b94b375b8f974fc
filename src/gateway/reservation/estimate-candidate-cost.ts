/** Estimates the maximum cost of a request with one candidate, at the price of the candidate's upstream. */
import type { ChatRequest } from '../../chat/request.js'
import type { Generation, Target } from '../generation/generation.js'
import type { Candidate } from '../phases/choose-route.js'
import { estimateCost, type CostEstimate } from './estimate-max-cost.js'

/** The estimate for the candidate's model, price and service tier. */
export function estimateCandidateCost(
  generation: Generation,
  request: ChatRequest,
  { target, model }: Candidate,
): CostEstimate {
  const usual = generation.prices.find(target.upstream.config.name, model, null)
  const budgetPrice = generation.budgetPrices.of(usual, requestedTier(request, target))
  return estimateCost(request, generation.facts(model), budgetPrice)
}

/** The service tier that the upstream is requested to use; null if none. */
function requestedTier(request: ChatRequest, { dialect, upstream }: Target): string | null {
  const isDropped = upstream.config.quirks.drop.includes('service_tier')
  // Requests to Anthropic do not use the values of this field.
  return dialect === 'anthropic' || isDropped ? null : (request.serviceTier ?? null)
}
