/**
 * How much the model is to think, and which sampling it takes then.
 * Knows the model only by its facts; an unknown model is treated as one of the newest.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import type { ModelFacts } from '../../../../chat/model.js'
import type { ChatRequest, ReasoningEffort } from '../../../../chat/request.js'
import type { Losses } from '../../../dialect.js'
import type { WireMessage } from '../../shared/names.js'

/** Members of the body that are about sampling; `temperature` and `top_p` never together. */
export interface SamplingFields {
  temperature?: number
  top_p?: number
  top_k?: number
}

/** Members of the body that are about thinking. */
export interface ThinkingFields {
  thinking?: JsonObject
  /** For `output_config.effort`. */
  effort?: string
}

/** The smallest budget that the API takes, in tokens; also what is left for the answer itself. */
const BUDGET_MIN = 1024

const BUDGETS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 24576,
  xhigh: 32768,
  max: 49152,
}

const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']

/** `thinking` and the effort for this request. */
export function thinkingFields(
  request: ChatRequest,
  model: ModelFacts,
  maxTokens: number,
  messages: readonly WireMessage[],
  losses: Losses,
): ThinkingFields {
  const effort = request.reasoningEffort
  if (effort === undefined) {
    return ownThinking(request.rest.thinking, messages, losses)
  }
  if (model.reasoning === false) {
    if (effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
    return {}
  }
  const types = model.thinkingTypes ?? ['adaptive']
  if (effort === 'none') return off(types, losses)
  if (types.includes('adaptive')) {
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      effort: nearestEffort(effort, model, losses),
    }
  }
  return budget(effort, maxTokens, messages, losses)
}

/** A client's own `thinking` object goes as it is, save where the API would refuse it. */
function ownThinking(
  own: JsonValue | undefined,
  messages: readonly WireMessage[],
  losses: Losses,
): ThinkingFields {
  if (!isObject(own)) return {}
  if (own.type !== 'enabled' || !inLoopWithoutThinking(messages)) return { thinking: own }
  losses.drop('thinking', 'approximated')
  return { thinking: { type: 'disabled' } }
}

function off(types: string[], losses: Losses): ThinkingFields {
  if (types.includes('disabled')) return { thinking: { type: 'disabled' } }
  if (types.includes('between_tools')) return { thinking: { type: 'between_tools' } }
  losses.drop('reasoning_effort', 'approximated')
  return { effort: 'low' }
}

/** The effort itself, or the nearest lower one that the model has. */
function nearestEffort(
  effort: Exclude<ReasoningEffort, 'none'>,
  model: ModelFacts,
  losses: Losses,
): string {
  const known = model.efforts ?? EFFORTS
  const wanted = effort === 'minimal' ? 'low' : effort
  if (known.includes(wanted)) return wanted
  losses.drop('reasoning_effort', 'approximated')
  const lower = EFFORTS.slice(0, EFFORTS.indexOf(wanted))
  return lower.findLast((one) => known.includes(one)) ?? 'low'
}

/**
 * Thinking with a budget, which counts against `max_tokens`. In the middle of a tool loop the API
 * wants the thinking that led to the calls; where the client did not keep it, this turn goes without.
 */
function budget(
  effort: Exclude<ReasoningEffort, 'none'>,
  maxTokens: number,
  messages: readonly WireMessage[],
  losses: Losses,
): ThinkingFields {
  const tokens = Math.min(BUDGETS[effort], maxTokens - BUDGET_MIN)
  if (tokens < BUDGET_MIN) {
    losses.drop('reasoning_effort', 'approximated')
    return {}
  }
  if (inLoopWithoutThinking(messages)) {
    losses.drop('reasoning_effort', 'approximated')
    return { thinking: { type: 'disabled' } }
  }
  return { thinking: { type: 'enabled', budget_tokens: tokens } }
}

function inLoopWithoutThinking(messages: readonly WireMessage[]): boolean {
  if (messages.at(-1)?.content[0]?.type !== 'tool_result') return false
  const call = messages.findLast((message) => message.role === 'assistant')
  const first = call?.content[0]?.type
  return first !== 'thinking' && first !== 'redacted_thinking'
}

/** Whether the model will think, given what the request says and the model does by itself. */
function thinks(thinking: JsonObject | undefined, model: ModelFacts): boolean {
  if (thinking === undefined) return (model.thinkingDefault ?? 'adaptive') === 'adaptive'
  return thinking.type !== 'disabled'
}

/**
 * `temperature` or `top_p`, where the model takes them; never both. 1 is the API's own default for
 * each, so it is not sent and not missed.
 */
export function samplingFields(
  request: ChatRequest,
  model: ModelFacts,
  thinking: JsonObject | undefined,
  losses: Losses,
): SamplingFields {
  const { temperature = 1, topP = 1 } = request
  const rule = model.samplingParams ?? 'never'
  const taken = rule === 'always' || (rule === 'when-thinking-off' && !thinks(thinking, model))
  if (!taken) {
    if (temperature !== 1) losses.drop('temperature', 'no-equivalent')
    if (topP !== 1) losses.drop('top_p', 'no-equivalent')
    if (request.topK !== undefined) losses.drop('top_k', 'no-equivalent')
    return {}
  }
  const fields: SamplingFields = {}
  if (request.topK !== undefined) fields.top_k = request.topK
  const clamped = Math.min(Math.max(temperature, 0), 1)
  if (clamped !== temperature) losses.drop('temperature', 'approximated')
  if (temperature === 1) {
    if (topP !== 1) fields.top_p = topP
    return fields
  }
  if (topP !== 1) losses.drop('top_p', 'no-equivalent')
  if (clamped !== 1) fields.temperature = clamped
  return fields
}
