/**
 * Texts with their size in bytes, which is counted while the text is put together: counting a concatenated
 * text would copy it first (docs/explanation/performance.md).
 */
import { isPlain, quote } from '../json/write-json.js'

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

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LOWER_U = 0x75

/**
 * The bytes of the strings whose members match, from the offset `from` on; 0 if `from` is negative. `data` is
 * JSON as bytes read as Latin-1. `members` is a global expression that matches a member up to the first quote
 * of its value. A `\u` escape counts as 3 bytes, any other escape as 1.
 */
export function stringBytes(data: string, from: number, members: RegExp): number {
  if (from < 0) return 0
  let bytes = 0
  members.lastIndex = from
  while (members.test(data)) {
    let at = members.lastIndex
    for (;;) {
      const code = data.charCodeAt(at)
      if (code === QUOTE || Number.isNaN(code)) break
      if (code !== BACKSLASH) {
        bytes += 1
        at += 1
      } else if (data.charCodeAt(at + 1) === LOWER_U) {
        bytes += 3
        at += 6
      } else {
        bytes += 1
        at += 2
      }
    }
    members.lastIndex = at
  }
  return bytes
}
