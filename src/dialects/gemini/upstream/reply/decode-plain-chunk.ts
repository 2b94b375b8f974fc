/**
 * The chunks that most of an answer is made of: words and the counts so far.
 * Knows no event and no order.
 */
import { arrayOf, isObject, type JsonObject } from '../../../../chat/json.js'

/** What differs from one chunk of words to the next: the words, and the counts so far. */
export const SLOT =
  /"(?:text"\s*:\s*"|(?:prompt|candidates|thoughts|total)TokenCount"\s*:\s*(?=[-\d]))/g
/** What a chunk may hold of which nothing is kept. */
const PLAIN = new Set(['candidates', 'createTime', 'modelVersion', 'responseId', 'usageMetadata'])
const PLAIN_CANDIDATE = new Set(['content', 'index'])
const PLAIN_PART = new Set(['text', 'thought'])

/** Whether a chunk is words and counts alone, which leave nothing of it behind. */
export function isPlain(value: unknown): boolean {
  if (!isObject(value) || !hasOnly(value, PLAIN)) return false
  return arrayOf(value.candidates).every((candidate) => {
    if (!isObject(candidate) || !hasOnly(candidate, PLAIN_CANDIDATE)) return false
    const parts = isObject(candidate.content) ? arrayOf(candidate.content.parts) : []
    return parts.every((part) => isObject(part) && hasOnly(part, PLAIN_PART))
  })
}

function hasOnly(value: JsonObject, names: ReadonlySet<string>): boolean {
  for (const name in value) if (!names.has(name)) return false
  return true
}
