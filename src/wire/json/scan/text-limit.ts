/**
 * The text of a body while it arrives: a body with more text than is accepted is refused before all of it is here, since
 * what it costs to look at 31 MB holds up other requests. Counts less than there is, never more.
 */
import { isAscii } from 'node:buffer'
import { malformed } from '../malformed.js'
import { DATA_BYTES } from '../inline-data.js'

const LAST_ASCII = 127

/** Text that has arrived of one body. */
export class TextLimit {
  private readonly maxTextBytes: number
  private textBytes = 0

  constructor(maxTextBytes: number) {
    this.maxTextBytes = maxTextBytes
  }

  /** A chunk arrived. Throws `malformed_request` if there is too much text. */
  add(chunk: Uint8Array): void {
    if (isAscii(chunk)) return
    for (let at = 0; at < chunk.length; at += DATA_BYTES) {
      this.textBytes += spanOf(chunk.subarray(at, at + DATA_BYTES))
    }
    if (this.textBytes <= this.maxTextBytes) return
    throw malformed(
      `too_complex: the body has more than ${this.maxTextBytes} bytes beside inline data (strings of at least ` +
        `${DATA_BYTES} characters of base64)`,
    )
  }
}

/** From the first byte that is not ASCII to the last: inline data, which is ASCII, is too long to be between them. */
function spanOf(bytes: Uint8Array): number {
  const first = bytes.findIndex((byte) => byte > LAST_ASCII)
  return first === -1 ? 0 : bytes.findLastIndex((byte) => byte > LAST_ASCII) + 1 - first
}
