/**
 * Gemini's rules for thought signatures that clients send back, with its error messages. Keys of parts are in
 * camelCase.
 */
import { refuseGemini } from './errors.js'
import { objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject } from '../../chat/json.js'
import type { RandomSource } from '../seeded-random.js'
import { signState, verifyState } from '../signature.js'

/** Documented placeholders for a lost signature. */
const STAND_INS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

/** The signature of a function call, bound to its name, or of a text part. */
export function thoughtSignature(callName: string | undefined, random: RandomSource): string {
  return signState([callName ?? ''], random, 116)
}

/** One turn with its role. */
export interface Turn {
  readonly role: string
  readonly parts: readonly JsonObject[]
}

/** Refuses unknown signatures and, from generation 3 on, function calls of the current turn without one. */
export function checkSignatures(turns: readonly Turn[], model: string): void {
  for (const { parts } of turns) {
    for (const part of parts) {
      checkPart(part)
    }
  }
  if (!/^gemini-([3-9]|\d\d)/.test(model)) {
    return
  }
  const lastUserTurn = turns.findLastIndex(
    ({ role, parts }) =>
      role === 'user' && parts.every((part) => part.functionResponse === undefined),
  )
  for (const [index, { role, parts }] of turns.entries()) {
    const call = parts.find((part) => part.functionCall !== undefined)
    if (
      index > lastUserTurn &&
      role === 'model' &&
      call !== undefined &&
      call.thoughtSignature === undefined
    ) {
      const name = stringOf(objectOf(call.functionCall).name) ?? ''
      refuseGemini(
        400,
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
      )
    }
  }
}

function checkPart(part: JsonObject): void {
  const signature = stringOf(part.thoughtSignature)
  if (signature === undefined || STAND_INS.includes(signature)) {
    return
  }
  const name = stringOf(objectOf(part.functionCall).name) ?? ''
  const [own] = verifyState([name], signature)
  if (own !== true) {
    refuseGemini(400, 'Corrupted thought signature.')
  }
}
