/**
 * Decodes citations of text blocks.
 *
 * Source: Claude API reference, "Citations", read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import { stringOf, type JsonObject } from '../../../../chat/json.js'

/**
 * The canonical citation of a whole block, `length` UTF-16 units long: each cited passage is a block of its
 * own.
 */
export function citationOf(wire: JsonObject, length: number): Citation {
  const citation: Citation = { start: 0, end: length }
  // The source of a client's own search result may be any string.
  const source = stringOf(wire.source) ?? ''
  const url = stringOf(wire.url) ?? (/^https?:\/\//.test(source) ? source : undefined)
  const title = stringOf(wire.title) ?? stringOf(wire.document_title)
  const citedText = stringOf(wire.cited_text)
  if (url !== undefined) citation.url = url
  if (title !== undefined) citation.title = title
  if (citedText !== undefined) citation.citedText = citedText
  return citation
}
