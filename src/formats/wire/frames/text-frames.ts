/**
 * Concatenates the frames of a stream. Consecutive frames that differ in one text only are joined in one
 * operation, which is faster than appending each (docs/explanation/performance.md).
 */
import { isPlain } from '../json/write-json.js'

/** Frames that are ready to be sent. */
export class TextFrames {
  private out = ''
  private before = ''
  private after = ''
  /** The text between two such texts; built when it is first needed. */
  private between = ''
  private text = ''
  private texts: string[] = []

  /** Sets the frame of the following texts: the part before the text and the part after it. */
  around(before: string, after: string): void {
    this.write()
    this.before = flat(before)
    this.after = after
    this.between = ''
  }

  /** Adds a frame with this text as the inside of a JSON string. An empty text adds no frame. */
  add(text: string): void {
    if (text === '') return
    if (this.text === '') this.text = text
    else if (this.texts.length > 0) this.texts.push(text)
    else this.texts.push(this.text, text)
  }

  /** Adds whole frames. */
  put(frames: string): void {
    this.write()
    this.out += frames
  }

  /** Returns and removes the frames so far. */
  take(): string {
    this.write()
    const { out } = this
    this.out = ''
    return out
  }

  private write(): void {
    const { text, texts, before, after } = this
    if (text === '') return
    this.text = ''
    if (texts.length === 0) {
      this.out += before + escaped(text) + after
      return
    }
    this.texts = []
    if (this.between === '') this.between = flat(after + before)
    const needsNoEscape = isPlain(texts.join(''))
    this.out += before + (needsNoEscape ? texts : texts.map(escaped)).join(this.between) + after
  }
}

/** The text as a flat string. V8 would otherwise copy the parts of a concatenated string on each use. */
function flat(text: string): string {
  return Buffer.from(text).toString()
}

/** The text as the inside of a JSON string. */
function escaped(text: string): string {
  return isPlain(text) ? text : JSON.stringify(text).slice(1, -1)
}
