/**
 * Recognises frames that have the same JSON text as an earlier frame except for some strings and numbers, the
 * slots. Such a frame is valid JSON without being parsed, and is read by parsing its slots alone, which costs
 * a fraction of `JSON.parse`.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'

/** Shapes that are kept at a time: text, reasoning, calls and choices alternate in a stream. */
const MAX_SHAPES = 4
/**
 * After this many shapes without a match, the upstream's frames have no common shapes, and no more are added.
 */
const MAX_UNMATCHED = 16
/** Longer frames, such as images, are not repeated. */
const MAX_CHARS = 8_192

/** V8 copies shorter slices, so that they do not keep the whole text in memory. */
const COPIED_CHARS = 13

/** Characters below are control characters, which JSON strings must escape. */
const SPACE = 32
const QUOTE = 34
const COMMA = 44
const ZERO = 48
const ONE = 49
const NINE = 57
const BACKSLASH = 92
const CLOSE_OBJECT = 125
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** A frame split at its slots. */
interface Cut {
  /** The texts before, between and after the slots. */
  readonly around: readonly string[]
  /** The texts of the slots. */
  readonly inside: readonly string[]
  /** Whether each slot is the inside of a string; else it is a number. */
  readonly strings: readonly boolean[]
}

interface Shape<Note> {
  /** The first frame of the shape, and which of its slots differ in later frames. */
  readonly first: Cut
  readonly differs: readonly boolean[]
  /** The texts before, between and after the differing slots, and which of these slots are strings. */
  readonly around: readonly string[]
  readonly strings: readonly boolean[]
  readonly note: Note
  /** Built when a frame of the shape is first read; null if a slot could not be located in the value. */
  form: Form | null | undefined
}

/** A value of the shape, which is reused for each frame, and the members of its slots. */
interface Form {
  readonly value: JsonObject
  readonly slots: readonly { readonly holder: JsonObject; readonly key: string }[]
}

/** The shapes of one stream's frames, each with a note by the caller. */
export class FrameShapes<Note> {
  private readonly slot: RegExp
  private readonly known: Shape<Note>[] = []
  private next = 0
  /** Shapes added since the last match. */
  private unmatched = 0
  private found: Shape<Note> | null = null
  /** Start and end offsets of the slots of the latest frame. */
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  /**
   * `slot`: a global expression that matches the text before a slot: the member's name and colon, and the
   * quote if the slot is a string.
   */
  constructor(slot: RegExp) {
    this.slot = slot
  }

  /**
   * The note of the frame's shape, which means that it is valid JSON; null for a frame that must be parsed.
   */
  find(data: string): Note | null {
    this.found = null
    for (const shape of this.known) {
      if (!this.fits(shape, data)) continue
      this.unmatched = 0
      this.found = shape
      return shape.note
    }
    return null
  }

  /** `find` and `value` in one call; null for a frame that must be parsed. */
  read(data: string): JsonObject | null {
    return this.find(data) === null ? null : this.value(data)
  }

  /**
   * The value of the frame that `find` found last, as `JSON.parse` would return it; null if it must be
   * parsed. The next frame of the shape is read into the same object, so the caller must not keep it.
   */
  value(data: string): JsonObject | null {
    const shape = this.found
    if (shape === null) return null
    if (shape.form === undefined) shape.form = formOf(shape.around, shape.strings)
    const { strings, form } = shape
    if (form === null) return null
    for (let at = 0; at < strings.length; at += 1) {
      const start = this.starts[at] ?? 0
      const end = this.ends[at] ?? 0
      const slot = form.slots[at]
      if (slot === undefined) return null
      slot.holder[slot.key] = strings[at] === true ? textIn(data, start, end) : Number(data.slice(start, end))
    }
    return form.value
  }

  /** Adds the shape of a frame that is a JSON object; `note` is returned for all frames of the shape. */
  add(data: string, note: Note): void {
    if (this.unmatched === MAX_UNMATCHED || data.length > MAX_CHARS) return
    const cut = this.cut(data)
    const index = this.known.findIndex(({ first }) => isSame(first.around, cut.around))
    const known = this.known[index]
    if (known !== undefined) {
      const { first, differs } = known
      const more = differs.map((differs, at) => differs || first.inside[at] !== cut.inside[at])
      this.known[index] = shapeOf(first, more, note)
      return
    }
    this.unmatched += 1
    this.known[this.next] = shapeOf(
      cut,
      cut.inside.map(() => false),
      note,
    )
    this.next = (this.next + 1) % MAX_SHAPES
  }

