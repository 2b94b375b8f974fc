/**
 * Puts the frames of a stream together, most of which differ in one text alone. Texts of frames that are alike are
 * joined at once: piece by piece, each would be copied on its own (docs/decisions/0037). Knows no format.
 */
import { isPlain } from '../json/quote.js'

/** Frames that are ready to be sent. */
export class TextFrames {
  private out = ''
  private before = ''
  private after = ''
  /** Between two texts; made when it is first needed. */
  private between = ''
  private text = ''
  private texts: string[] = []

  /** What is around the texts that come next: a frame up to its text's first character, and the rest of it. */
  around(before: string, after: string): void {
    this.write()
    this.before = flat(before)
    this.after = after
    this.between = ''
  }

  /** A frame with this text as the inside of a JSON string; an empty text makes none. */
  add(text: string): void {
    if (text === '') return
    if (this.text === '') this.text = text
    else if (this.texts.length > 0) this.texts.push(text)
    else this.texts.push(this.text, text)
  }

  /** Frames as they are. */
  put(frames: string): void {
    this.write()
    this.out += frames
  }

  /** What is ready, which is then forgotten. */
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
    const isAsIs = isPlain(texts.join(''))
    this.out += before + (isAsIs ? texts : texts.map(escaped)).join(this.between) + after
  }
}

/** The same in one piece: the pieces that a text was put together of are copied one by one each time. */
function flat(text: string): string {
  return Buffer.from(text).toString()
}

/** The inside of the text as a JSON string. */
function escaped(text: string): string {
  return isPlain(text) ? text : JSON.stringify(text).slice(1, -1)
}
