/**
 * Where a JSON string ends. Knows nothing else of JSON.
 */

const QUOTE = 34
const BACKSLASH = 92
/** Keys and words are shorter; beyond, a search for the quote costs less than a look at each byte. */
const SHORT = 16
/** Behind an escaped quote there are often more: so many bytes are looked at before the next search. */
const LOOKED_AT = 256

/**
 * The place of the quote that ends the string whose inside begins at `from`; -1 where there is none within `most`
 * bytes of a string with escaped quotes. `text` is the same bytes as Latin-1. Looks at each byte at most twice.
 */
export function stringEnd(bytes: Uint8Array, text: string, from: number, most: number): number {
  const near = Math.min(bytes.length, from + SHORT)
  let at = from
  while (at < near && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at += 1
  if (at < near && bytes[at] === QUOTE) return at
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return -1
    // With an escape in it, it is no inline data, and too long for anything else.
    if (quote - from > most && bytes.subarray(at, quote).includes(BACKSLASH)) return -1
    let back = quote
    while (back > at && bytes[back - 1] === BACKSLASH) back -= 1
    if ((quote - back) % 2 === 0) return quote
    at = quote + 1
    if (at - from > most) return -1
    for (const until = Math.min(bytes.length, at + LOOKED_AT); at < until;) {
      if (bytes[at] === QUOTE) return at
      at += bytes[at] === BACKSLASH ? 2 : 1
    }
  }
}
