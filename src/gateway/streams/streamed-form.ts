/**
 * A multipart form that is too large to be held: it is passed to one upstream while it arrives, with its
 * fields rewritten. Memory does not depend on its size.
 */
import { Readable } from 'node:stream'
import { GatewayError, malformed, bodyTooLarge } from '../../errors.js'
import type { FormRewrite, UploadPart } from '../../formats/chat/upload.js'
import { fieldPart } from '../../formats/wire/media/form-data.js'
import { fieldName, isListField } from '../../formats/wire/media/form-fields.js'
import { boundaryIn, FormParser, type FormSink, type PartHead } from '../../formats/wire/media/form-parser.js'
import { PartList } from '../phases/read-form.js'

/** The part of the body in which the model must be complete. */
export const FORM_HEAD_BYTES = 65_536

/** The body of the client, of which some has been read. */
interface ArrivingForm {
  /** Emits the rest of the body; paused. */
  readonly source: Readable
  readonly read: readonly Buffer[]
  readonly contentType: string
  /** Null: the client does not say it. */
  readonly length: number | null
  readonly maxBytes: number
  /** Maximum silence of the client, and its error. */
  readonly stallMs: number
  readonly stalled: () => void
  /** Counts the bytes that arrive later. */
  readonly count: (bytes: number) => void
  /** Throws if the end of the body breaks a rule. */
  readonly checkEnd: () => void
}

/** The form for an upstream. */
interface FormToSend {
  /** Null: it is not known before the end. */
  readonly length: number | null
  /** The content type. */
  readonly type: string
}

/** One form, which can be sent once. */
export class StreamedForm {
  /** The fields and the beginning of the file in the first 64 KiB. */
  readonly parts: readonly UploadPart[]
  /** The upstream has got the whole form. */
  isSent = false
  /** The upstream does not take more bytes at present. */
  isBlocked = false
  /** Why the form ended before it was complete; null if it did not. */
  error: GatewayError | null = null
  /** Fields that came after the first 64 KiB, by their names. */
  readonly late = new Map<string, string>()
  /** Fields that must not come later, because the gateway acts on them before it sends the form. */
  private readonly early: Set<string>
  private readonly form: ArrivingForm
  private opening: (() => Readable) | null = null

  constructor(form: ArrivingForm, early: readonly string[]) {
    this.form = form
    this.early = new Set(['model', ...early])
    const parts = new PartList()
    const parser = new FormParser(boundaryIn(form.contentType) ?? '', parts)
    let left = FORM_HEAD_BYTES
    for (const chunk of form.read) {
      parser.write(chunk.subarray(0, left))
      left -= Math.min(left, chunk.length)
    }
    const size = form.length
    this.parts = parts
      .whole()
      .map((part) => ('file' in part ? { ...part, file: { ...part.file, size } } : part))
  }

  /** The parts with a file, of which nothing is known if it begins after the first 64 KiB. */
  partsWithFile(): UploadPart[] {
    const hasFile = this.parts.some((part) => 'file' in part)
    const { length } = this.form
    const file = { name: '', type: '', bytes: Buffer.alloc(0), size: length }
    return hasFile ? [...this.parts] : [...this.parts, { name: 'file', file }]
  }

  /** Refuses these fields after the first 64 KiB. */
  refuseLate(names: readonly string[]): void {
    for (const name of names) this.early.add(name)
  }

  /** Begins the form with its fields rewritten. Called once. */
  prepare(rewrite: FormRewrite): FormToSend {
    const { read, contentType, length } = this.form
    const known = new Set(this.parts.map(({ name }) => fieldName(name)))
    const writer = new RewritingSink(boundaryIn(contentType) ?? '', rewrite, (name, value, at) => {
      if (at < this.parts.length) return
      if (this.early.has(name)) {
        throw malformed(`${name} must come before the file in an upload of this size.`, name)
      }
      if ((known.has(name) || this.late.has(name)) && !isListField(name)) {
        throw malformed(`${name} must not occur twice`, name)
      }
      this.late.set(name, value)
    })
    const parser = new FormParser(boundaryIn(contentType) ?? '', writer)
    let readBytes = 0
    for (const chunk of read) {
      parser.write(chunk)
      readBytes += chunk.length
    }
    const isKnown = rewrite.changed?.every((name) => known.has(name)) === true
    const written = writer.bytes + parser.pendingBytes - (writer.bytes === 0 ? LINE_BREAK_BYTES : 0)
    const total = length === null || !isKnown ? null : length - readBytes + written
    this.opening = () => this.bodyOf(parser, writer)
    return { length: total, type: contentType }
  }

