/**
 * Frames of one stream are alike: what differs from one to the next is what a string says, and a count.
 * Once two such frames have been parsed, others of their shape are known to be whole JSON by what stands
 * around the places that differ, and are read by looking at those places alone, for a fraction of the cost.
 * Knows no meaning of any member.
 */
import type { JsonObject, JsonValue } from '../../chat/json.js'

/** A stream has text and thoughts, calls and choices by turns; one more than four is parsed every time. */
const MAX_SHAPES = 4
/** So many shapes without a frame that fits one: every frame of this upstream has one of its own. */
const MAX_VAIN = 16
/** A longer frame is one of its kind: a picture, or all that an answer rests on. */
const MAX_CHARS = 8_192

/** V8 copies a piece of a text that is shorter, as most words are. */
const COPIED_CHARS = 13

/** Below it are the control characters, which no JSON string holds as they are. */
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

/** A frame, cut where it may differ from others. */
interface Cut {
  /** What stands before, between and after the places. */
  readonly around: readonly string[]
  /** What stands in the places. */
  readonly inside: readonly string[]
  /** Of each place, whether it is the inside of a string; else it is a number. */
  readonly strings: readonly boolean[]
}

interface Shape<Note> {
  /** The first frame of the shape, and which of its places later frames filled otherwise. */
  readonly first: Cut
  readonly differs: readonly boolean[]
  /** What stands before, between and after the places that differ, and which of these are strings. */
  readonly around: readonly string[]
  readonly strings: readonly boolean[]
  readonly note: Note
  /** Made when a frame of the shape is first read; null where a place could not be told. */
  form: Form | null | undefined
}

/** The value of the frame that was read last, and the places in it that differ. */
interface Form {
  readonly value: JsonObject
  readonly places: readonly { readonly holder: JsonObject; readonly key: string }[]
}

/** The shapes of one stream's frames, each with a note of what was learnt of it. */
export class FrameShapes<Note> {
  private readonly slot: RegExp
  private readonly known: Shape<Note>[] = []
  private next = 0
  /** Shapes learnt since a frame last fitted one. */
  private vain = 0
  private found: Shape<Note> | null = null
  /** Where the places of the frame at hand begin and end. */
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  /**
   * `slot` (a global expression) finds what stands before a place that may differ: a member's name and colon,
   * and the quote where the place is a string.
   */
  constructor(slot: RegExp) {
    this.slot = slot
  }

  /** The note on frames like this one, which is whole JSON then; null for a frame that has to be parsed. */
  find(data: string): Note | null {
    this.found = null
    for (const shape of this.known) {
      if (!this.fits(shape, data)) continue
      this.vain = 0
      this.found = shape
      return shape.note
    }
    return null
  }

  /** The value of a frame like others, as `value` gives it; null where it has to be parsed. */
  read(data: string): JsonObject | null {
    return this.find(data) === null ? null : this.value(data)
  }

  /**
   * The value of the frame that was found last, as `JSON.parse` would give it; null where it has to be parsed.
   * It is only lent: the next frame of the shape is read into the same object.
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
      const place = form.places[at]
      if (place === undefined) return null
      place.holder[place.key] =
        strings[at] === true ? textIn(data, start, end) : Number(data.slice(start, end))
    }
    return form.value
  }

  /** Learns of a frame that is a JSON object; `note` is told of all that are like it. */
  add(data: string, note: Note): void {
    if (this.vain === MAX_VAIN || data.length > MAX_CHARS) return
    const cut = this.cut(data)
    const like = this.known.findIndex(({ first }) => isSame(first.around, cut.around))
    const known = this.known[like]
    if (known !== undefined) {
      const { first, differs } = known
      const more = differs.map((differs, at) => differs || first.inside[at] !== cut.inside[at])
      this.known[like] = shapeOf(first, more, note)
      return
    }
    this.vain += 1
    this.known[this.next] = shapeOf(
      cut,
      cut.inside.map(() => false),
      note,
    )
    this.next = (this.next + 1) % MAX_SHAPES
  }

  /** A slice that is compared costs a tenth of `startsWith` with a long text. */
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

/** The shape of frames like the first, but in some places: what stands in the others is part of it. */
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

/** A value in which the places of a shape were found: what stands in them was put there to be found. */
function formOf(around: readonly string[], strings: readonly boolean[]): Form | null {
  const marks = new Map<JsonValue, number>()
  let text = around[0] ?? ''
  for (const [at, isString] of strings.entries()) {
    const mark = isString ? `\uFDD0${at}` : (at + 1) * 1e-300
    marks.set(mark, at)
    text += String(mark) + (around[at + 1] ?? '')
  }
  const value = JSON.parse(text) as JsonObject
  const places: { holder: JsonObject; key: string }[] = []
  const seen = seek(value, marks, places)
  // A member that comes twice hides one of them.
  const isEach = seen === strings.length && new Set(Object.keys(places)).size === seen
  return isEach ? { value, places } : null
}

/** How many marks there are in a value; `places` gets where each of them is. */
function seek(
  value: JsonValue | undefined,
  marks: ReadonlyMap<JsonValue, number>,
  places: { holder: JsonObject; key: string }[],
): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value))
    return value.reduce<number>((sum, it) => sum + seek(it, marks, places), 0)
  let seen = 0
  for (const [key, inner = null] of Object.entries(value)) {
    const at = marks.get(inner)
    if (at === undefined) seen += seek(inner, marks, places)
    else {
      places[at] = { holder: value, key }
      seen += 1
    }
  }
  return seen
}

/** Where the inside of a string ends, or is none any more. Most are short: a pattern would cost more. */
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

/** What the inside of a string says. A long one is parsed, not cut out: it would keep all of the text in memory. */
function textIn(data: string, start: number, end: number): string {
  const inside = data.slice(start, end)
  if (inside.length < COPIED_CHARS && !inside.includes('\\')) return inside
  return JSON.parse(data.slice(start - 1, end + 1)) as string
}

/** Where a number ends; the end of the text where none begins, after which nothing fits. */
function numberEnd(data: string, from: number): number {
  if (isDigit(data.charCodeAt(from), ONE)) {
    let at = from + 1
    while (isDigit(data.charCodeAt(at), ZERO)) at += 1
    // Most are counts.
    const code = data.charCodeAt(at)
    if (code === COMMA || code === CLOSE_OBJECT) return at
  }
  const end = endOf(NUMBER, data, from)
  return end === from ? data.length : end
}

function isDigit(code: number, least: number): boolean {
  return code >= least && code <= NINE
}

/** Where what the pattern says ends; `from` where it says nothing. */
function endOf(pattern: RegExp, data: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(data) ? pattern.lastIndex : from
}
