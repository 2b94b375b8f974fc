/** Encodes citations as the `annotations` of a message. */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'

/**
 * A citation as a `url_citation`; empty if it has no URL. `offset` is the length of the message's text before
 * the cited block, in UTF-16 units.
 */
export function encodeCitation(citation: Citation, offset: number): JsonObject[] {
  if (citation.url === undefined) return []
  const inner: JsonObject = { url: citation.url, title: citation.title ?? '' }
  inner['start_index'] = offset + (citation.start ?? 0)
  inner['end_index'] = offset + (citation.end ?? citation.start ?? 0)
  return [{ type: 'url_citation', url_citation: inner }]
}
