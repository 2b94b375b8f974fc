/** Finds the end of a JSON string. */

const QUOTE = 34
const BACKSLASH = 92
/** Most strings are shorter. Beyond this length, a search for the quote is faster than a loop over bytes. */
const SHORT = 16
/** Bytes that are read one by one after an escaped quote, because more escaped quotes often follow. */
const LOOP_BYTES = 256

/** A body in both forms. */
export interface ScannedBody {
  readonly bytes: Uint8Array
  /** The bytes as Latin-1. */
  readonly text: string
}

/**
 * The offset of the quote that ends the string whose inside begins at `from`; -1 if there is none within
 * `limit` bytes of a string with escapes. Reads each byte at most twice.
 */
export function stringEnd({ bytes, text }: ScannedBody, from: number, limit: number): number {
  const near = Math.min(bytes.length, from + SHORT)
  let at = from
  while (at < near && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at += 1
  if (at < near && bytes[at] === QUOTE) return at
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return -1
    // A string with an escape is not inline data, so its length is limited.
    if (quote - from > limit && bytes.subarray(at, quote).includes(BACKSLASH)) return -1
    let back = quote
    while (back > at && bytes[back - 1] === BACKSLASH) back -= 1
    if ((quote - back) % 2 === 0) return quote
    at = quote + 1
    if (at - from > limit) return -1
    for (const until = Math.min(bytes.length, at + LOOP_BYTES); at < until;) {
      if (bytes[at] === QUOTE) return at
      at += bytes[at] === BACKSLASH ? 2 : 1
    }
  }
}
