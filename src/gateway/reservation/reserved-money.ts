/** What a budget reserves for a request, or why it cannot. */
import type { LimitingConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { Reckoning } from './bounds.js'

/** In nano-dollars. Throws `GatewayError` if `limiting` refuses what is not known of the model. */
export function mostMoney(
  { nanoUsd, price }: Reckoning,
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