  /** Compares slices, which costs a tenth of `startsWith` with a long text. */
  private fits({ around, strings }: Shape<Note>, data: string): boolean {
    let at = 0
    for (let part = 0; part < around.length; part += 1) {
      const text = around[part] ?? ''
      if (part > 0) {
        this.starts[part - 1] = at
        at = strings[part - 1] === true ? insideEnd(data, at) : numberEnd(data, at)
        this.ends[part - 1] = at
      }
      const end = at + text.length
      if (data.slice(at, end) !== text) return false
      at = end
    }
    return at === data.length
  }

  private cut(data: string): Cut {
    const around: string[] = []
    const inside: string[] = []
    const strings: boolean[] = []
    let from = 0
    this.slot.lastIndex = 0
    while (this.slot.test(data)) {
      const start = this.slot.lastIndex
      const isString = data.charCodeAt(start - 1) === QUOTE
      around.push(data.slice(from, start))
      from = isString ? insideEnd(data, start) : numberEnd(data, start)
      inside.push(data.slice(start, from))
      strings.push(isString)
      this.slot.lastIndex = from
    }
    around.push(data.slice(from))
    return { around, inside, strings }
  }
}

/**
 * The shape of frames that differ from the first in some slots. The texts of the other slots are part of the
 * shape.
 */
function shapeOf<Note>(first: Cut, differs: readonly boolean[], note: Note): Shape<Note> {
  const around: string[] = []
  const strings: boolean[] = []
  let text = first.around[0] ?? ''
  for (const [at, inside] of first.inside.entries()) {
    const after = first.around[at + 1] ?? ''
    if (differs[at] !== true) {
      text += inside + after
      continue
    }
    around.push(text)
    strings.push(first.strings[at] === true)
    text = after
  }
  around.push(text)
  return { first, differs, around, strings, note, form: undefined }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, at) => text === other[at])
}

/** Builds a value of the shape with a unique mark in each slot, and locates the marks. */
function formOf(around: readonly string[], strings: readonly boolean[]): Form | null {
  const marks = new Map<JsonValue, number>()
  let text = around[0] ?? ''
  for (const [at, isString] of strings.entries()) {
    const mark = isString ? `\uFDD0${at}` : (at + 1) * 1e-300
    marks.set(mark, at)
    text += String(mark) + (around[at + 1] ?? '')
  }
  const value = JSON.parse(text) as JsonObject
  const slots: { holder: JsonObject; key: string }[] = []
  const found = findMarks(value, marks, slots)
  // A duplicate member hides one of the marks.
  const isEach = found === strings.length && new Set(Object.keys(slots)).size === found
  return isEach ? { value, slots } : null
}

/** The number of marks in a value; `slots` gets the member of each mark. */
function findMarks(
  value: JsonValue | undefined,
  marks: ReadonlyMap<JsonValue, number>,
  slots: { holder: JsonObject; key: string }[],
): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + findMarks(item, marks, slots), 0)
  let found = 0
  for (const [key, inner = null] of Object.entries(value)) {
    const at = marks.get(inner)
    if (at === undefined) found += findMarks(inner, marks, slots)
    else {
      slots[at] = { holder: value, key }
      found += 1
    }
  }
  return found
}

/**
 * The end of the inside of a string: the closing quote, or the first invalid character. Faster than an
 * expression.
 */
function insideEnd(data: string, from: number): number {
  let at = from
  for (;;) {
    const code = data.charCodeAt(at)
    if (code === BACKSLASH) {
      const end = endOf(ESCAPE, data, at)
      if (end === at) return at
      at = end
    } else if (code === QUOTE || !(code >= SPACE)) return at
    else at += 1
  }
}

/**
 * The decoded inside of a string. A long one is parsed, because a slice would keep the whole text in memory.
 */
function textIn(data: string, start: number, end: number): string {
  const inside = data.slice(start, end)
  if (inside.length < COPIED_CHARS && !inside.includes('\\')) return inside
  return JSON.parse(data.slice(start - 1, end + 1)) as string
}

/** The end of a number; the end of the text if there is none, so that the frame does not match. */
function numberEnd(data: string, from: number): number {
  if (isDigit(data.charCodeAt(from), ONE)) {
    let at = from + 1
    while (isDigit(data.charCodeAt(at), ZERO)) at += 1
    // Most numbers are integers.
    const code = data.charCodeAt(at)
    if (code === COMMA || code === CLOSE_OBJECT) return at
  }
  const end = endOf(NUMBER, data, from)
  return end === from ? data.length : end
}

function isDigit(code: number, min: number): boolean {
  return code >= min && code <= NINE
}

/** The end of the match of a sticky expression at `from`; `from` if it does not match. */
function endOf(pattern: RegExp, data: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(data) ? pattern.lastIndex : from
}

/**
 * The JSON object of a frame that passes through, whose bytes are read as Latin-1, with its strings decoded
 * as UTF-8; null if the frame is not a JSON object.
 */
export function parseLatin1(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(data, 'latin1').toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
