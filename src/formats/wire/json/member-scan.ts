/**
 * Finds members by name in JSON that arrives in chunks, at any depth, without keeping the text: time linear
 * in its size, memory for the names and values that are selected. Duplicate and escaped names are found. Only
 * strict JSON is accepted, because lenient parsers of providers read other texts in other ways.
 */
import { parseOrNull } from './full-scan.js'

/** The place of a value. */
export interface MemberPlace {
  /** The member's name; for an item of an array, that of the array. */
  readonly name: string
  /** The name of the member whose object contains it; '' for the root and for an item of an array. */
  readonly parent: string
  /** Number of objects and arrays around the value. */
  readonly depth: number
}

/** What a scan looks for. */
interface MemberScanOptions {
  /** Whether the text has several values, separated by line ends, each complete in its line. */
  readonly isLines: boolean
  /** Whether the value of a member, or its members, are to be reported. */
  readonly selects: (name: string) => boolean
  /**
   * Whether everything in the object or list of a member is ignored; absent: nothing is. `parent`: the member
   * whose object, or list of objects, has the member; '' at the root.
   */
  readonly skips?: (name: string, parent: string, isArray: boolean) => boolean
  /** Called with each selected string, number or literal; null if it has more than `MAX_VALUE` bytes. */
  readonly found: (place: MemberPlace, value: string | null) => void
  /** Called at the end of each object in a list of `itemsIn`, with its range of bytes. */
  readonly item?: (from: number, to: number) => void
  /** The members on the way to each list; absent: the lists that are members of the root. */
  readonly itemsIn?: readonly (readonly string[])[]
  /** Called at the start of each object and array that is the value of a member. */
  readonly opened?: (name: string) => void
  /** Called at the end of each value of the text. */
  readonly ended?: () => void
}

/** A longer value is not read. */
const MAX_VALUE = 1_024
const MAX_DEPTH = 128
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/** `value or end`: of an array that has just begun; `name or end`: of an object that has. */
type Expected = 'value' | 'value or end' | 'name' | 'name or end' | 'colon' | 'comma or end' | 'nothing'

interface Level {
  readonly isArray: boolean
  /** The name of the member that it is the value of. */
  readonly name: string
  /** Of the current member; for an array its own. */
  member: string
  readonly start: number
}

/** Scans one text. */
export class MemberScan {
  private readonly options: MemberScanOptions
  private readonly levels: Level[] = []
  private expected: Expected = 'value'
  private inString = false
  private isName = false
  private isEscaped = false
  /** The bytes of the current string or scalar; null if they are not selected, or too long. */
  private parts: Buffer[] | null = null
  private isTooLong = false
  /** Number of levels around the value that is ignored; 0 for none. */
  private skipped = 0
  private length = 0
  private scalar = ''
  /** Bytes of earlier chunks. */
  private offset = 0

  constructor(options: MemberScanOptions) {
    this.options = options
  }

  /** False if the text is not strict JSON; call no more methods then. */
  write(chunk: Buffer): boolean {
    let at = 0
    while (at < chunk.length) {
      if (this.inString) {
        at = this.readString(chunk, at)
        if (at < 0) return false
        continue
      }
      if (!this.take(chunk[at] ?? 0, this.offset + at)) return false
      at += 1
    }
    this.offset += chunk.length
    return true
  }

  /** Whether the text is complete. */
  end(): boolean {
    if (this.inString || this.levels.length > 0) return false
    if (!this.endScalar()) return false
    return this.expected === 'nothing' || this.options.isLines
  }

  /** One byte outside of strings. */
  private take(byte: number, offset: number): boolean {
    if (isScalarByte(byte)) {
      if (this.scalar.length === MAX_VALUE) return false
      const isFirst = this.scalar === ''
      if (isFirst && !this.expectsValue()) return false
      this.scalar += String.fromCharCode(byte)
      return true
    }
    if (!this.endScalar()) return false
    switch (byte) {
      case 0x20:
      case 0x09:
      case 0x0d:
        return true
      case 0x0a:
        return this.endLine()
      case 0x22:
        return this.beginString()
      case 0x7b:
      case 0x5b:
        return this.open(byte === 0x5b, offset)
      case 0x7d:
      case 0x5d:
        return this.close(byte === 0x5d, offset)
      case 0x3a:
        if (this.expected !== 'colon') return false
        this.expected = 'value'
        return true
      case 0x2c: {
        if (this.expected !== 'comma or end') return false
        this.expected = this.levels.at(-1)?.isArray === true ? 'value' : 'name'
        return true
      }
      default:
        return false
    }
  }

  private expectsValue(): boolean {
    return this.expected === 'value' || this.expected === 'value or end'
  }

  private endLine(): boolean {
    if (!this.options.isLines) return true
    if (this.levels.length > 0) return false
    this.expected = 'value'
    return true
  }

  private beginString(): boolean {
    const isName = this.expected === 'name' || this.expected === 'name or end'
    if (!isName && !this.expectsValue()) return false
    this.inString = true
    this.isName = isName
    this.length = 0
    this.isTooLong = false
    this.parts = isName || this.isSelected() ? [] : null
    return true
  }