  /** The prepared form as bytes. Called once. */
  open(): Readable {
    if (this.opening === null) throw new Error('the form is not prepared')
    return this.opening()
  }

  private bodyOf(parser: FormParser, writer: RewritingSink): Readable {
    const { source, stallMs, stalled, maxBytes, count, checkEnd, read } = this.form
    let bytes = read.reduce((sum, chunk) => sum + chunk.length, 0)
    let timer: NodeJS.Timeout | null = null
    const watch = (): void => {
      timer = setTimeout(() => (this.isBlocked ? timer?.refresh() : stalled()), stallMs).unref()
    }
    const stop = (): void => {
      if (timer !== null) clearTimeout(timer)
      source.off('data', take).off('end', end).off('error', fail).off('close', fail)
      source.pause()
    }
    const fail = (cause?: unknown): void => {
      stop()
      const error = cause instanceof Error ? cause : new Error('the body of the client is incomplete')
      if (cause instanceof GatewayError) this.error = cause
      body.destroy(error)
    }
    const push = (): void => {
      let isTaken = true
      for (const chunk of writer.take()) isTaken = body.push(chunk)
      this.isBlocked = !isTaken
      if (isTaken) source.resume()
      else source.pause()
    }
    const take = (chunk: Buffer): void => {
      timer?.refresh()
      bytes += chunk.length
      count(chunk.length)
      try {
        if (bytes > maxBytes) throw bodyTooLarge(maxBytes)
        parser.write(chunk)
      } catch (error) {
        fail(error)
        return
      }
      push()
    }
    const end = (): void => {
      try {
        checkEnd()
        parser.end()
      } catch (error) {
        fail(error)
        return
      }
      stop()
      this.isSent = true
      body.push(null)
    }
    let hasBegun = false
    const body = new Readable({
      read: () => {
        this.isBlocked = false
        if (!hasBegun) {
          hasBegun = true
          watch()
          source.on('data', take).on('end', end).on('error', fail).on('close', fail)
        }
        push()
      },
      destroy: (error, done) => {
        stop()
        done(error)
      },
    })
    return body
  }
}

const LINE_BREAK_BYTES = 2

/** Writes the form with other fields; all else is unchanged. */
class RewritingSink implements FormSink {
  /** The number of bytes that were written. */
  bytes = 0
  private readonly boundary: string
  private readonly rewrite: FormRewrite
  private readonly note: (name: string, value: string, at: number) => void
  private chunks: Buffer[] = []
  private at = 0

  constructor(
    boundary: string,
    rewrite: FormRewrite,
    note: (name: string, value: string, at: number) => void,
  ) {
    this.boundary = boundary
    this.rewrite = rewrite
    this.note = note
    for (const field of rewrite.added) this.add(Buffer.from(fieldPart(boundary, field)))
  }

  /** The bytes since the last call. */
  take(): Buffer[] {
    const { chunks } = this
    this.chunks = []
    return chunks
  }

  field(field: { readonly name: string; readonly value: string }, head: PartHead): void {
    const { at } = this
    this.at += 1
    this.note(fieldName(field.name), field.value, at)
    const changed = this.rewrite.field(field, at)
    if (changed === null) return
    if (changed.name !== field.name) {
      this.add(Buffer.from(fieldPart(this.boundary, changed)))
      return
    }
    this.add(head.bytes, Buffer.from(changed.value))
  }

  beginFile(head: PartHead): void {
    this.at += 1
    this.add(head.bytes)
  }

  fileBytes(bytes: Buffer): void {
    this.add(bytes)
  }

  rest(bytes: Buffer): void {
    this.add(bytes)
  }

  /** The form begins with a boundary, before which no line ends. */
  private add(...chunks: readonly Buffer[]): void {
    for (const chunk of chunks) {
      const bytes = this.bytes === 0 ? chunk.subarray(LINE_BREAK_BYTES) : chunk
      this.bytes += bytes.length
      this.chunks.push(bytes)
    }
  }
}
