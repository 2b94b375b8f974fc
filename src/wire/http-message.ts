/**
 * HTTP/1.1 messages as bytes: the lines of a head, and where a body ends. For both of the gateway's
 * sides, and stricter than the protocol asks: what two programs could read in two ways is refused.
 * Knows no socket and no meaning of a header.
 *
 * Source: RFC 9112, sections 2 to 7, read 2026-11-20.
 */

/** Bytes of chunk extensions, and of trailers, in one body; Node's own parser has 16 KiB too. */
const MAX_ASIDE_BYTES = 16_384
/** Hexadecimal digits of a chunk's size: 2^52 - 1 at the most. */
const MAX_SIZE_DIGITS = 13

const CR = 13
const LF = 10
const SEMICOLON = 59

/** A field name, as RFC 9110 calls a token. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** A field value, a reason or a target: no control character but the tab. Latin-1, one unit per byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Where the head in `bytes` ends: the offset behind its empty line, or -1 while that has not come. */
export function headEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf('\r\n\r\n', from, 'latin1')
  return end === -1 ? -1 : end + 4
}

/** Names that have come before, as they were written, and in lower case. */
const NAMES = new Map<string, string>()
/** Enough for what clients and providers send; whoever invents more gets them checked each time. */
const MAX_NAMES = 512
const MAX_NAME = 64

/** A field's name in lower case; null where it is none. Most heads have the same few. */
function fieldName(written: string): string | null {
  const known = NAMES.get(written)
  if (known !== undefined) return known
  if (!TOKEN.test(written)) return null
  const name = written.toLowerCase()
  if (NAMES.size < MAX_NAMES && name.length <= MAX_NAME) NAMES.set(kept(written), kept(name))
  return name
}

/**
 * The text as the name of a property is kept: a copy, where a slice would hold the whole head, and the
 * only one, so that to compare it is to compare two addresses.
 */
function kept(text: string): string {
  return Object.keys({ [text]: null })[0] ?? text
}

/**
 * The fields of a head, name, value, name, value, the names in lower case. `text` is the head in Latin-1
 * with its last empty line, `from` the beginning of its second line. Null where a line is not a field:
 * a bare CR or LF, a folded line, a space before the colon, no colon, a control character.
 */
export function headFields(text: string, from: number): string[] | null {
  const fields: string[] = []
  for (let at = from; at < text.length - 2;) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    if (colon <= at || colon > end) return null
    const name = fieldName(text.slice(at, colon))
    let start = colon + 1
    let stop = end
    while (start < stop && isBlank(text.charCodeAt(start))) start += 1
    while (stop > start && isBlank(text.charCodeAt(stop - 1))) stop -= 1
    const value = text.slice(start, stop)
    if (name === null || !VALUE.test(value)) return null
    fields.push(name, value)
    at = end + 2
  }
  return fields
}

/** True for text that may stand in a line of a head. */
export function isFieldText(text: string): boolean {
  return VALUE.test(text)
}

/**
 * The same text of a head in one piece: one put together of many is walked again for each message that it is
 * part of.
 */
export function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9
}

/** How a body's end is told. `close`: by the end of the connection, which only a reply may use. */
export type Framing = { kind: 'length'; bytes: number } | { kind: 'chunked' } | { kind: 'close' }

/** What broke a body's framing. */
export type BodyFault = 'malformed' | 'extensions_too_large' | 'trailers_too_large'

type ChunkPart = 'size' | 'extension' | 'size-lf' | 'data' | 'data-cr' | 'data-lf' | 'trailers'

/** Takes the content of one body out of the bytes of its connection. */
export class BodyReader {
  /** True once the body has ended, and nothing is taken any more. */
  done = false
  fault: BodyFault | null = null
  /** Name, value, … of the fields behind a chunked body. */
  trailers: readonly string[] = []
  private readonly kind: Framing['kind']
  /** Bytes of content that are still to come: of the body, or of the chunk. */
  private left: number
  private part: ChunkPart = 'size'
  private digits = 0
  private aside = 0
  private trailer = ''

  constructor(framing: Framing) {
    this.kind = framing.kind
    this.left = framing.kind === 'length' ? framing.bytes : 0
    if (framing.kind === 'length' && framing.bytes === 0) this.done = true
  }

