/**
 * Thinking budgets in tokens and reasoning efforts, in both directions: an effort becomes a budget for models
 * that take budgets, and a client's budget becomes an effort for models that take efforts.
 */
import type { ReasoningEffort } from './request.js'

type Effort = Exclude<ReasoningEffort, 'none'>

/** From the least to the most effort. */
const ROWS: readonly {
  readonly effort: Effort
  /** Sent to Claude, and the largest budget of a client of the Messages API that means the effort. */
  readonly claude: number
  /** Sent to Gemini; a model has its own maximum. */
  readonly gemini: number
  /** The largest budget of a Gemini client that means the effort; budgets for Gemini end with `high`. */
  readonly fromGemini: number
}[] = [
  { effort: 'minimal', claude: 1_024, gemini: 512, fromGemini: 512 },
  { effort: 'low', claude: 2_048, gemini: 1_024, fromGemini: 2_048 },
  { effort: 'medium', claude: 8_192, gemini: 8_192, fromGemini: 8_192 },
  { effort: 'high', claude: 24_576, gemini: 24_576, fromGemini: Infinity },
  { effort: 'xhigh', claude: 32_768, gemini: Infinity, fromGemini: Infinity },
  { effort: 'max', claude: 49_152, gemini: Infinity, fromGemini: Infinity },
]

/** Claude's minimum for a budget; also the minimum reserved for the reply. */
export const CLAUDE_BUDGET_MIN = 1_024

/** The budget for a Claude model without adaptive thinking. */
export function claudeBudget(effort: Effort): number {
  return ROWS.find((row) => row.effort === effort)?.claude ?? 0
}

/** The effort that a budget of the Messages API means; at least `low`, which is Claude's lowest. */
export function effortOfClaudeBudget(tokens: number): Effort {
  return ROWS.find(({ effort, claude }) => effort !== 'minimal' && tokens <= claude)?.effort ?? 'max'
}

/** The budget for a Gemini model with budgets, before the model's own limits; Infinity is its maximum. */
export function geminiBudget(effort: Effort): number {
  return ROWS.find((row) => row.effort === effort)?.gemini ?? 0
}

/** The effort that a `thinkingBudget` of a Gemini client means; 0 turns thinking off. */
export function effortOfGeminiBudget(tokens: number): ReasoningEffort {
  if (tokens === 0) return 'none'
  return ROWS.find(({ fromGemini }) => tokens <= fromGemini)?.effort ?? 'high'
}
