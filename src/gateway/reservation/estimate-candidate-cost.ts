/** The maximum cost of a request with one candidate, at the price of the candidate's upstream. */
import type { ChatRequest } from '../../chat/request.js'
import type { Generation, Target } from '../generation/generation.js'
import type { Candidate } from '../phases/choose.js'
import { estimateCost, type CostEstimate } from './estimate-max-cost.js'

/** Tokens and money. */
export function estimateCandidateCost(
  generation: Generation,
  request: ChatRequest,
  { target, model }: Candidate,
): CostEstimate {
  const usual = generation.prices.find(target.upstream.config.name, model, null)
  const budgetPrice = generation.budgetPrices.of(usual, tierAsked(request, target))
  return estimateCost(request, generation.facts(model), budgetPrice)
}

/** The vendor's service tier that will be requested; null if none is. */
function tierAsked(request: ChatRequest, { dialect, upstream }: Target): string | null {
  const isDropped = upstream.config.quirks.drop.includes('service_tier')
  // Anthropic has no tier that a request can name in this field.
  return dialect === 'anthropic' || isDropped ? null : (request.serviceTier ?? null)
}
