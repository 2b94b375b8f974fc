/**
 * Fields and values that OpenAI's models refuse, by the facts of the catalogue. The rules apply to bodies
 * that the gateway encodes and to bodies that pass through.
 *
 * Source: OpenAI API reference, "Reasoning models", and the errors that it returns, read 2026-11-20.
 */
import { nearestEffort, type ReasoningEffort } from '../chat/request.js'
import { isObject, type JsonValue } from '../../base/json.js'
import { type ModelFacts, acceptsSampling } from '../chat/model-facts.js'
import { refused } from '../wire/json/check-fields.js'
import { isDefault } from '../wire/scalar-fields.js'
import type { Losses } from '../dialect.js'
import { FIELDS } from './fields.js'

/** The effort that the client requests, and whether the request has tools. */
interface RequestedEffort {
  effort: ReasoningEffort | undefined
  tools: boolean
}

/**
 * The `reasoning_effort` to send: the requested one, or the next lower that the model supports, or its
 * lowest. Undefined if none is sent. Throws `GatewayError(untranslatable)` if the model accepts tools on this
 * endpoint only without reasoning, and the client requests reasoning.
 */
export function effortFor(requested: RequestedEffort, model: ModelFacts, losses: Losses): string | undefined {
  const effort = nearest(requested, model)
  const differs = effort !== requested.effort
  if (differs && effort === undefined) {
    if (requested.effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
  } else if (differs) losses.drop('reasoning_effort', 'approximated')
  return effort
}

function nearest({ effort, tools }: RequestedEffort, model: ModelFacts): string | undefined {
  if (model.reasoning === false) return undefined
  // These models refuse function tools on this endpoint unless reasoning is off.
  if (model.chatToolsWithReasoning === false && tools && effort !== 'none') {
    if (effort === undefined && model.reasoningEfforts?.includes('none') === true) return 'none'
    throw refused('tools', `${model.id} accepts tools on this upstream only with reasoning_effort "none"`)
  }
  return effort === undefined ? undefined : nearestEffort(effort, model.reasoningEfforts)
}

/** Accepted if the model does not reason at the effort of the request. */
const WITHOUT_REASONING: ReadonlySet<string> = new Set(['temperature', 'top_p', 'logprobs'])
/** Refused by every model that can reason. */
const NON_REASONING_MODELS: ReadonlySet<string> = new Set([
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'top_logprobs',
])

/** The fields that some models refuse. */
export const SAMPLING: readonly string[] = [...WITHOUT_REASONING, ...NON_REASONING_MODELS]

export function accepts(field: string, model: ModelFacts, effort: string | undefined): boolean {
  if (NON_REASONING_MODELS.has(field)) return model.reasoning !== true
  return !WITHOUT_REASONING.has(field) || acceptsSampling(model, effort)
}

/** Whether the value of a field in a body is the model's default, so that omitting it is not a loss. */
export function isDefaultValue(name: string, value: JsonValue): boolean {
  if (name === 'logit_bias') return isObject(value) && Object.keys(value).length === 0
  const field = FIELDS.find(({ wire }) => wire === name)
  return field !== undefined && isDefault(field, value)
}

/**
 * Whether to send `stop`; some models refuse even an empty one. Throws `GatewayError(untranslatable)` for
 * stop sequences that the model does not accept.
 */
export function acceptsStop(stop: unknown, model: ModelFacts): boolean {
  if (model.stop !== false) return true
  const isNone = [stop ?? ''].flat().every((text) => text === '')
  if (isNone) return false
  throw refused('stop', `${model.id} accepts no stop sequences. Leave it out, or choose a model that does.`)
}

/**
 * The field for the maximum output of a body that the gateway encodes: other vendors read only the old name.
 */
export function outputLimitField({ family }: ModelFacts): 'max_completion_tokens' | 'max_tokens' {
  return family === 'openai' ? 'max_completion_tokens' : 'max_tokens'
}

/**
 * Whether the model refuses `max_tokens`, which OpenAI's reasoning models do; their field is
 * `max_completion_tokens`.
 */
export function refusesMaxTokens({ reasoning }: ModelFacts): boolean {
  return reasoning === true
}
