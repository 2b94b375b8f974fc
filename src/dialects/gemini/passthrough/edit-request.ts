/**
 * What must change in a client's own body before it passes to a Gemini upstream. Everything else passes as the
 * bytes that it is; the model and the form of the reply are in the path.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { Edit } from '../../../wire/json/splice.js'
import { largeEdit } from '../../../wire/json/write-json.js'
import type { Losses } from '../../dialect.js'
import { isSealed } from '../client/reply/thinking-token.js'
import { isThirdGeneration, SKIP_SIGNATURE } from '../shared/names.js'

const COUNTED = ['generateContentRequest', 'generate_content_request']
const SIGNATURES = ['thoughtSignature', 'thought_signature'] as const

/**
 * Takes out a `model`, since the path decides, and reasoning state of other providers' models, which Google refuses
 * with the whole request.
 */
export function edits(body: JsonObject, model: string, facts: ModelFacts, losses: Losses): Edit[] {
  const out: Edit[] = []
  if (body.model !== undefined) out.push({ key: 'model', json: null })
  out.push(...countedEdits(body, model))
  if (!arrayOf(body.contents).some(holdsSealed)) return out
  losses.drop('contents.thoughtSignature', 'no-equivalent')
  const contents = arrayOf(body.contents).flatMap((content) => cleaned(content, facts))
  out.push(largeEdit('contents', contents))
  return out
}

/** A request that is counted names its model inside as well. */
function countedEdits(body: JsonObject, model: string): Edit[] {
  return COUNTED.flatMap((key) => {
    const counted = body[key]
    const name = `models/${model}`
    if (!isObject(counted) || counted.model === name) return []
    return [largeEdit(key, { ...counted, model: name })]
  })
}

function holdsSealed(content: JsonValue): boolean {
  return arrayOf(objectOf(content).parts).some((part) => signatureName(objectOf(part)) !== null)
}

/** Under which name the part has an envelope of ours; null for any other part. */
function signatureName(part: JsonObject): string | null {
  return SIGNATURES.find((name) => isSealed(part[name])) ?? null
}

/** The content without such state; nothing where it held nothing else. */
function cleaned(content: JsonValue, facts: ModelFacts): JsonValue[] {
  if (!isObject(content) || !holdsSealed(content)) return [content]
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
