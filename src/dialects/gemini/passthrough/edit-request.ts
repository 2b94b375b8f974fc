/**
 * Edits a client's body that passes through to a Gemini upstream. All other bytes stay unchanged.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { EncodeContext } from '../../dialect.js'
import { isEnvelope } from '../client/reply/thinking-token.js'
import { isThirdGeneration, SKIP_SIGNATURE } from '../shared/constants.js'

const COUNTED = ['generateContentRequest', 'generate_content_request']
const SIGNATURES = ['thoughtSignature', 'thought_signature'] as const

/**
 * The edits that remove `model`, which is in the path, and reasoning state of other providers' models, for
 * which Google rejects the whole request.
 */
export function edits(
  body: JsonObject,
  modelName: string,
  { model: facts, losses }: EncodeContext,
): Edit[] {
  const out: Edit[] = []
  if (body.model !== undefined) out.push({ key: 'model', json: null })
  out.push(...countedEdits(body, modelName))
  if (!arrayOf(body.contents).some(hasEnvelope)) return out
  losses.drop('contents.thoughtSignature', 'no-equivalent')
  const contents = arrayOf(body.contents).flatMap((content) => cleaned(content, facts))
  out.push(largeEdit('contents', contents))
  return out
}

/** Sets the model's name inside a countTokens request. */
function countedEdits(body: JsonObject, modelName: string): Edit[] {
  return COUNTED.flatMap((key) => {
    const counted = body[key]
    const name = `models/${modelName}`
    if (!isObject(counted) || counted.model === name) return []
    return [largeEdit(key, { ...counted, model: name })]
  })
}

function hasEnvelope(content: JsonValue): boolean {
  return arrayOf(objectOf(content).parts).some((part) => signatureName(objectOf(part)) !== null)
}

/** The name of the part's signature if it is an envelope of the gateway; else null. */
function signatureName(part: JsonObject): string | null {
  return SIGNATURES.find((name) => isEnvelope(part[name])) ?? null
}

/** The content without envelopes; no content if it has no other parts. */
function cleaned(content: JsonValue, facts: ModelFacts): JsonValue[] {
  if (!isObject(content) || !hasEnvelope(content)) return [content]
  const parts = arrayOf(content.parts).flatMap((part) => cleanedPart(part, facts))
  return parts.length === 0 ? [] : [{ ...content, parts }]
}

function cleanedPart(part: JsonValue, facts: ModelFacts): JsonValue[] {
  if (!isObject(part)) return [part]
  const name = signatureName(part)
  if (name === null) return [part]
  const rest = Object.fromEntries(Object.entries(part).filter(([key]) => key !== name))
  const isCall = part.functionCall !== undefined || part.function_call !== undefined
  if (isCall) return [isThirdGeneration(facts) ? { ...rest, [name]: SKIP_SIGNATURE } : rest]
  return part.thought === true || (part.text ?? '') === '' ? [] : [rest]
}
