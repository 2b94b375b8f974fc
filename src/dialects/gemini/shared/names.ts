/**
 * The words of the Gemini API (v1beta, generateContent), and which generation a model belongs to.
 * Knows no request and no reply; sources: ai.google.dev/api/generate-content and the types of
 * @google/genai 3.1.0, read on 2026-11-20.
 */
import type { JsonObject } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'

/** One part of a content: a text, a call, a blob. */
export type Part = JsonObject

/** One turn. The API knows these two roles and answers 400 to any other. */
export interface Content extends JsonObject {
  role: 'user' | 'model'
  parts: Part[]
}

/** The provider's name on opaque blocks and the origin of reasoning state. */
export const PROVIDER = 'gemini'

/** Documented stand-in for a signature that was lost; 3+ models check the first call of a step. */
export const SKIP_SIGNATURE = 'skip_thought_signature_validator'

/** The one argument of a function that stands in for a custom (free text) tool. */
export const CUSTOM_INPUT = 'input'

/** The most bytes that a request may hold inline; larger media goes by way of the Files API. */
export const MAX_INLINE_BYTES = 20 * 1024 * 1024

/** The most entries that `stopSequences` takes. */
export const MAX_STOP_SEQUENCES = 5

/**
 * True for models of generation 3 and later: they think by level, check thought signatures and know
 * call ids. A model that nothing is known of counts as the newest.
 */
export function isThirdGeneration(model: ModelFacts): boolean {
  return model.callSignatures ?? model.thinkingBudget === undefined
}
