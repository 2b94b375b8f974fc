/**
 * Whether a JSON text that comes in pieces is whole. Each piece is looked at once; the text is parsed only
 * where its brackets are all closed. Knows nothing of what the text says.
 */

const QUOTE = 34
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
/** Longer than any number or word; a longer text that is neither object nor array is whole when its source ends. */
const MAX_SCALAR_CHARS = 64

/** Follows one text. */
export class JsonCompletion {
  private depth = 0
  private isInString = false
  private isEscaped = false
  private wasOpen = false
  /** It closed once and was no JSON: more text does not mend it. */
  private isBroken = false
  private checked = 0

  /** Looks at the next piece. */
  add(piece: string): void {
    for (let at = 0; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at)
      if (this.isInString) this.inside(code)
      else if (code === QUOTE) this.isInString = true
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        this.depth += 1
        this.wasOpen = true
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) this.depth -= 1
    }
  }

  /** Whether `text`, which is all pieces so far, is a JSON value. */
  isComplete(text: string): boolean {
    if (this.isBroken || this.isInString || this.depth !== 0 || text.length === this.checked) {
      return false
    }
    if (!this.wasOpen && text.length > MAX_SCALAR_CHARS) return false
    try {
      JSON.parse(text)
      return true
    } catch {
      this.checked = text.length
      this.isBroken = this.wasOpen
      return false
    }
  }

  private inside(code: number): void {
    if (this.isEscaped) this.isEscaped = false
    else if (code === BACKSLASH) this.isEscaped = true
    else if (code === QUOTE) this.isInString = false
  }
}
