/**
 * What Gemini asks of the thought signatures that come back with a conversation, in its words.
 * Knows nothing of the reply beside its signature. Parts come with their own keys in camelCase.
 */
import { refuseGemini } from './errors.js'
import { objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject } from '../../chat/json.js'
import type { RandomSource } from '../seeded-random.js'
import { checked, signed } from '../signature.js'

/** Documented stand-ins for a signature that was lost. */
const STAND_INS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

/** The signature of a part: of a call, by its name, or of any text. */
export function thoughtSignature(callName: string | undefined, random: RandomSource): string {
  return signed([callName ?? ''], random, 116)
}

/** One turn: who spoke, and what. */
export interface Turn {
  readonly role: string
  readonly parts: readonly JsonObject[]
}

/** Refuses a signature that no model gave, and from generation 3 on a call of this turn without one. */
export function checkSignatures(turns: readonly Turn[], model: string): void {
  for (const { parts } of turns) {
    for (const part of parts) {
      checkPart(part)
    }
  }
  if (!/^gemini-([3-9]|\d\d)/.test(model)) {
    return
  }
  const asked = turns.findLastIndex(
    ({ role, parts }) =>
      role === 'user' && parts.every((part) => part.functionResponse === undefined),
  )
  for (const [index, { role, parts }] of turns.entries()) {
    const call = parts.find((part) => part.functionCall !== undefined)
    if (
      index > asked &&
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
  const [own] = checked([name], signature)
  if (own !== true) {
    refuseGemini(400, 'Corrupted thought signature.')
  }
}