  /** Reads from `at` to the end of the string or of the chunk; the next index, or -1. */
  private readString(chunk: Buffer, at: number): number {
    const { length } = chunk
    const { isLines } = this.options
    let end = at
    // A loop over bytes: `indexOf` costs more for many short parts between escapes.
    for (; end < length; end += 1) {
      const byte = chunk[end]
      if (this.isEscaped) this.isEscaped = false
      else if (byte === 0x5c) this.isEscaped = true
      else if (byte === 0x22) break
      // A reader of lines would end the value there.
      if (isLines && byte === 0x0a) return -1
    }
    this.keep(chunk, at, end)
    if (end === length) return length
    this.inString = false
    return this.endString() ? end + 1 : -1
  }

  private keep(chunk: Buffer, from: number, to: number): void {
    if (this.parts === null) return
    this.length += to - from
    if (this.length > MAX_VALUE) {
      this.parts = null
      this.isTooLong = true
    } else if (to > from) this.parts.push(chunk.subarray(from, to))
  }

  private endString(): boolean {
    const { parts, isName } = this
    this.parts = null
    const text = parts === null ? null : textOf(parts)
    // A control character, or a wrong escape.
    if (parts !== null && text === null) return false
    if (isName) {
      const level = this.levels.at(-1)
      if (level !== undefined) level.member = text ?? ''
      this.expected = 'colon'
      return true
    }
    if (parts !== null || this.isTooLong) this.report(text)
    this.endValue()
    return true
  }

  private endScalar(): boolean {
    const { scalar } = this
    if (scalar === '') return true
    this.scalar = ''
    if (!SCALAR.test(scalar)) return false
    if (this.isSelected()) this.report(scalar)
    this.endValue()
    return true
  }

  private endValue(): void {
    const isRoot = this.levels.length === 0
    this.expected = isRoot ? 'nothing' : 'comma or end'
    if (isRoot) this.options.ended?.()
  }

  private isSelected(): boolean {
    const level = this.levels.at(-1)
    if (level === undefined || this.skipped > 0) return false
    const { selects } = this.options
    return selects(level.member) || (!level.isArray && level.name !== '' && selects(level.name))
  }

  private report(value: string | null): void {
    const level = this.levels.at(-1)
    if (level === undefined) return
    const parent = level.isArray ? '' : level.name
    this.options.found({ name: level.member, parent, depth: this.levels.length }, value)
  }

  private open(isArray: boolean, start: number): boolean {
    if (!this.expectsValue() || this.levels.length === MAX_DEPTH) return false
    const outer = this.levels.at(-1)
    const member = outer?.member ?? ''
    // An object in an array is the value of no member.
    const name = outer?.isArray === true ? '' : member
    this.levels.push({ isArray, name, member: isArray ? member : '', start })
    if (outer?.isArray === false && this.skipped === 0) {
      if (this.options.skips?.(name, this.around(), isArray) === true) this.skipped = this.levels.length
      else this.options.opened?.(name)
    }
    this.expected = isArray ? 'value or end' : 'name or end'
    return true
  }

  /** The member whose object, or list of objects, has the member that was just opened; '' at the root. */
  private around(): string {
    const { levels } = this
    let at = levels.length - 2
    while (at > 0 && levels[at]?.name === '') at -= 1
    return levels[at]?.name ?? ''
  }

  private close(isArray: boolean, offset: number): boolean {
    const level = this.levels.at(-1)
    const empty = isArray ? 'value or end' : 'name or end'
    if (level?.isArray !== isArray) return false
    if (this.expected !== 'comma or end' && this.expected !== empty) return false
    this.levels.pop()
    if (this.levels.length < this.skipped) this.skipped = 0
    if (!isArray && this.levels.at(-1)?.isArray === true && this.isInItems()) {
      this.options.item?.(level.start, offset + 1)
    }
    this.endValue()
    return true
  }

  /** Whether the innermost array is a list of `itemsIn`. */
  private isInItems(): boolean {
    const { levels } = this
    const { item, itemsIn } = this.options
    if (item === undefined || itemsIn === undefined) return levels.length === 2
    return itemsIn.some(
      (path) =>
        path.length === levels.length - 1 &&
        path.every((name, at) => {
          const level = levels[at + 1]
          return level?.name === name && level.isArray === (at === path.length - 1)
        }),
    )
  }
}

/** The characters of numbers and literals. */
function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e ||
    byte === 0x45
  )
}

/** Printable ASCII without quotes and escapes, as almost every name is. */
const PLAIN = /^[ !#-[\]-~]*$/

/** The unescaped text of a string; null if it is not valid. */
function textOf(parts: readonly Buffer[]): string | null {
  const [only] = parts
  const bytes = only !== undefined && parts.length === 1 ? only : Buffer.concat(parts)
  const plain = bytes.toString('latin1')
  if (PLAIN.test(plain)) return plain
  const text: unknown = parseOrNull(`"${bytes.toString()}"`)
  return typeof text === 'string' ? text : null
}
