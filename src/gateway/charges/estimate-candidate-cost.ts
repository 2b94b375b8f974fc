/** Estimates the maximum cost of a request with one candidate, at the price of the candidate's upstream. */
import type { HostedTool } from '../../formats/chat/hosted-tools.js'
import { withDefaults } from '../../formats/chat/request.js'
import { billedRequest, pricedTask } from '../../formats/billed-request.js'
import { batchPrice, priceFor, tierInBatch } from '../../ledger/price.js'
import type { Generation } from '../generation.js'
import type { Candidate } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import { estimateCost, type CostEstimate, type OtherModels } from './estimate-max-cost.js'
import { ALL_SEEN, hostedAt, unknownUseOf, type TargetFormat } from './unknown-use.js'

/** The model and service tier that a reply names; null if it does not name them. */
type ServedBy = Pick<ReplyResult, 'model' | 'tier'>

const NOT_SERVED: ServedBy = { model: null, tier: null }

/** The settings of an estimate. */
interface EstimateOptions {
  /** Use which the request does not show is estimated too. */
  readonly withUnknown: boolean
  /** What the reply names; its price and tier replace those of the request. */
  readonly served?: ServedBy
  /** A vendor runs the request in a batch. */
  readonly isInBatch?: boolean
}

/** The estimate for the candidate's model, price and service tier. */
export function estimateCandidateCost(
  generation: Generation,
  call: Pick<Call, 'wire' | 'request'>,
  { target, model, defaults }: Pick<Candidate, 'target' | 'model' | 'defaults'>,
  { withUnknown, served = NOT_SERVED, isInBatch = false }: EstimateOptions,
): CostEstimate {
  const request = billedRequest(withDefaults(call.request, defaults), target.wire)
  const { prices } = generation.pricesAt(performance.now())
  const ofModel = prices.find(target.upstream.config.name, model, served.model)
  const listed = priceFor(ofModel, pricedTask(request, target.wire))
  const usual = listed !== null && isInBatch ? batchPrice(listed) : listed
  const named = served.tier ?? requestedTier({ wire: call.wire, request }, target)
  const tier = isInBatch ? tierInBatch(named) : named
  const budgetPrice = generation.budgetPrices.of(usual, tier)
  const { config } = target.upstream
  const facts = generation.factsAt(config, model)
  const { limiting } = generation.snapshot.config
  const unknownUse = withUnknown
    ? unknownUseOf({ wire: call.wire, request }, target, { facts, toolTokens: limiting.unseenInputTokens })
    : ALL_SEEN
  const others: OtherModels = {
    factsOf: (other) => generation.factsAt(config, other),
    priceOf: (other) => generation.budgetPrices.of(prices.find(config.name, other, null), tier),
  }
  return estimateCost(request, facts, budgetPrice, { use: unknownUse, others })
}

/** The service tier, and other options with a price, that the upstream is requested to use; null if none. */
export function requestedTier(call: Pick<Call, 'wire' | 'request'>, target: TargetFormat): string | null {
  if (target.dialect === 'anthropic') return optionsOf(hostedAt(call, target))
  const isDropped = target.quirks.drop.includes('service_tier')
  return isDropped ? null : (call.request.serviceTier ?? null)
}

/** Anthropic's options with a price, as its replies name them. */
function optionsOf(hosted: readonly HostedTool[]): string | null {
  const names = hosted.flatMap(({ name }) => {
    if (name === 'speed') return ['fast']
    return name === 'inference_geo' ? [name] : []
  })
  return names.length === 0 ? null : names.sort().join('+')
}
