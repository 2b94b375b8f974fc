/**
 * How many bytes of words a frame or a reply holds, for when nobody counts its tokens.
 */
import type { JsonValue } from '../../../chat/json.js'
import { stringBytes as bytesAfter } from '../../../wire/frames/string-bytes.js'

/** The members of a message or delta that hold words, up to the value's first quote. */
const WORDS = /"(?:content|arguments|reasoning_content|reasoning|refusal|input)"\s*:\s*"/g

/** Of JSON text as Latin-1, from a place on; 0 where that is none. */
export function textBytes(data: string, from: number): number {
  return bytesAfter(data, from, WORDS)
}

/** The same of a whole reply's choices; they are written out again, so only where they have to be. */
export function replyTextBytes(choices: JsonValue): number {
  return textBytes(Buffer.from(JSON.stringify(choices)).toString('latin1'), 0)
}
