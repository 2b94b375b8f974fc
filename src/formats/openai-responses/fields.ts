/**
 * The scalar fields of Responses.
 *
 * Source: OpenAI API reference, "Create a model response", read 2026-11-20.
 */
import { EFFORTS } from '../chat/request.js'
import {
  FLAG,
  integerIn,
  numberIn,
  textUpTo,
  wordOf,
  type FieldCheck,
  type ScalarField,
} from '../wire/scalar-fields.js'
import { SERVICE_TIERS } from './constants.js'

const THROUGH_RESPONSES = "the upstream serves this model through OpenAI's Responses API"
/** The refusal of audio output, which only chat completions has. */
export const NO_AUDIO = `${THROUGH_RESPONSES}, which has no audio. Choose an audio model.`
const NO_STOP = `${THROUGH_RESPONSES}, which has no stop sequences. Leave it out.`
const ONE_CHOICE = `${THROUGH_RESPONSES}, which returns one choice. Send n requests.`
const COUNT = integerIn(0, 20)
/** 0 is the same as none. */
const TOP_LOGPROBS: FieldCheck<number> = {
  rule: COUNT.rule,
  read: (value, path) => COUNT.read(value, path) || undefined,
}
const REPORTED = 'reported'

/** A member of `reasoning`. */
export const EFFORT = {
  wire: 'reasoning.effort',
  canonical: 'reasoningEffort',
  check: wordOf(EFFORTS),
  loss: REPORTED,
} as const satisfies ScalarField

/** A member of `text`. */
export const VERBOSITY = {
  wire: 'text.verbosity',
  canonical: 'verbosity',
  check: wordOf(['low', 'medium', 'high']),
  default: 'medium',
  loss: REPORTED,
} as const satisfies ScalarField

/** In the order in which encoders write them. */
export const FIELDS: readonly ScalarField[] = [
  { wire: null, canonical: 'stop', check: null, loss: { refused: NO_STOP } },
  { wire: null, canonical: 'candidates', check: null, default: 1, loss: { refused: ONE_CHOICE } },
  {
    wire: 'temperature',
    canonical: 'temperature',
    check: numberIn(0, 2),
    default: 1,
    loss: REPORTED,
  },
  { wire: 'top_p', canonical: 'topP', check: numberIn(0, 1), default: 1, loss: REPORTED },
  { wire: null, canonical: 'topK', check: null, loss: REPORTED },
  // One of the values of `include`.
  { wire: 'include', canonical: 'logprobs', check: null, default: false, loss: REPORTED },
  {
    wire: 'top_logprobs',
    canonical: 'topLogprobs',
    check: TOP_LOGPROBS,
    default: 0,
    loss: REPORTED,
  },
  { wire: null, canonical: 'frequencyPenalty', check: null, default: 0, loss: REPORTED },
  { wire: null, canonical: 'presencePenalty', check: null, default: 0, loss: REPORTED },
  { wire: null, canonical: 'seed', check: null, loss: REPORTED },
  {
    wire: 'max_output_tokens',
    canonical: 'maxOutputTokens',
    check: integerIn(1),
    loss: REPORTED,
  },
  EFFORT,
  VERBOSITY,
  {
    wire: 'user',
    canonical: 'userId',
    check: textUpTo(),
    loss: REPORTED,
    yields: true,
    readOnly: true,
  },
  { wire: 'safety_identifier', canonical: 'userId', check: textUpTo(128), loss: REPORTED },
  {
    wire: 'service_tier',
    canonical: 'serviceTier',
    check: wordOf(SERVICE_TIERS),
    default: 'auto',
    loss: REPORTED,
  },
  {
    wire: 'parallel_tool_calls',
    canonical: 'parallelToolCalls',
    check: FLAG,
    default: true,
    loss: REPORTED,
  },
]
