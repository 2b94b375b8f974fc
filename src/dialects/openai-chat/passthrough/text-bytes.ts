/** Counts the bytes of text in frames and replies, for replies without usage. */
import type { JsonValue } from '../../../chat/json.js'
import { stringBytes as bytesAfter } from '../../../wire/frames/string-bytes.js'

/** The members of a message or delta that hold text, up to the value's first quote. */
const TEXT_MEMBERS = /"(?:content|arguments|reasoning_content|reasoning|refusal|input)"\s*:\s*"/g

/** The bytes of text in JSON that is bytes read as Latin-1, from an offset on; 0 for a negative offset. */
export function textBytes(data: string, from: number): number {
  return bytesAfter(data, from, TEXT_MEMBERS)
}

/**
 * The same for the choices of a whole reply. Serialises them, so it is called only for a reply without usage.
 */
export function replyTextBytes(choices: JsonValue): number {
  return textBytes(Buffer.from(JSON.stringify(choices)).toString('latin1'), 0)
}
