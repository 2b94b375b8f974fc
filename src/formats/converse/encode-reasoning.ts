/**
 * Encodes the reasoning effort and the sampling parameters that the model accepts with it. Claude has its own
 * `thinking` among the additional fields; `outputConfig.effort` is for all models. A Claude model without
 * facts is treated like the newest ones.
 */
import type { WireError } from '../../errors.js'
import { arrayOf, isObject, objectOf, type JsonObject } from '../../base/json.js'
import { acceptsSampling } from '../chat/model-facts.js'
import { demandsCall } from '../chat/must-call.js'
import type { ChatRequest, ReasoningEffort } from '../chat/request.js'
import { CLAUDE_BUDGET_MIN, claudeBudget } from '../chat/thinking-budgets.js'
import type { EncodeContext, Losses } from '../dialect.js'
import { EFFORTS, BINDING_BETA, withoutBoundThinking } from '../wire/claude-thinking.js'
import { isClaude, reasoningOf } from './constants.js'
import type { WireMessage } from '../wire/block-turns.js'

/** Members of the body. */
interface ReasoningFields {
  /** For `additionalModelRequestFields.thinking`. */
  readonly thinking?: JsonObject
  /** For `outputConfig.effort`. */
  readonly effort?: string
}

/** The reasoning that the client requests. */
export function reasoningFields(
  request: ChatRequest,
  messages: readonly WireMessage[],
  context: EncodeContext,
): ReasoningFields {
  const { model, losses } = context
  const effort = request.reasoningEffort
  const field = effort === undefined ? 'thinking' : 'reasoning_effort'
  const fields =
    effort === undefined
      ? clientThinking(request, context)
      : model.reasoning === false
        ? noReasoning(effort, losses)
        : isClaude(model)
          ? claudeThinking(effort, request, context)
          : { effort: supportedEffort(effort, context) }
  if (fields.thinking?.type !== 'enabled') return fields
  // Claude refuses a thinking budget beside a forced call, and within a loop whose thinking is missing.
  const isForced = demandsCall(request.toolChoice) && model.forcedToolChoice !== false
  if (!isForced && !inLoopWithoutReasoning(messages)) return fields
  losses.drop(field, 'approximated')
  return { thinking: { type: 'disabled' } }
}

/** The client's own `thinking` object, for Claude. */
function clientThinking({ rest }: ChatRequest, { model, losses }: EncodeContext): ReasoningFields {
  const own = rest.thinking
  if (!isObject(own)) return {}
  if (isClaude(model)) return { thinking: own }
  if (own.type !== 'disabled') losses.drop('thinking', 'no-equivalent')
  return {}
}

function noReasoning(effort: ReasoningEffort, losses: Losses): ReasoningFields {
  if (effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
  return {}
}

function claudeThinking(
  effort: ReasoningEffort,
  request: ChatRequest,
  context: EncodeContext,
): ReasoningFields {
  const { model, losses } = context
  const types = model.thinkingTypes ?? ['adaptive']
  if (effort === 'none') {
    if (types.includes('disabled')) return { thinking: { type: 'disabled' } }
    losses.drop('reasoning_effort', 'approximated')
    return { effort: 'low' }
  }
  if (types.includes('adaptive')) {
    const thinking = { type: 'adaptive', display: 'summarized' }
    return { thinking, effort: supportedEffort(effort, context) }
  }
  const limit = Math.min(request.maxOutputTokens ?? Infinity, model.maxOutputTokens ?? Infinity)
  const tokens = Math.min(claudeBudget(effort), limit - CLAUDE_BUDGET_MIN)
  if (tokens >= CLAUDE_BUDGET_MIN) return { thinking: { type: 'enabled', budget_tokens: tokens } }
  losses.drop('reasoning_effort', 'approximated')
  return {}
}

/** The effort, or the nearest lower one that the model supports. */
function supportedEffort(effort: ReasoningEffort, { model, losses }: EncodeContext): string {
  const known = model.efforts ?? EFFORTS
  const requested = effort === 'minimal' || effort === 'none' ? 'low' : effort
  const lower = EFFORTS.slice(0, EFFORTS.indexOf(requested) + 1)
  const found = lower.findLast((one) => known.includes(one)) ?? 'low'
  if (found !== effort && effort !== 'minimal') losses.drop('reasoning_effort', 'approximated')
  return found
}

function inLoopWithoutReasoning(messages: readonly WireMessage[]): boolean {
  if (messages.at(-1)?.content[0]?.toolResult === undefined) return false
  const call = messages.findLast((message) => message.role === 'assistant')
  return reasoningOf(call?.content[0]) === undefined
}

/** Sampling members of `inferenceConfig`. */
interface SamplingFields {
  readonly temperature?: number
  readonly topP?: number
}

/** The parameters that the model accepts with this thinking. Claude accepts one of the two. */
export function samplingFields(
  { temperature, topP, reasoningEffort }: ChatRequest,
  thinking: JsonObject | undefined,
  { model, losses }: EncodeContext,
): SamplingFields {
  const isOff = isClaude(model) ? !isThinking(thinking, model) : reasoningEffort === undefined
  if (!acceptsSampling(model, isOff ? 'none' : reasoningEffort)) {
    // 1 is the default of each.
    if ((temperature ?? 1) !== 1) losses.drop('temperature', 'no-equivalent')
    if ((topP ?? 1) !== 1) losses.drop('top_p', 'no-equivalent')
    return {}
  }
  const fields: { temperature?: number; topP?: number } = {}
  if (temperature !== undefined) {
    // The API's range.
    fields.temperature = Math.min(Math.max(temperature, 0), 1)
    if (fields.temperature !== temperature) losses.drop('temperature', 'approximated')
  }
  if (topP === undefined) return fields
  if (!isClaude(model) || temperature === undefined) fields.topP = topP
  else if (topP !== 1) losses.drop('top_p', 'no-equivalent')
  return fields
}

function isThinking(thinking: JsonObject | undefined, { thinkingDefault }: EncodeContext['model']): boolean {
  if (thinking === undefined) return thinkingDefault === 'adaptive'
  return thinking.type !== 'disabled'
}

/** The body with the option to drop thinking of another conversation; null if that is not the error. */
export function dropReasoning(body: JsonObject, error: WireError): JsonObject | null {
  const fields = objectOf(body.additionalModelRequestFields)
  const thinking = withoutBoundThinking(fields.thinking, error)
  if (thinking === null) return null
  const betas = [...arrayOf(fields.anthropic_beta), BINDING_BETA]
  return {
    ...body,
    additionalModelRequestFields: { ...fields, anthropic_beta: betas, thinking },
  }
}
