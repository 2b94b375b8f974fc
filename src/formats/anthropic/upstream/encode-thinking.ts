/**
 * Encodes a reasoning effort as `thinking` and `output_config.effort`, and the sampling parameters that the
 * model accepts with them. A model without facts is treated like the newest models.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ModelFacts } from '../../chat/model-facts.js'
import { demandsCall } from '../../chat/must-call.js'
import type { ChatRequest, ReasoningEffort } from '../../chat/request.js'
import { CLAUDE_BUDGET_MIN, claudeBudget } from '../../chat/thinking-budgets.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { EFFORTS } from '../../wire/claude-thinking.js'
import { fieldsFor, writeFields } from '../../wire/scalar-fields.js'
import { FIELDS } from '../fields.js'
import type { WireMessage } from '../../wire/block-turns.js'

/** Sampling members of the body; never both `temperature` and `top_p`. */
interface SamplingFields {
  temperature?: number
  top_p?: number
  top_k?: number
}

/** Thinking members of the body. */
interface ThinkingFields {
  thinking?: JsonObject
  /** For `output_config.effort`. */
  effort?: string
}

/** The encoded members that a thinking budget depends on. */
interface EncodedTurns {
  /** The `max_tokens` member. */
  readonly maxTokens: number
  readonly messages: readonly WireMessage[]
}

/**
 * The `thinking` member and the effort for this request. The API refuses thinking with a budget beside a
 * forced call; the call is what the client cannot do without, so thinking is disabled.
 */
export function thinkingFields(
  request: ChatRequest,
  turns: EncodedTurns,
  context: EncodeContext,
): ThinkingFields {
  const fields = requestedThinking(request, turns, context)
  const { model, losses } = context
  const conflicts = fields.thinking?.type === 'enabled' && model.forcedToolChoice === true
  if (!conflicts || !demandsCall(request.toolChoice)) return fields
  losses.drop(request.reasoningEffort === undefined ? 'thinking' : 'reasoning_effort', 'approximated')
  return { thinking: { type: 'disabled' } }
}

function requestedThinking(
  request: ChatRequest,
  turns: EncodedTurns,
  { model, losses }: EncodeContext,
): ThinkingFields {
  const effort = request.reasoningEffort
  if (effort === undefined) {
    return clientThinking(request.rest.thinking, turns.messages, losses)
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
      effort: supportedEffort(effort, model, losses),
    }
  }
  return budget(effort, turns, losses)
}

/** Passes the client's own `thinking` object unchanged unless the API would reject it. */
function clientThinking(
  own: JsonValue | undefined,
  messages: readonly WireMessage[],
  losses: Losses,
): ThinkingFields {
  if (!isObject(own)) return {}
  if (own.type !== 'enabled' || !inLoopWithoutThinking(messages)) return { thinking: own }
  losses.drop('thinking', 'approximated')
  return { thinking: { type: 'disabled' } }
}

function off(types: readonly string[], losses: Losses): ThinkingFields {
  if (types.includes('disabled')) return { thinking: { type: 'disabled' } }
  if (types.includes('between_tools')) return { thinking: { type: 'between_tools' } }
  losses.drop('reasoning_effort', 'approximated')
  return { effort: 'low' }
}

/** The effort, or the nearest lower one that the model supports. */
function supportedEffort(
  effort: Exclude<ReasoningEffort, 'none'>,
  model: ModelFacts,
  losses: Losses,
): string {
  const known = model.efforts ?? EFFORTS
  const requested = effort === 'minimal' ? 'low' : effort
  if (known.includes(requested)) return requested
  losses.drop('reasoning_effort', 'approximated')
  const lower = EFFORTS.slice(0, EFFORTS.indexOf(requested))
  return lower.findLast((one) => known.includes(one)) ?? 'low'
}

/**
 * Thinking with a budget, which counts toward `max_tokens`. Within a tool loop the API requires the thinking
 * that led to the calls; if the client did not keep it, thinking is disabled for this turn.
 */
function budget(
  effort: Exclude<ReasoningEffort, 'none'>,
  { maxTokens, messages }: EncodedTurns,
  losses: Losses,
): ThinkingFields {
  const tokens = Math.min(claudeBudget(effort), maxTokens - CLAUDE_BUDGET_MIN)
  if (tokens < CLAUDE_BUDGET_MIN) {
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

/** True if the model will think, by the request or by its default. */
function isThinking(thinking: JsonObject | undefined, model: ModelFacts): boolean {
  if (thinking === undefined) return (model.thinkingDefault ?? 'adaptive') === 'adaptive'
  return thinking.type !== 'disabled'
}

const SAMPLING = fieldsFor(FIELDS, 'temperature', 'topP', 'topK')

/**
 * `temperature` or `top_p`, never both, if the model accepts them. 1 is the API's default for each and is not
 * sent.
 */
export function samplingFields(
  request: ChatRequest,
  thinking: JsonObject | undefined,
  { model, losses }: EncodeContext,
): SamplingFields {
  const { temperature = 1, topP = 1 } = request
  const rule = model.samplingParams ?? 'never'
  const accepted = rule === 'always' || (rule === 'when-thinking-off' && !isThinking(thinking, model))
  if (!accepted) {
    writeFields(request, SAMPLING, { body: {}, losses, encode: () => undefined })
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
