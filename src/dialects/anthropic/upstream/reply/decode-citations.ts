/**
 * A citation of a text block as a canonical one.
 *
 * Source: Claude API reference, "Citations", read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import { stringOf, type JsonObject } from '../../../../chat/json.js'

/** A block is cited as a whole: Anthropic makes one block of each cited passage. */
export function citationOf(wire: JsonObject, length: number): Citation {
  const citation: Citation = { start: 0, end: length }
  // A passage of the client's own search results names its source, which need not be an address.
  const source = stringOf(wire.source) ?? ''
  const url = stringOf(wire.url) ?? (/^https?:\/\//.test(source) ? source : undefined)
  const title = stringOf(wire.title) ?? stringOf(wire.document_title)
  const citedText = stringOf(wire.cited_text)
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  if (citedText !== undefined) citation.citedText = citedText
  return citation
}
