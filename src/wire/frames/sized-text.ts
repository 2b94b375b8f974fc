/**
 * A text and its size, counted while it is put together. Whoever counts the bytes of a text of many parts makes
 * it one piece first; the parts are pieces already (docs/decisions/0037). Knows no member.
 */
import { isPlain, quote } from '../json/quote.js'

/** A text, and how many bytes it takes in UTF-8. */
export interface SizedText {
  readonly text: string
  readonly bytes: number
}

/** A text that is one piece, counted. */
export function sizedText(text: string): SizedText {
  return { text, bytes: Buffer.byteLength(text) }
}

/** Counts the parts of one text. What does not pass through here must be ASCII. */
export class TextSizer {
  /** Bytes beyond one for each character. */
  private beyond = 0

  /** The part as it is. */
  part(text: string): string {
    this.beyond += Buffer.byteLength(text) - text.length
    return text
  }

  /** The part as a JSON string, as `quote` writes it. */
  quoted(text: string): string {
    return isPlain(text) ? `"${this.part(text)}"` : this.part(JSON.stringify(text))
  }

  /** The same of a name, which comes again and again: written and counted once, and one piece. */
  name(text: string): string {
    const known = names.get(text) ?? newName(text)
    this.beyond += known.bytes - known.text.length
    return known.text
  }

  /** All parts together. */
  whole(text: string): SizedText {
    return { text, bytes: text.length + this.beyond }
  }
}

/** Enough for roles and models; whoever invents more gets them written each time. */
const MAX_NAMES = 256
const MAX_NAME = 64
const names = new Map<string, SizedText>()

function newName(text: string): SizedText {
  const bytes = Buffer.from(quote(text))
  const name = { text: bytes.toString('utf8'), bytes: bytes.length }
  if (names.size < MAX_NAMES && text.length <= MAX_NAME) names.set(text, name)
  return name
}
