/**
 * How many bytes of words a frame or a reply holds, for when nobody counts its tokens.
 * Found by search: nothing else of an ordinary delta is parsed.
 */
import type { JsonValue } from '../../chat/json.js'

/** The members of a message or delta that hold words, up to the value's first quote. */
const WORDS = /"(?:content|arguments|reasoning_content|reasoning|refusal|input)"\s*:\s*"/g
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LOWER_U = 0x75

/**
 * Of JSON text as Latin-1, whose length is that of its bytes, from a place on; 0 where that is none.
 * Escapes count as what they stand for, in bytes or nearly so.
 */
export function wordBytes(data: string, from: number): number {
  if (from < 0) return 0
  let bytes = 0
  WORDS.lastIndex = from
  while (WORDS.test(data)) {
    let at = WORDS.lastIndex
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
    WORDS.lastIndex = at
  }
  return bytes
}

/** The same of a whole reply's choices; they are written out again, so only where they have to be. */
export function wordsIn(choices: JsonValue): number {
  return wordBytes(Buffer.from(JSON.stringify(choices)).toString('latin1'), 0)
}
