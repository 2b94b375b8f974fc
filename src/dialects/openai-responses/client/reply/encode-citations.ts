/**
 * Encodes citations as `url_citation` annotations.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'

/** The JSON text of the annotation; null for a citation without a URL. */
export function encodeCitation({ url, title, start = 0, end }: Citation): string | null {
  if (url === undefined) return null
  const annotation: JsonObject = {
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index: start,
    end_index: end ?? start,
  }
  return JSON.stringify(annotation)
}
