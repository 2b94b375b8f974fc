/** The most that a request may use with one candidate: its bounds at the price of the candidate's upstream. */
import type { ChatRequest } from '../../chat/request.js'
import type { Generation, Target } from '../generation/generation.js'
import type { Candidate } from '../phases/choose.js'
import { estimateCost, type CostEstimate } from './estimate-cost.js'

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

/** The vendor's tier that the upstream will be asked for; null where it is asked for none. */
function tierAsked(request: ChatRequest, { dialect, upstream }: Target): string | null {
  const isDropped = upstream.config.quirks.drop.includes('service_tier')
  // Anthropic's has none that could be asked for.
  return dialect === 'anthropic' || isDropped ? null : (request.serviceTier ?? null)
}
