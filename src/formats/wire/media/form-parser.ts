/**
 * Reads a multipart form (RFC 7578) while its bytes arrive. A form that is held and one that is passed on are
 * read by the same rules. Pure.
 */
import { malformed } from '../../../errors.js'
import type { FormField } from '../../chat/upload.js'

const LINE_BREAK = Buffer.from('\r\n')
const MAX_PARTS = 64
const MAX_HEAD_BYTES = 16 * 1024
const MAX_FIELD_BYTES = 1024 * 1024
const MAX_FIELDS_BYTES = 2 * MAX_FIELD_BYTES

/** The beginning of a part: its names, and the bytes before its value. */
export interface PartHead {
  readonly name: string
  /** Null for a field. */
  readonly fileName: string | null
  /** The content type; empty if the part has none. */
  readonly type: string
  /** The boundary before the part with the line break before it, and the headers up to their end. */
  readonly bytes: Buffer
}

/** Gets the parts in their order. What it throws ends the reading. */
export interface FormSink {
  field(field: FormField, head: PartHead): void
  beginFile(head: PartHead): void
  fileBytes(bytes: Buffer): void
  /** The last boundary, and what follows it. */
  rest(bytes: Buffer): void
}

/** The boundary in a content type; null if it has none. */
export function boundaryIn(type: string): string | null {
  if (!/^multipart\/form-data\s*;/i.test(type)) return null
  const [, quoted, plain] = /;\s*boundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))/i.exec(type) ?? []
  return quoted ?? plain ?? null
}

/** Throws `malformed_request` for a form that breaks a rule. */
export class FormParser {
  private readonly sink: FormSink
  private readonly delimiter: Buffer
  private state: 'preamble' | 'boundary' | 'head' | 'field' | 'file' | 'end' = 'preamble'
  private pending: Buffer
  /** Whether nothing was written yet. */
  private isNew = true
  /** Bytes of the delimiter that `pending` lacks: the first boundary has no line before it. */
  private missing = 0
  /** The line of the boundary before the current part. */
  private line: Buffer = Buffer.alloc(0)
  private head: PartHead | null = null
  private parts = 0
  private fieldBytes = 0

  constructor(boundary: string, sink: FormSink) {
    this.sink = sink
    this.delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
    // The first boundary has no line before it.
    this.pending = LINE_BREAK
  }

  /** Bytes that were written and not passed to the sink yet. */
  get pendingBytes(): number {
    const { state, line, head, pending } = this
    if (state === 'head') return line.length + pending.length
    return pending.length + (state === 'field' ? (head?.bytes.length ?? 0) : 0)
  }

  write(chunk: Buffer): void {
    if (this.isNew && this.startsWithBoundary(chunk)) {
      // Without a copy of a form that is written whole.
      this.pending = chunk
      this.missing = LINE_BREAK.length
      this.state = 'boundary'
    } else if (this.state === 'file' && !this.mayEndIn(chunk)) {
      // Without a copy of the file.
      this.passFile(this.pending)
      this.pending = chunk
    } else this.pending = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    this.isNew = false
    while (this.step());
  }

  private startsWithBoundary(chunk: Buffer): boolean {
    const boundary = this.delimiter.subarray(LINE_BREAK.length)
    return chunk.length >= boundary.length && chunk.subarray(0, boundary.length).equals(boundary)
  }

  /** Whether a boundary may begin in the bytes before the chunk. */
  private mayEndIn(chunk: Buffer): boolean {
    const { length } = this.delimiter
    if (this.pending.length >= length || chunk.length < length) return true
    return Buffer.concat([this.pending, chunk.subarray(0, length)]).includes(this.delimiter)
  }

  /** All bytes were written. */
  end(): void {
    if (this.state !== 'end') {
      throw malformed('The body is not a valid multipart form: it is damaged or incomplete.')
    }
  }

  /** Reads one part of the form; false if more bytes are needed. */
  private step(): boolean {
    switch (this.state) {
      case 'preamble':
      case 'file':
      case 'field':
        return this.readValue()
      case 'boundary':
        return this.readBoundary()
      case 'head':
        return this.readHead()
      case 'end':
        if (this.pending.length > 0) this.sink.rest(this.taken(this.pending.length))
        return false
    }
  }

  private readValue(): boolean {
    const at = this.pending.indexOf(this.delimiter)
    if (at === -1) {
      const whole = this.pending.length - this.delimiter.length + 1
      if (this.state === 'field') this.checkField(this.pending.length - this.delimiter.length)
      else if (whole > 0) this.passFile(this.taken(whole))
      return false
    }
    const value = this.taken(at)
    if (this.state === 'field') this.endField(value)
    else this.passFile(value)
    this.state = 'boundary'
    return true
  }

