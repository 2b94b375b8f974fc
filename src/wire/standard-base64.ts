/** Converts the forms of base64 that clients send to the canonical one. Linear in the size of the data. */

/**
 * Canonical base64: clients also send newlines, percent escapes, the URL-safe alphabet and data without
 * padding.
 */
export function standardBase64(data: string): string {
  // `includes` is 20 times as fast as an expression with a character class.
  const isBroken = BREAKS.some((each) => data.includes(each))
  const isForUrls = URL_SAFE.some((each) => data.includes(each))
  const quick = isForUrls && !isBroken ? recoded(data) : null
  const out = quick ?? (isBroken || isForUrls ? rewritten(data) : data)
  const open = out.length % 4
  return open === 0 ? out : out.padEnd(out.length + 4 - open, '=')
}

const BREAKS = [' ', '\n', '\r', '\t', '%']
const URL_SAFE = ['-', '_']

/**
 * Through the decoded bytes, which takes a tenth of the time of a loop over characters; null for invalid
 * base64.
 */
function recoded(data: string): string | null {
  const out = Buffer.from(data, 'base64url').toString('base64')
  return out.length === Math.ceil(data.length / 4) * 4 ? out : null
}

const [TAB, LINE_FEED, CARRIAGE_RETURN, BLANK, PERCENT] = [9, 10, 13, 32, 37]
const [PLUS, MINUS, SLASH, EQUALS, UNDERSCORE] = [43, 45, 47, 61, 95]

/** One pass over the bytes: replacing millions of characters of a string takes seconds. */
function rewritten(data: string): string {
  const bytes = Buffer.from(data)
  let to = 0
  for (let from = 0; from < bytes.length; from += 1) {
    let code = bytes[from] ?? 0
    if (code === BLANK || code === TAB || code === LINE_FEED || code === CARRIAGE_RETURN) continue
    if (code === MINUS) code = PLUS
    else if (code === UNDERSCORE) code = SLASH
    else if (code === PERCENT) {
      const escaped = escapedAt(bytes, from + 1)
      if (escaped !== null) {
        code = escaped
        from += 2
      }
    }
    bytes[to] = code
    to += 1
  }
  return bytes.toString('utf8', 0, to)
}

/** The character of the escapes `2B` and `3D`, in either case; null for any other escape. */
function escapedAt(bytes: Buffer, at: number): number | null {
  const [first, second] = [bytes[at], (bytes[at + 1] ?? 0) | 32]
  if (first === 50 && second === 98) return PLUS
  return first === 51 && second === 100 ? EQUALS : null
}
