/**
 * Detects whether a JSON text that arrives in fragments is complete. Each fragment is scanned once; the text
 * is parsed only when all its brackets are closed.
 */

const QUOTE = 34
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125
/** Longer than any number or word. The end of a longer scalar is not detected. */
const MAX_SCALAR_CHARS = 64

/** Tracks one text. */
export class JsonCompletion {
  private depth = 0
  private isInString = false
  private isEscaped = false
  private wasOpen = false
  /** All brackets were closed and the text was not valid JSON, which further text cannot change. */
  private isInvalid = false
  private checked = 0

  /** Scans the next fragment. */
  add(fragment: string): void {
    for (let at = 0; at < fragment.length; at += 1) {
      const code = fragment.charCodeAt(at)
      if (this.isInString) this.inside(code)
      else if (code === QUOTE) this.isInString = true
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        this.depth += 1
        this.wasOpen = true
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) this.depth -= 1
    }
  }

  /** Whether a string, an object or an array is open. */
  get isOpen(): boolean {
    return this.isInString || this.depth > 0
  }

  /** Whether `text`, all fragments so far, is a JSON value. */
  isComplete(text: string): boolean {
    if (this.isInvalid || this.isInString || this.depth !== 0 || text.length === this.checked) {
      return false
    }
    if (!this.wasOpen && text.length > MAX_SCALAR_CHARS) return false
    try {
      JSON.parse(text)
      return true
    } catch {
      this.checked = text.length
      this.isInvalid = this.wasOpen
      return false
    }
  }

  private inside(code: number): void {
    if (this.isEscaped) this.isEscaped = false
    else if (code === BACKSLASH) this.isEscaped = true
    else if (code === QUOTE) this.isInString = false
  }
}
