/** Decodes the `annotations` of a message. */
import type { Citation } from '../../../../chat/event.js'
import { type JsonValue, numberOf, objectOf, stringOf } from '../../../../chat/json.js'

/** A source by its URL; null for other annotations. */
export function citationOf(item: JsonValue): Citation | null {
  const inner = objectOf(objectOf(item)['url_citation'])
  const url = stringOf(inner['url'])
  if (url === undefined) return null
  const citation: Citation = { url }
  const title = stringOf(inner['title'])
  const start = numberOf(inner['start_index'])
  const end = numberOf(inner['end_index'])
  if (title !== undefined) citation.title = title
  if (start !== undefined) citation.start = start
  if (end !== undefined) citation.end = end
  return citation
}
