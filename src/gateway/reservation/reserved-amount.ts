/** What limits reserve for one attempt: tokens and money, or why that is not known. */
import type { LimitingConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { CostEstimate } from './estimate-max-cost.js'

/** Tokens and money. */
export interface Amount {
  readonly tokens: number
  readonly nanoUsd: number
}

/** Of a request that uses nothing. */
export const NOTHING: Amount = { tokens: 0, nanoUsd: 0 }

/** The maximum that one attempt may use; 0 for resources without a limit. Throws as `maxNanoUsd`. */
export function amountOf(
  estimate: CostEstimate,
  model: string,
  needs: { readonly tokens: boolean; readonly money: boolean },
  { assumedOutputTokens, unknownPrice }: LimitingConfig,
): Amount {
  return {
    tokens: needs.tokens ? likelyTokens(estimate, assumedOutputTokens) : 0,
    nanoUsd: needs.money ? maxNanoUsd(estimate, model, unknownPrice) : 0,
  }
}

/** Both together. */
export function sum(one: Amount, other: Amount): Amount {
  return { tokens: one.tokens + other.tokens, nanoUsd: one.nanoUsd + other.nanoUsd }
}

/** The larger of each. */
export function larger(one: Amount, other: Amount): Amount {
  return {
    tokens: Math.max(one.tokens, other.tokens),
    nanoUsd: Math.max(one.nanoUsd, other.nanoUsd),
  }
}

/** Whether neither is more than in `other`. */
export function isWithin(one: Amount, other: Amount): boolean {
  return one.tokens <= other.tokens && one.nanoUsd <= other.nanoUsd
}

/** An estimate of the prompt, and the longest answer that the client allows. */
function likelyTokens({ likelyInput, output, isOpen }: CostEstimate, assumed: number): number {
  return likelyInput + (isOpen ? Math.min(assumed, output ?? assumed) : (output ?? assumed))
}

/** In nano-dollars. Throws `GatewayError` if `limiting` refuses what is not known of the model. */
export function maxNanoUsd(
  { nanoUsd, price }: CostEstimate,
  model: string,
  policy: LimitingConfig['unknownPrice'],
): number {
  if (nanoUsd !== null) return nanoUsd
  if (price !== null) {
    throw new GatewayError(
      'malformed_request',
      `A budget applies and the longest reply of '${model}' is not known: set max_completion_tokens in the request, or max_output_tokens of the model or limiting.unknown_length in the configuration.`,
      { param: 'max_completion_tokens' },
    )
  }
  if (policy === 'allow') return 0
  throw new GatewayError(
    'forbidden',
    `A budget applies and the price of '${model}', or of the service_tier in the request, is not known: set a price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`,
    { param: 'model' },
  )
}
