/**
 * The scalar fields of Converse. No client uses the format, so nothing is checked.
 *
 * Source: botocore 1.44.5 `data/bedrock-runtime/2023-09-30/service-2.json`.
 */
import type { ScalarField } from '../wire/scalar-fields.js'

/** The alternative of every refusal. */
export const OR_OPENAI = ', or use a route to an OpenAI upstream.'
const ONE_REPLY = `Bedrock gives one reply per request. Send n requests${OR_OPENAI}`
const NO_LOGPROBS = `Bedrock reports no log probabilities. Leave it out${OR_OPENAI}`
const REPORTED = 'reported'
const check = null

/** Refusals first, then the fields that the format lacks, then those that it has. */
export const FIELDS: readonly ScalarField[] = [
  { wire: null, canonical: 'candidates', check, default: 1, loss: { refused: ONE_REPLY } },
  { wire: null, canonical: 'logprobs', check, default: false, loss: { refused: NO_LOGPROBS } },
  { wire: null, canonical: 'topLogprobs', check, default: 0, loss: { refused: NO_LOGPROBS } },
  { wire: null, canonical: 'frequencyPenalty', check, default: 0, loss: REPORTED },
  { wire: null, canonical: 'presencePenalty', check, default: 0, loss: REPORTED },
  { wire: null, canonical: 'seed', check, loss: REPORTED },
  { wire: null, canonical: 'verbosity', check, default: 'medium', loss: REPORTED },
  { wire: null, canonical: 'userId', check, loss: 'none' },
  { wire: 'inferenceConfig.maxTokens', canonical: 'maxOutputTokens', check, loss: REPORTED },
  { wire: 'inferenceConfig.temperature', canonical: 'temperature', check, loss: REPORTED },
  { wire: 'inferenceConfig.topP', canonical: 'topP', check, loss: REPORTED },
  { wire: 'additionalModelRequestFields', canonical: 'topK', check, loss: REPORTED },
  { wire: 'inferenceConfig.stopSequences', canonical: 'stop', check, loss: REPORTED },
  { wire: 'outputConfig.effort', canonical: 'reasoningEffort', check, loss: REPORTED },
  {
    wire: 'serviceTier.type',
    canonical: 'serviceTier',
    check,
    default: 'auto',
    loss: REPORTED,
  },
]

/** Lost only if the model may call tools. */
export const PARALLEL_CALLS: readonly ScalarField[] = [
  { wire: null, canonical: 'parallelToolCalls', check, default: true, loss: REPORTED },
]
