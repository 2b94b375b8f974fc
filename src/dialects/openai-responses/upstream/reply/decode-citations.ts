/** Decodes the annotations of a text. */
import type { Citation } from '../../../../chat/event.js'
import { type JsonObject, numberOf, stringOf } from '../../../../chat/json.js'

/** A source by its URL, or a file by its name; null for an annotation with neither. */
export function citationOf(annotation: JsonObject): Citation | null {
  const url = stringOf(annotation['url'])
  const title = stringOf(annotation['title']) ?? stringOf(annotation['filename'])
  if (url === undefined && title === undefined) return null
  const citation: Citation = {}
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  const start = numberOf(annotation['start_index'])
  const end = numberOf(annotation['end_index'])
  if (start !== undefined) citation.start = start
  if (end !== undefined) citation.end = end
  return citation
}
