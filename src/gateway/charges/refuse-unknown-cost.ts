/**
 * Refuses requests under a budget whose cost has no upper bound: an unknown price, longest reply or input.
 * `limiting.unknown_price` and `limiting.unseen_input` decide what is refused.
 */
import type { LimitingConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import type { MediaKind } from '../../ledger/price.js'
import type { CostEstimate } from './estimate-max-cost.js'

/** What decides about unknown cost. */
interface UnknownRules extends Pick<LimitingConfig, 'unknownPrice' | 'unseenInput'> {
  /** The client's field with the maximum of output tokens; absent: the canonical one. */
  readonly outputField?: string
}

/** Errors have it under the name of the client's format. */
const OUTPUT_FIELD = 'max_completion_tokens'

/**
 * The maximum cost in nano-dollars. Throws `GatewayError` if the price, the length or the input is unknown
 * and `limiting` refuses such requests.
 */
export function maxNanoUsd(
  estimate: CostEstimate,
  model: string,
  { unknownPrice, unseenInput, outputField }: UnknownRules,
): number {
  const { nanoUsd, price, unseen, unknownCall, unknownKind, isUnbounded } = estimate
  if (unseen !== null && unseenInput === 'refuse') throw unseenRefusal(unseen)
  if (unknownCall !== null && unknownPrice === 'refuse') throw unknownCallRefusal(unknownCall, model)
  if (unknownKind !== null && unknownPrice !== 'allow') throw unknownKindRefusal(unknownKind, model)
  if (nanoUsd !== null) return nanoUsd
  if (price !== null) {
    if (isUnbounded) throw unknownWindowRefusal(unseen ?? '', model)
    throw unknownLengthRefusal(model, outputField)
  }
  if (unknownPrice === 'allow') return 0
  throw new GatewayError(
    'forbidden',
    `A budget applies and the price of '${model}', or of the service_tier in the request, is not known: set a price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`,
    { param: 'model' },
  )
}

/**
 * The maximum of prompt and reply tokens. Throws `GatewayError` if the length or the input is unknown and
 * `limiting` refuses such requests.
 */
export function maxTokens(
  { input, longestOutput, unseen, isUnbounded }: CostEstimate,
  model: string,
  { unseenInput, outputField }: Omit<UnknownRules, 'unknownPrice'>,
): number {
  if (unseen !== null && unseenInput === 'refuse') throw unseenRefusal(unseen)
  if (isUnbounded) throw unknownWindowRefusal(unseen ?? '', model)
  if (longestOutput === null) throw unknownLengthRefusal(model, outputField)
  return input + longestOutput
}

function unknownLengthRefusal(model: string, field = OUTPUT_FIELD): GatewayError {
  const message = `A budget applies and the longest reply of '${model}' is not known: set ${field} in the request, or max_output_tokens of the model or limiting.unknown_length in the configuration.`
  return new GatewayError('malformed_request', message, { param: OUTPUT_FIELD })
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

/** The keys of a price. */
const KIND_NAMES: Readonly<Record<MediaKind, string>> = {
  inputAudio: 'input_audio',
  inputImage: 'input_image',
  inputVideo: 'input_video',
  outputAudio: 'output_audio',
  outputImage: 'output_image',
}

function unknownKindRefusal(kind: MediaKind, model: string): GatewayError {
  const name = KIND_NAMES[kind]
  const message = `A budget applies and the price of ${name} tokens of '${model}' is not known: set ${name} under upstreams.NAME.prices or in the catalogue, or set limiting.unknown_price to allow.`
  return new GatewayError('unknown_price', message, { param: 'model' })
}
