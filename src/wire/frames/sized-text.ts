/**
 * Texts with their size in bytes, which is counted while the text is put together: counting a concatenated
 * text would copy it first (docs/explanation/performance.md).
 */
import { isPlain, quote } from '../json/quote.js'

/** A text and its size in UTF-8 bytes. */
export interface SizedText {
  readonly text: string
  readonly bytes: number
}

/** Counts a text that is not concatenated. */
export function sizedText(text: string): SizedText {
  return { text, bytes: Buffer.byteLength(text) }
}

/** Counts the parts of one text. Parts that are not passed to it must be ASCII. */
export class TextSizer {
  /** Bytes in excess of one per UTF-16 unit. */
  private extraBytes = 0

  /** Counts and returns the part. */
  part(text: string): string {
    this.extraBytes += Buffer.byteLength(text) - text.length
    return text
  }

  /** Counts and returns the part as a JSON string. */
  quoted(text: string): string {
    return isPlain(text) ? `"${this.part(text)}"` : this.part(JSON.stringify(text))
  }

  /** The same for a name that many replies contain; its JSON string is cached. */
  name(text: string): string {
    const known = names.get(text) ?? newName(text)
    this.extraBytes += known.bytes - known.text.length
    return known.text
  }

  /** The whole text with its size. */
  whole(text: string): SizedText {
    return { text, bytes: text.length + this.extraBytes }
  }
}

/** Enough for roles and models; further names are not cached. */
const MAX_NAMES = 256
const MAX_NAME = 64
const names = new Map<string, SizedText>()

function newName(text: string): SizedText {
  const bytes = Buffer.from(quote(text))
  const name = { text: bytes.toString('utf8'), bytes: bytes.length }
  if (names.size < MAX_NAMES && text.length <= MAX_NAME) names.set(text, name)
  return name
}
