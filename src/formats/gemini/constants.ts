/**
 * Types and constants of the Gemini API (v1beta, generateContent) that several files of this dialect share.
 *
 * Source: ai.google.dev/api/generate-content and the types of @google/genai 3.1.0, read 2026-11-20.
 */
import type { JsonObject } from '../../base/json.js'
import type { ModelFacts } from '../chat/model-facts.js'

/** One part of a content, such as a text or a call. */
export type Part = JsonObject

/** One turn. The API returns 400 for any other role. */
export interface Content extends JsonObject {
  role: 'user' | 'model'
  parts: Part[]
}

/** The provider name of opaque blocks and the origin of reasoning state. */
export const PROVIDER = 'gemini'

/**
 * Google's documented placeholder for a lost signature; 3+ models check the signature of the first call of a
 * step.
 */
export const SKIP_SIGNATURE = 'skip_thought_signature_validator'

/** The API's maximum of inline bytes in a request; larger media needs the Files API. */
export const MAX_INLINE_BYTES = 20 * 1024 * 1024

/** The API's maximum number of `stopSequences`. */
export const MAX_STOP_SEQUENCES = 5

/**
 * True for models of generation 3 and later: they have thinking levels, check thought signatures and support
 * call ids. A model without facts counts as the newest.
 */
export function isThirdGeneration(model: ModelFacts): boolean {
  return model.callSignatures ?? model.thinkingBudget === undefined
}
