/** The most that a request may use with one candidate: its bounds at the price of the candidate's upstream. */
import type { ChatRequest } from '../../chat/request.js'
import type { Generation, Target } from '../generation/generation.js'
import type { Candidate } from '../phases/choose.js'
import { reckon, type Reckoning } from './estimate-cost.js'

/** Tokens and money. */
export function reckoningOf(
  generation: Generation,
  request: ChatRequest,
  { target, model }: Candidate,
): Reckoning {
  const usual = generation.prices.find(target.upstream.config.name, model, null)
  const tariff = generation.tariffs.of(usual, tierAsked(request, target))
  return reckon(request, generation.facts(model), tariff)
}

/** The vendor's tier that the upstream will be asked for; null where it is asked for none. */
function tierAsked(request: ChatRequest, { dialect, upstream }: Target): string | null {
  const isDropped = upstream.config.quirks.drop.includes('service_tier')
  // Anthropic's has none that could be asked for.
  return dialect === 'anthropic' || isDropped ? null : (request.serviceTier ?? null)
}