  private passFile(bytes: Buffer): void {
    if (this.state === 'file' && bytes.length > 0) this.sink.fileBytes(bytes)
  }

  private endField(value: Buffer): void {
    this.checkField(value.length)
    this.fieldBytes += value.length
    const { head } = this
    if (head !== null) this.sink.field({ name: head.name, value: value.toString('utf8') }, head)
  }

  private checkField(bytes: number): void {
    if (bytes <= MAX_FIELD_BYTES && this.fieldBytes + bytes <= MAX_FIELDS_BYTES) return
    const name = this.head?.name.slice(0, 64) ?? ''
    throw malformed(
      `${name} is too large: a field has at most ${MAX_FIELD_BYTES} bytes, and all fields ${MAX_FIELDS_BYTES}.`,
      name,
    )
  }

  /** The boundary is followed by `--` after the last part, else by blanks and the end of the line. */
  private readBoundary(): boolean {
    const length = this.delimiter.length - this.missing
    if (this.pending.length < length + 2) return false
    if (this.pending.toString('latin1', length, length + 2) === '--') {
      this.state = 'end'
      this.sink.rest(this.takenLine(length + 2))
      return true
    }
    const end = this.pending.indexOf('\r\n', length)
    const between = this.pending.toString('latin1', length, end === -1 ? this.pending.length : end)
    if (!/^[ \t\r]*$/.test(between) || between.length > MAX_HEAD_BYTES) {
      throw malformed('The body is not a valid multipart form: it is damaged or incomplete.')
    }
    if (end === -1) return false
    this.parts += 1
    if (this.parts > MAX_PARTS) throw malformed(`The form must have at most ${MAX_PARTS} parts.`)
    this.line = this.takenLine(end)
    this.state = 'head'
    return true
  }

  private readHead(): boolean {
    const end = this.pending.indexOf('\r\n\r\n')
    if (end === -1 ? this.pending.length > MAX_HEAD_BYTES : end > MAX_HEAD_BYTES) {
      throw malformed(`The headers of a part must have at most ${MAX_HEAD_BYTES} bytes.`)
    }
    if (end === -1) return false
    const headers = this.pending.toString('utf8', 0, end)
    const head = headOf(headers, Buffer.concat([this.line, this.taken(end + 4)]))
    this.head = head
    this.state = head.fileName === null ? 'field' : 'file'
    if (head.fileName !== null) this.sink.beginFile(head)
    return true
  }

  /** The line of a boundary with the line break before it. */
  private takenLine(bytes: number): Buffer {
    const line = this.taken(bytes)
    const { missing } = this
    this.missing = 0
    return missing === 0 ? line : Buffer.concat([LINE_BREAK, line])
  }

  private taken(bytes: number): Buffer {
    const taken = this.pending.subarray(0, bytes)
    this.pending = this.pending.subarray(bytes)
    return taken
  }
}

function headOf(headers: string, bytes: Buffer): PartHead {
  const disposition = headerIn(headers, 'content-disposition') ?? ''
  const name = parameterIn(disposition, 'name')
  if (name === null || !/^form-data\s*;/i.test(disposition.trim())) {
    throw malformed('The body is not a valid multipart form: a part has no name.')
  }
  const fileName = parameterIn(disposition, 'filename') ?? extendedNameIn(disposition)
  return { name, fileName, type: headerIn(headers, 'content-type') ?? '', bytes }
}

function headerIn(headers: string, name: string): string | null {
  for (const line of headers.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon !== -1 && line.slice(0, colon).trim().toLowerCase() === name)
      return line.slice(colon + 1).trim()
  }
  return null
}

/** As browsers write them (WHATWG HTML); other clients escape quotes with a backslash. */
function parameterIn(disposition: string, name: string): string | null {
  for (const [, key = '', quoted, plain = ''] of disposition.matchAll(
    /;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g,
  )) {
    if (key.toLowerCase() !== name) continue
    const value = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? plain
    return value.replaceAll('%22', '"').replaceAll('%0D', '\r').replaceAll('%0A', '\n')
  }
  return null
}

/** The name in `filename*`, which some clients write instead of `filename` (RFC 5987). */
function extendedNameIn(disposition: string): string | null {
  const value = parameterIn(disposition, 'filename*')
  if (value === null) return null
  const [, name = ''] = /^utf-8'[^']*'(.*)$/i.exec(value) ?? []
  try {
    return decodeURIComponent(name)
  } catch {
    return ''
  }
}
