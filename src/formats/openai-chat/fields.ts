/**
 * The scalar fields of chat completions.
 *
 * Source: OpenAI API reference, "Create chat completion", read 2026-11-20.
 */
import type { JsonValue } from '../../base/json.js'
import { EFFORTS } from '../chat/request.js'
import { refuse, string } from '../wire/json/check-fields.js'
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

const STOP: FieldCheck<string[]> = { rule: 'a string, or at most 4', read: readStop }
const REPORTED = 'reported'

/** In the order in which encoders write them. */
export const FIELDS: readonly ScalarField[] = [
  { wire: null, canonical: 'topK', check: null, loss: REPORTED },
  {
    wire: 'temperature',
    canonical: 'temperature',
    check: numberIn(0, 2),
    default: 1,
    loss: REPORTED,
  },
  { wire: 'top_p', canonical: 'topP', check: numberIn(0, 1), default: 1, loss: REPORTED },
  {
    wire: 'frequency_penalty',
    canonical: 'frequencyPenalty',
    check: numberIn(-2, 2),
    default: 0,
    loss: REPORTED,
  },
  {
    wire: 'presence_penalty',
    canonical: 'presencePenalty',
    check: numberIn(-2, 2),
    default: 0,
    loss: REPORTED,
  },
  { wire: 'logprobs', canonical: 'logprobs', check: FLAG, default: false, loss: REPORTED },
  {
    wire: 'top_logprobs',
    canonical: 'topLogprobs',
    check: integerIn(0, 20),
    default: 0,
    loss: REPORTED,
  },
  { wire: 'seed', canonical: 'seed', check: integerIn(-(2 ** 63), 2 ** 63), loss: REPORTED },
  { wire: 'n', canonical: 'candidates', check: integerIn(1, 128), default: 1, loss: REPORTED },
  {
    wire: 'max_completion_tokens',
    canonical: 'maxOutputTokens',
    check: integerIn(1),
    loss: REPORTED,
  },
  {
    wire: 'max_tokens',
    canonical: 'maxOutputTokens',
    check: integerIn(1),
    loss: REPORTED,
    yields: true,
    readOnly: true,
  },
  { wire: 'stop', canonical: 'stop', check: STOP, loss: REPORTED },
  {
    wire: 'reasoning_effort',
    canonical: 'reasoningEffort',
    check: wordOf(EFFORTS),
    loss: REPORTED,
  },
  {
    wire: 'verbosity',
    canonical: 'verbosity',
    check: wordOf(['low', 'medium', 'high']),
    default: 'medium',
    loss: REPORTED,
  },
  { wire: 'user', canonical: 'userId', check: textUpTo(), loss: REPORTED, yields: true },
  {
    wire: 'safety_identifier',
    canonical: 'userId',
    check: textUpTo(128),
    loss: REPORTED,
    readOnly: true,
  },
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

function readStop(value: JsonValue): string[] | undefined {
  if (typeof value === 'string') return [value]
  const rule = 'must be a string or an array of at most 4 strings'
  if (!Array.isArray(value) || value.length > 4) refuse('stop', rule)
  return value.length === 0 ? undefined : value.map((item, at) => string(item, `stop[${at}]`))
}
