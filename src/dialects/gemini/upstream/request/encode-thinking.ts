/**
 * Encodes the reasoning effort: a thinking level for 3+ models, a token budget for 2.5.
 */
import { isObject, objectOf, type JsonObject } from '../../../../chat/json.js'
import type { ChatRequest, ReasoningEffort } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import type { EncodeContext, Losses } from '../../../dialect.js'
import { isThirdGeneration } from '../../shared/constants.js'

/** The levels of a 3+ model for which the catalogue lists none; all current models have them. */
const COMMON_LEVELS = ['low', 'medium', 'high']

/** The budget per effort in tokens, for models with budgets. */
const BUDGETS: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: Infinity,
  max: Infinity,
}

/** The levels for an effort, in order of preference. */
const LEVELS: Readonly<Record<ReasoningEffort, readonly string[]>> = {
  none: ['minimal', 'low'],
  minimal: ['minimal', 'low'],
  low: ['low'],
  medium: ['medium', 'high'],
  high: ['high'],
  xhigh: ['xhigh', 'high'],
  max: ['xhigh', 'high'],
}

/**
 * `thinkingConfig`; undefined if the client requests no effort. Thoughts are requested with every effort;
 * encoders for clients that do not show them omit them.
 */
export function encodeThinking(
  request: ChatRequest,
  { model, losses }: EncodeContext,
): JsonObject | undefined {
  const effort = request.reasoningEffort
  if (effort === undefined) return vendorThinking(request, losses)
  if (isObject(request.rest.extra_content)) losses.drop('extra_content', 'no-equivalent')
  if (model.thinkingBudget !== undefined) return budget(effort, model.thinkingBudget, losses)
  if (model.reasoning === false || !isThirdGeneration(model)) {
    if (effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
    return undefined
  }
  const known = model.thinkingLevels ?? COMMON_LEVELS
  const level = LEVELS[effort].find((candidate) => known.includes(candidate)) ?? 'high'
  if (level !== effort) losses.drop('reasoning_effort', 'approximated')
  return effort === 'none'
    ? { thinkingLevel: level }
    : { thinkingLevel: level, includeThoughts: true }
}

function budget(
  effort: ReasoningEffort,
  range: { min: number; max: number; canDisable: boolean },
  losses: Losses,
): JsonObject {
  if (effort === 'none') {
    if (!range.canDisable) losses.drop('reasoning_effort', 'approximated')
    return { thinkingBudget: range.canDisable ? 0 : range.min }
  }
  const thinkingBudget = Math.max(range.min, Math.min(BUDGETS[effort], range.max))
  return { thinkingBudget, includeThoughts: true }
}

/** `extra_content.google.thinking_config`, a field of Google's own chat endpoint. */
function vendorThinking(request: ChatRequest, losses: Losses): JsonObject | undefined {
  const extra = request.rest.extra_content
  if (extra === undefined || extra === null) return undefined
  const given = objectOf(objectOf(extra).google).thinking_config
  if (!isObject(given)) {
    losses.drop('extra_content', 'no-equivalent')
    return undefined
  }
  const level = given.thinking_level ?? given.thinkingLevel
  const tokens = given.thinking_budget ?? given.thinkingBudget
  const thoughts = given.include_thoughts ?? given.includeThoughts
  if (typeof level === 'string' && typeof tokens === 'number') {
    throw new GatewayError(
      'untranslatable',
      'extra_content.google.thinking_config: must not have both thinking_level and thinking_budget.',
      { param: 'extra_content.google.thinking_config' },
    )
  }
  const config: JsonObject = {}
  if (typeof level === 'string') config.thinkingLevel = level
  if (typeof tokens === 'number') config.thinkingBudget = tokens
  if (typeof thoughts === 'boolean') config.includeThoughts = thoughts
  return Object.keys(config).length === 0 ? undefined : config
}
