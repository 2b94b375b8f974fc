/**
 * Limits the text of a body while it arrives, so that a body with too much text is refused before it is
 * complete: scanning 31 MB would delay other requests. The count is a lower bound.
 */
import { isAscii } from 'node:buffer'
import { malformed } from '../../../errors.js'
import { DATA_BYTES } from './long-strings.js'

const LAST_ASCII = 127

/** The text of one body. */
export class TextLimit {
  /** Whether all chunks were ASCII. */
  isAscii = true
  private readonly maxTextBytes: number
  private textBytes = 0

  constructor(maxTextBytes: number) {
    this.maxTextBytes = maxTextBytes
  }

  /** Adds a chunk. Throws `malformed_request` if there is too much text. */
  add(chunk: Uint8Array): void {
    if (isAscii(chunk)) return
    this.isAscii = false
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

/**
 * The distance between the first and last byte beyond ASCII. Inline data is ASCII and too long to fit between
 * them.
 */
function spanOf(bytes: Uint8Array): number {
  const first = bytes.findIndex((byte) => byte > LAST_ASCII)
  return first === -1 ? 0 : bytes.findLastIndex((byte) => byte > LAST_ASCII) + 1 - first
}
