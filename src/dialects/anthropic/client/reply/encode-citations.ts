/** Encodes citations of a text block. */
import type { Citation } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'

/** A citation with a URL as a web search result; null for one without a URL. */
export function encodeCitation({ url, title, citedText }: Citation): JsonObject | null {
  if (url === undefined) return null
  return {
    type: 'web_search_result_location',
    cited_text: citedText ?? '',
    encrypted_index: '',
    title: title ?? null,
    url,
  }
}
