/**
 * The scalar fields of Messages.
 *
 * Source: Claude API reference, "Messages", read 2026-11-22.
 */
import { array, string } from '../wire/json/check-fields.js'
import { integerIn, numberIn, wordOf, type FieldCheck, type ScalarField } from '../wire/scalar-fields.js'

const MAX_STOP_SEQUENCES = 1_024
const TIERS = wordOf(['auto', 'standard_only'])

const STOP: FieldCheck<string[]> = {
  rule: `at most ${MAX_STOP_SEQUENCES} strings`,
  read: (value, path) => {
    const items = array(value, path, MAX_STOP_SEQUENCES)
    return items.length === 0 ? undefined : items.map((item, at) => string(item, `${path}[${at}]`))
  },
}

/** The tiers by OpenAI's names. */
const TIER: FieldCheck<string> = {
  rule: TIERS.rule,
  read: (value, path) => (TIERS.read(value, path) === 'auto' ? 'auto' : 'default'),
}

/** The alternative of every refusal. */
export const OR_OPENAI = ', or use a route to an OpenAI upstream.'
const ONE_REPLY = `Anthropic models give one reply per request. Send n requests${OR_OPENAI}`
const NO_LOGPROBS = `Anthropic models report no log probabilities. Leave it out${OR_OPENAI}`
const REPORTED = 'reported'

/** Limits and refusals first, then the fields in the order in which the encoder writes them. */
export const FIELDS: readonly ScalarField[] = [
  { wire: null, canonical: 'candidates', check: null, default: 1, loss: { refused: ONE_REPLY } },
  {
    wire: null,
    canonical: 'logprobs',
    check: null,
    default: false,
    loss: { refused: NO_LOGPROBS },
  },
  { wire: null, canonical: 'topLogprobs', check: null, default: 0, loss: { refused: NO_LOGPROBS } },
  { wire: null, canonical: 'frequencyPenalty', check: null, default: 0, loss: REPORTED },
  { wire: null, canonical: 'presencePenalty', check: null, default: 0, loss: REPORTED },
  { wire: null, canonical: 'seed', check: null, loss: REPORTED },
  { wire: null, canonical: 'verbosity', check: null, default: 'medium', loss: REPORTED },
  // Required in chats, and absent in requests that count tokens.
  { wire: 'max_tokens', canonical: 'maxOutputTokens', check: null, loss: REPORTED },
  { wire: 'stop_sequences', canonical: 'stop', check: STOP, loss: REPORTED },
  { wire: 'thinking', canonical: 'reasoningEffort', check: null, loss: REPORTED },
  {
    wire: 'temperature',
    canonical: 'temperature',
    check: numberIn(0, 1),
    default: 1,
    loss: REPORTED,
  },
  { wire: 'top_p', canonical: 'topP', check: numberIn(0, 1), default: 1, loss: REPORTED },
  { wire: 'top_k', canonical: 'topK', check: integerIn(0), loss: REPORTED },
  { wire: 'metadata.user_id', canonical: 'userId', check: null, loss: 'none' },
  { wire: 'service_tier', canonical: 'serviceTier', check: TIER, default: 'auto', loss: REPORTED },
  {
    wire: 'tool_choice.disable_parallel_tool_use',
    canonical: 'parallelToolCalls',
    check: null,
    default: true,
    loss: REPORTED,
  },
]