  /** False where no byte can end the body any more, or ever could. */
  get endIsTold(): boolean {
    return this.fault === null && this.kind !== 'close'
  }

  /**
   * Reads `bytes` from `from` on and hands over the content in it, as one piece; answers how far it read.
   * That is all of it, unless the body has ended or is at `fault`. What it has read may be overwritten. `done`
   * is true already when the last piece is handed over, unless its end comes later.
   */
  read(bytes: Buffer, from: number, content: (piece: Buffer) => void): number {
    if (this.done || this.fault !== null) return from
    if (this.kind === 'chunked') return this.chunks(bytes, from, content)
    if (this.kind === 'close') {
      content(from === 0 ? bytes : bytes.subarray(from))
      return bytes.length
    }
    return this.take(bytes, from, content)
  }

  /** The connection has ended; true where that is how the body ends. */
  end(): boolean {
    if (this.kind === 'close') this.done = true
    return this.done
  }

  private take(bytes: Buffer, from: number, content: (piece: Buffer) => void): number {
    const end = Math.min(bytes.length, from + this.left)
    if (end === from) return from
    this.left -= end - from
    if (this.left === 0) this.done = true
    content(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end))
    return end
  }

  /** Content is moved together, over the framing between its chunks, so that many small ones are one piece. */
  private chunks(bytes: Buffer, from: number, content: (piece: Buffer) => void): number {
    let at = from
    let start = from
    let end = from
    while (at < bytes.length && !this.done && this.fault === null) {
      if (this.part !== 'data') {
        this.fault = this.step(bytes[at] ?? 0)
        at += 1
        continue
      }
      const next = Math.min(bytes.length, at + this.left)
      if (end === start) start = end = at
      else bytes.copyWithin(end, at, next)
      end += next - at
      this.left -= next - at
      at = next
      if (this.left === 0) this.part = 'data-cr'
    }
    if (end > start)
      content(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end))
    return at
  }

  /** One byte of what is not content. */
  private step(code: number): BodyFault | null {
    switch (this.part) {
      case 'size':
        return this.sizeDigit(code)
      case 'extension':
        return this.extension(code)
      case 'size-lf':
        if (code !== LF) return 'malformed'
        this.part = this.left === 0 ? 'trailers' : 'data'
        this.digits = 0
        return null
      case 'data-cr':
        if (code !== CR) return 'malformed'
        this.part = 'data-lf'
        return null
      case 'data-lf':
        if (code !== LF) return 'malformed'
        this.part = 'size'
        return null
      case 'trailers':
        return this.trailerByte(code)
      case 'data':
        return null
      default:
        return this.part satisfies never
    }
  }

  private sizeDigit(code: number): BodyFault | null {
    const digit = hexDigit(code)
    if (digit >= 0) {
      this.digits += 1
      if (this.digits > MAX_SIZE_DIGITS) return 'malformed'
      this.left = this.left * 16 + digit
      return null
    }
    if (this.digits === 0) return 'malformed'
    if (code === CR) this.part = 'size-lf'
    else if (code === SEMICOLON) this.part = 'extension'
    else return 'malformed'
    return null
  }

  private extension(code: number): BodyFault | null {
    if (code === CR) {
      this.part = 'size-lf'
      return null
    }
    this.aside += 1
    if (this.aside > MAX_ASIDE_BYTES) return 'extensions_too_large'
    return (code < 32 && code !== 9) || code === 127 ? 'malformed' : null
  }

  private trailerByte(code: number): BodyFault | null {
    if (this.trailer.length >= MAX_ASIDE_BYTES) return 'trailers_too_large'
    this.trailer += String.fromCharCode(code)
    if (code !== LF) return null
    if (this.trailer === '\r\n') {
      this.done = true
      return null
    }
    if (!this.trailer.endsWith('\r\n')) return 'malformed'
    if (!this.trailer.endsWith('\r\n\r\n')) return null
    const fields = headFields(this.trailer, 0)
    if (fields === null) return 'malformed'
    this.trailers = fields
    this.done = true
    return null
  }
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}
