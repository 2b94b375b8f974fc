/**
 * Finds the end of JSON strings in the bytes of a body and checks that they are valid, without decoding them.
 * Reads four bytes at a time, which takes a third of the time of `JSON.parse`.
 */

const BACKSPACE_LETTER = 98
const FORM_FEED_LETTER = 102
const NEW_LINE_LETTER = 110
const RETURN_LETTER = 114
const TAB_LETTER = 116
const UNICODE_LETTER = 117
const SPACE = 32
const QUOTE = 34
const SLASH = 47
const BACKSLASH = 92
const UNICODE_ESCAPE_BYTES = 6
/** Most strings are shorter. Reading four bytes at a time is faster only beyond this length. */
const SHORT = 24
const WORD_BYTES = 4

/** The strings of one body. */
export class StringScan {
  /** The difference in bytes between the last string with its escapes and decoded in UTF-8. */
  savedBytes = 0
  /** The end of the last escape of a high surrogate. */
  private surrogateEnd = -1
  private readonly bytes: Buffer
  /** The bytes from `head` on, four at a time; created for the first long string. */
  private words: Int32Array | null = null
  /** Bytes before the first word. */
  private readonly head: number

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.head = (WORD_BYTES - (bytes.byteOffset % WORD_BYTES)) % WORD_BYTES
  }

  /**
   * The offset of the quote that ends the string whose inside begins at `from`; -1 if there is none, or if
   * the string has a control character or an invalid escape.
   */
  end(from: number): number {
    const { bytes } = this
    this.savedBytes = 0
    this.surrogateEnd = -1
    let at = from
    let until = Math.min(bytes.length, from + SHORT)
    for (;;) {
      while (at < until) {
        const code = bytes[at] ?? 0
        if (code === QUOTE) return at
        if (code < SPACE) return -1
        if (code !== BACKSLASH) {
          at += 1
          continue
        }
        const length = this.escape(at)
        if (length === 0) return -1
        at += length
      }
      if (at >= bytes.length) return -1
      at = this.plain(at)
      until = Math.min(bytes.length, at + WORD_BYTES)
    }
  }

  /**
   * The first offset from `from` on with a quote, backslash or control character, or up to three bytes before
   * it.
   */
  private plain(from: number): number {
    const { bytes, head } = this
    if (from < head) return from
    this.words ??= new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
    const { words } = this
    let at = (from - head) >> 2
    // The subtraction sets the highest bit of a byte below 32, and of a byte that is 0 after the exclusive
    // or.
    for (; at < words.length; at += 1) {
      const word = words[at] ?? 0
      const quote = word ^ 0x22222222
      const backslash = word ^ 0x5c5c5c5c
      const control = (word - 0x20202020) & ~word
      const found =
        control | ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash)
      if ((found & 0x80808080) !== 0) break
    }
    return Math.max(from, head + at * WORD_BYTES)
  }

  /** The length of the escape at `at`; 0 for an invalid escape. */
  private escape(at: number): number {
    switch (this.bytes[at + 1]) {
      case QUOTE:
      case BACKSLASH:
      case SLASH:
      case BACKSPACE_LETTER:
      case FORM_FEED_LETTER:
      case NEW_LINE_LETTER:
      case RETURN_LETTER:
      case TAB_LETTER:
        this.savedBytes += 1
        return 2
      case UNICODE_LETTER:
        return this.unicode(at)
      default:
        return 0
    }
  }

  /** `\u0041` becomes one byte, `\u0416` two, `\u8239` three, and a pair like `\ud83d\udea2` four. */
  private unicode(at: number): number {
    let code = 0
    const end = at + UNICODE_ESCAPE_BYTES
    for (let place = at + 2; place < end; place += 1) {
      const digit = hexOf(this.bytes[place] ?? 0)
      if (digit === -1) return 0
      code = code * 16 + digit
    }
    const endsPair = code >= 0xdc00 && code <= 0xdfff && at === this.surrogateEnd
    if (code >= 0xd800 && code <= 0xdbff) this.surrogateEnd = end
    if (code < 0x80 || endsPair) this.savedBytes += 5
    else if (code < 0x800) this.savedBytes += 4
    else this.savedBytes += 3
    return UNICODE_ESCAPE_BYTES
  }
}

/** The value of a hexadecimal digit; -1 for any other byte. */
function hexOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
