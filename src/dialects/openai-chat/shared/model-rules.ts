/**
 * What OpenAI's models refuse, by the facts of the catalogue.
 * One set of rules for a body that is written here and for a client's own that passes.
 *
 * Source: OpenAI API reference, "Reasoning models", and the errors that it answers, read 2026-11-20.
 */
import { nearestEffort } from '../../../chat/effort.js'
import { isObject } from '../../../chat/json.js'
import { type ModelFacts, takesSampling } from '../../../chat/model.js'
import type { ReasoningEffort } from '../../../chat/request.js'
import { GatewayError } from '../../../errors.js'
import type { Losses } from '../../dialect.js'

/** What the client said of reasoning, and whether the request has tools. */
export interface RequestedEffort {
  effort: ReasoningEffort | undefined
  tools: boolean
}

/**
 * The `reasoning_effort` to send: the one asked for, or the nearest lower that the model has; below
 * all of them, its lowest. Undefined where none is to be sent. Throws `GatewayError(untranslatable)`
 * where the model takes tools on this endpoint only without reasoning, and reasoning was asked for.
 */
export function effortFor(
  asked: RequestedEffort,
  model: ModelFacts,
  losses: Losses,
): string | undefined {
  const effort = nearest(asked, model)
  const differs = effort !== asked.effort
  if (differs && effort === undefined) {
    if (asked.effort !== 'none') losses.drop('reasoning_effort', 'no-equivalent')
  } else if (differs) losses.drop('reasoning_effort', 'approximated')
  return effort
}

function nearest({ effort, tools }: RequestedEffort, model: ModelFacts): string | undefined {
  if (model.reasoning === false) return undefined
  // Such models refuse function tools on this endpoint unless reasoning is off.
  if (model.chatToolsWithReasoning === false && tools && effort !== 'none') {
    if (effort === undefined && model.reasoningEfforts?.includes('none') === true) return 'none'
    throw new GatewayError(
      'untranslatable',
      `tools: ${model.id} takes tools on this upstream only with reasoning_effort "none"`,
      { param: 'tools' },
    )
  }
  return effort === undefined ? undefined : nearestEffort(effort, model.reasoningEfforts)
}

/** Taken only where the model does not reason at this effort, if at all. */
const FREE: ReadonlySet<string> = new Set(['temperature', 'top_p', 'logprobs'])
/** Taken by no model that can reason. */
const PLAIN: ReadonlySet<string> = new Set([
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'top_logprobs',
])

/** The fields that some models refuse. */
export const SAMPLING: readonly string[] = [...FREE, ...PLAIN]

/** Whether the model takes the field at this effort. */
export function takes(field: string, model: ModelFacts, effort: string | undefined): boolean {
  if (PLAIN.has(field)) return model.reasoning !== true
  return !FREE.has(field) || takesSampling(model, effort)
}

/** True for the value that the model uses anyway, which is no loss. */
export function isDefault(field: string, value: unknown): boolean {
  if (field === 'temperature' || field === 'top_p') return value === 1
  if (field === 'logit_bias') return isObject(value) && Object.keys(value).length === 0
  return value === 0 || value === false
}

/**
 * Whether `stop` goes to the model, which may refuse even one that says nothing. Throws
 * `GatewayError(untranslatable)` for stop sequences that it does not take.
 */
export function takesStop(stop: unknown, model: ModelFacts): boolean {
  if (model.stop !== false) return true
  const isNone = [stop ?? ''].flat().every((text) => text === '')
  if (isNone) return false
  throw new GatewayError(
    'untranslatable',
    `stop: ${model.id} takes no stop sequences. Leave it out, or ask for a model that does.`,
    { param: 'stop' },
  )
}
