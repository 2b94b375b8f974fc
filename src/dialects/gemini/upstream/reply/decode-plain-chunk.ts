/**
 * Recognizes plain chunks, which make up most of a reply: only text and the counts so far.
 */
import { arrayOf, isObject, type JsonObject } from '../../../../chat/json.js'

/** The variable parts of a plain chunk: the text and the counts. */
export const SLOT =
  /"(?:text"\s*:\s*"|(?:prompt|candidates|thoughts|total)TokenCount"\s*:\s*(?=[-\d]))/g
/** Members of a plain chunk. */
const PLAIN = new Set(['candidates', 'createTime', 'modelVersion', 'responseId', 'usageMetadata'])
const PLAIN_CANDIDATE = new Set(['content', 'index'])
const PLAIN_PART = new Set(['text', 'thought'])

/** True if a chunk has only text and counts, so that chunks of its shape need no full decoding. */
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
