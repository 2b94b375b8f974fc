/**
 * Reads JSON strings in the bytes of a body, once and without making text of them: where each ends, and whether a
 * parser would take it. Four bytes at a time, which takes a third of the time that `JSON.parse` takes.
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
/** Most keys and words end before a look at four bytes pays. */
const SHORT = 24
const WORD_BYTES = 4

/** The strings of one body. */
export class StringScan {
  /** Of the last string: how many bytes shorter it is once its escapes are decoded, in UTF-8. */
  savedBytes = 0
  /** Where the escape of the first half of a character ended last. */
  private halfEnd = -1
  private readonly bytes: Buffer
  /** The bytes from `head` on, four at a time; made for the first string that is long enough. */
  private words: Int32Array | null = null
  /** Bytes before the first word. */
  private readonly head: number

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.head = (WORD_BYTES - (bytes.byteOffset % WORD_BYTES)) % WORD_BYTES
  }

  /**
   * The place of the quote that ends the string whose inside begins at `from`; -1 if there is none, or if the string
   * has a control character or an escape that JSON does not have.
   */
  end(from: number): number {
    const { bytes } = this
    this.savedBytes = 0
    this.halfEnd = -1
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

  /** The first place at or after `from` that may not be plain; at most three bytes too early. */
  private plain(from: number): number {
    const { bytes, head } = this
    if (from < head) return from
    this.words ??= new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
    const { words } = this
    let at = (from - head) >> 2
    // A byte below 32, or one that is 0 after the exclusive or, borrows from its highest bit.
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

  /** The length of the escape at `at`; 0 if JSON has no such. */
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
    const isSecondHalf = code >= 0xdc00 && code <= 0xdfff && at === this.halfEnd
    if (code >= 0xd800 && code <= 0xdbff) this.halfEnd = end
    if (code < 0x80 || isSecondHalf) this.savedBytes += 5
    else if (code < 0x800) this.savedBytes += 4
    else this.savedBytes += 3
    return UNICODE_ESCAPE_BYTES
  }
}

/** -1 for a byte that is no hexadecimal digit. */
function hexOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
