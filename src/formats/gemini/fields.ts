/**
 * The scalar fields of generateContent. Numbers may be strings, by the rules of ProtoJSON.
 *
 * Source: ai.google.dev/api/generate-content and the types of @google/genai 2, read 2026-11-20.
 */
import { oneOf, string } from '../wire/json/check-fields.js'
import { FLAG, integerIn, numberIn, type FieldCheck, type ScalarField } from '../wire/scalar-fields.js'
import { enumValue, list, numeric } from './client/proto-fields.js'

/** The object that has most of them. */
export const CONFIG = 'generationConfig'
const MAX_STOPS = 16

const STOP: FieldCheck<string[]> = {
  rule: `at most ${MAX_STOPS} strings`,
  read: (value, path) => {
    const stop = list(value, path, MAX_STOPS).map((item, at) => string(item, `${path}[${at}]`))
    return stop.length > 0 ? stop : undefined
  },
}

/** Google's names of service tiers, and OpenAI's. */
const TIERS: Readonly<Record<string, string>> = {
  STANDARD: 'default',
  FLEX: 'flex',
  PRIORITY: 'priority',
}
const TIER: FieldCheck<string> = {
  rule: Object.keys(TIERS).join(', '),
  read: (value, path) =>
    TIERS[oneOf(enumValue(value, path), path, [...Object.keys(TIERS), 'SERVICE_TIER_UNSPECIFIED'])],
}

const NO_LOGPROBS = 'this model reports no log probabilities. Use an OpenAI chat model, or leave it out.'
const REPORTED = 'reported'

/** In the order in which the encoder writes them. */
export const FIELDS: readonly ScalarField[] = [
  { wire: null, canonical: 'verbosity', check: null, loss: REPORTED },
  {
    wire: `${CONFIG}.temperature`,
    canonical: 'temperature',
    check: numberIn(0, 2),
    loss: REPORTED,
  },
  { wire: `${CONFIG}.topP`, canonical: 'topP', check: numberIn(0, 1), loss: REPORTED },
  {
    wire: `${CONFIG}.topK`,
    canonical: 'topK',
    check: integerIn(1, undefined, numeric),
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.maxOutputTokens`,
    canonical: 'maxOutputTokens',
    check: integerIn(1, undefined, numeric),
    loss: REPORTED,
  },
  { wire: `${CONFIG}.stopSequences`, canonical: 'stop', check: STOP, loss: REPORTED },
  {
    wire: `${CONFIG}.seed`,
    canonical: 'seed',
    check: integerIn(-(2 ** 31), 2 ** 31 - 1, numeric),
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.frequencyPenalty`,
    canonical: 'frequencyPenalty',
    check: numberIn(-2, 2),
    default: 0,
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.presencePenalty`,
    canonical: 'presencePenalty',
    check: numberIn(-2, 2),
    default: 0,
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.thinkingConfig`,
    canonical: 'reasoningEffort',
    check: null,
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.responseLogprobs`,
    canonical: 'logprobs',
    check: FLAG,
    default: false,
    loss: { refused: NO_LOGPROBS },
  },
  {
    wire: `${CONFIG}.logprobs`,
    canonical: 'topLogprobs',
    check: integerIn(0, 20, numeric),
    default: 0,
    loss: REPORTED,
  },
  {
    wire: `${CONFIG}.candidateCount`,
    canonical: 'candidates',
    check: integerIn(1, 8, numeric),
    default: 1,
    loss: REPORTED,
  },
  { wire: 'serviceTier', canonical: 'serviceTier', check: TIER, default: 'auto', loss: REPORTED },
  { wire: null, canonical: 'userId', check: null, loss: 'none' },
  { wire: null, canonical: 'parallelToolCalls', check: null, default: true, loss: REPORTED },
]
