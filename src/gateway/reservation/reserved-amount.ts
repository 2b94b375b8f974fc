/** Calculates the tokens and money that limits reserve for one attempt. */
import type { LimitingConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { CostEstimate } from './estimate-max-cost.js'

/** Tokens and money. */
export interface Amount {
  readonly tokens: number
  readonly nanoUsd: number
}

/** The amount of a request that uses nothing. */
export const NOTHING: Amount = { tokens: 0, nanoUsd: 0 }

/** The resources that limits restrict, and the settings for unknown lengths and prices. */
export interface AmountRules {
  readonly needs: { readonly tokens: boolean; readonly money: boolean }
  readonly limiting: LimitingConfig
}

/** The maximum that one attempt may use; 0 for resources without a limit. Throws as `maxNanoUsd`. */
export function amountOf(
  estimate: CostEstimate,
  model: string,
  { needs, limiting }: AmountRules,
): Amount {
  const { assumedOutputTokens } = limiting
  return {
    tokens: needs.tokens ? likelyTokens(estimate, assumedOutputTokens) : 0,
    nanoUsd: needs.money ? maxNanoUsd(estimate, model, limiting) : 0,
  }
}

/** The sum of both amounts. */
export function sum(one: Amount, other: Amount): Amount {
  return { tokens: one.tokens + other.tokens, nanoUsd: one.nanoUsd + other.nanoUsd }
}

/** The larger of each member. */
export function larger(one: Amount, other: Amount): Amount {
  return {
    tokens: Math.max(one.tokens, other.tokens),
    nanoUsd: Math.max(one.nanoUsd, other.nanoUsd),
  }
}

/** Whether no member exceeds that of `other`. */
export function isWithin(one: Amount, other: Amount): boolean {
  return one.tokens <= other.tokens && one.nanoUsd <= other.nanoUsd
}

/** The expected prompt tokens and the maximum output tokens. */
function likelyTokens({ likelyInput, output, isOpen }: CostEstimate, assumed: number): number {
  return likelyInput + (isOpen ? Math.min(assumed, output ?? assumed) : (output ?? assumed))
}

/**
 * The maximum cost in nano-dollars. Throws `GatewayError` if the price, the length or the input is unknown
 * and `limiting` refuses such requests.
 */
export function maxNanoUsd(
  estimate: CostEstimate,
  model: string,
  { unknownPrice, unseenInput }: Pick<LimitingConfig, 'unknownPrice' | 'unseenInput'>,
): number {
  const { nanoUsd, price, unseen, unknownCall, isUnbounded } = estimate
  if (unseen !== null && unseenInput === 'refuse') throw unseenRefusal(unseen)
  if (unknownCall !== null && unknownPrice === 'refuse')
    throw unknownCallRefusal(unknownCall, model)
  if (nanoUsd !== null) return nanoUsd
  if (price !== null) {
    if (isUnbounded) throw unknownWindowRefusal(unseen ?? '', model)
    throw new GatewayError(
      'malformed_request',
      `A budget applies and the longest reply of '${model}' is not known: set max_completion_tokens in the request, or max_output_tokens of the model or limiting.unknown_length in the configuration.`,
      { param: 'max_completion_tokens' },
    )
  }
  if (unknownPrice === 'allow') return 0
  throw new GatewayError(
    'forbidden',
    `A budget applies and the price of '${model}', or of the service_tier in the request, is not known: set a price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`,
    { param: 'model' },
  )
}

function unseenRefusal(param: string): GatewayError {
  const message = `A budget applies and the gateway cannot see the input that ${param} adds: send the content itself, or set limiting.unseen_input to reserve.`
  return new GatewayError('forbidden', message, { param })
}

function unknownWindowRefusal(param: string, model: string): GatewayError {
  const message = `A budget applies, the gateway cannot see the input that ${param} adds, and the context window of '${model}' is not known: send the content itself, or set context_window of the model in the configuration.`
  return new GatewayError('forbidden', message, { param })
}

function unknownCallRefusal(tool: string, model: string): GatewayError {
  const message = `A budget applies and the price of a call of '${tool}' by '${model}' is not known: set calls.${tool} of the price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`
  return new GatewayError('forbidden', message, { param: 'tools' })
}
