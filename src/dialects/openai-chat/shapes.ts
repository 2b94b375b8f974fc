/**
 * Frames of one stream are alike: what differs from one to the next is what a string or two of them say.
 * Once such a frame has been read as JSON, others of its shape are known to be whole and ordinary by what
 * stands around those strings, which costs less than a search for what would make them extraordinary.
 * Knows no meaning of any member.
 */

/** What stands before a string that may differ from frame to frame. A quote inside a string has a backslash. */
const SLOT = /"(?:content|arguments|reasoning_content|reasoning|refusal|obfuscation|id)"\s*:\s*"/g

/** A stream has text and thoughts, calls and choices by turns; one more than four is read every time. */
const MAX_SHAPES = 4
/** So many shapes without a frame that fits one: every frame of this upstream has one of its own. */
const MAX_VAIN = 16

/** The inside of a JSON string, up to its closing quote; the text is Latin-1 for bytes. */
const INSIDE =
  // eslint-disable-next-line no-control-regex
  /[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*/y

/** What stands between the strings of a frame, and what of it is not the client's. */
interface Shape {
  readonly fixed: readonly string[]
  readonly trim: string
}

/** The shapes of one stream's ordinary frames. */
export class Shapes {
  private readonly known: Shape[] = []
  private next = 0
  /** Shapes learnt since a frame last fitted one. */
  private vain = 0

  /**
   * What was learnt of frames like this one; null for a frame that has to be read. What is told of is
   * whole JSON with the very members of the frame that was read.
   */
  find(data: string): string | null {
    for (const { fixed, trim } of this.known) {
      if (!fits(fixed, data)) continue
      this.vain = 0
      return trim
    }
    return null
  }

  /** Learns the shape of a frame that was read and is ordinary; `trim` is told of all that fit it. */
  learn(data: string, trim: string): void {
    if (this.vain === MAX_VAIN) return
    this.vain += 1
    this.known[this.next] = { fixed: fixedParts(data), trim }
    this.next = (this.next + 1) % MAX_SHAPES
  }
}

/** A slice that is compared costs a tenth of `startsWith` with a long text. */
function fits(fixed: readonly string[], data: string): boolean {
  let at = 0
  for (let part = 0; part < fixed.length; part += 1) {
    const text = fixed[part] ?? ''
    if (part > 0) at = insideEnd(data, at)
    const end = at + text.length
    if (data.slice(at, end) !== text) return false
    at = end
  }
  return at === data.length
}

/** Where the string ends whose inside begins at `from`. */
function insideEnd(data: string, from: number): number {
  INSIDE.lastIndex = from
  INSIDE.test(data)
  return INSIDE.lastIndex
}

/** What of whole JSON is outside the strings that may differ. */
function fixedParts(data: string): string[] {
  const parts: string[] = []
  let from = 0
  SLOT.lastIndex = 0
  while (SLOT.test(data)) {
    const start = SLOT.lastIndex
    parts.push(data.slice(from, start))
    from = insideEnd(data, start)
    SLOT.lastIndex = from
  }
  parts.push(data.slice(from))
  return parts
}
