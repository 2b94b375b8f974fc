/**
 * Reads the body of a native request as far as the check of its objects, and of the requests of a batch,
 * needs it. JSON is held until it is complete and checked; other bodies stream on, and the text of a form or
 * of a file in JSON lines is read on its way.
 */
import { PassThrough, Readable, Transform, type TransformCallback } from 'node:stream'
import { GatewayError } from '../../errors.js'
import type { HeldMemory } from '../body-memory.js'
import { RequestScan } from '../objects/request-scan.js'
import { isIdMember } from '../objects/object-ids.js'
import { readItems, type BatchReader, type BatchSummary } from './batch-requests.js'

/** A body that may be sent, with what is known of it before that. */
interface InspectedBody {
  readonly body: Readable
  /** The scan of a JSON body that is complete; null for other bodies. */
  readonly scan: RequestScan | null
  /** The requests of a batch in a JSON body; null for other bodies. */
  readonly batch: BatchSummary | null
  /** The scan of a body that streams; it is complete when the reply arrives. */
  readonly stream: StreamedScan | null
}

/** The results of a scan of a body that streams. */
export interface StreamedScan {
  /** The requests in an uploaded file; null if the file is no JSON lines. */
  readonly summary: BatchSummary | null
}

/** How to read a body. */
interface InspectOptions {
  readonly contentType: string
  readonly isEncoded: boolean
  /** The path is one for the bytes of files. */
  readonly isUpload: boolean
  /** A JSON body creates a batch. */
  readonly isBatch: boolean
  readonly held: HeldMemory
  /** `body`: the scan of the whole body with the requests; null for a file. */
  readonly openReader: (body: RequestScan | null) => BatchReader
  /** Rejects for a complete JSON body that the upstream must not receive; null: it may receive all. */
  readonly checkBody: ((chunks: readonly Buffer[]) => Promise<void>) | null
  /** Throws if the account may not send the requests in a file. */
  readonly checkFile: (summary: BatchSummary) => void
  /** Rejects unless the account owns the objects. */
  readonly check: (ids: readonly string[]) => Promise<void>
}

/** Bytes before the first character of JSON that a reader may skip. */
const MAX_LEADING = 1_024

/**
 * Decides by the first bytes how the body is read. `source` is a stream in paused mode. Rejects with
 * `GatewayError` if the source fails or the body is refused.
 */
export async function inspectBody(source: Readable, options: InspectOptions): Promise<InspectedBody> {
  const { contentType, isUpload, check, held } = options
  const [, boundary] = /^multipart\/.*;\s*boundary=("[^"]{1,70}"|[^\s;"]{1,70})/i.exec(contentType) ?? []
  if (/^multipart\//i.test(contentType)) {
    if (boundary === undefined) throw uncheckable('a form needs a boundary in its content-type')
    if (options.isEncoded) throw encoded()
    const form = new ScannedForm(boundary.replaceAll('"', ''), options)
    return { ...NOTHING, body: resumed(source, [], form), stream: form }
  }
  const { chunks, isJson } = await leading(source)
  if (!isJson) {
    if (options.isEncoded && !isUpload && chunks.length > 0) throw encoded()
    return { ...NOTHING, body: resumed(source, chunks, new PassThrough()) }
  }
  if (isUpload) {
    const lines = new ScannedLines(options)
    return { ...NOTHING, body: resumed(source, chunks, lines), stream: lines }
  }
  const scan = await wholeJson(source, chunks, held)
  await check([...scan.ids])
  await options.checkBody?.(chunks)
  const body = { ...NOTHING, body: Readable.from(chunks, { objectMode: false }), scan }
  if (!options.isBatch) return body
  const reader = options.openReader(scan)
  await readItems(chunks, reader)
  return { ...body, batch: reader.summary }
}

const NOTHING = { scan: null, batch: null, stream: null }

/** Passes the chunks that were read, and then the rest of the source. */
function resumed<Stream extends Transform>(
  source: Readable,
  chunks: readonly Buffer[],
  body: Stream,
): Stream {
  forwardError(source, body)
  for (const chunk of chunks) body.write(chunk)
  if (source.readableEnded) body.end()
  else source.pipe(body)
  return body
}

/** The body may fail before it is sent; the attempt reads `errored` then. */
function forwardError(source: Readable, body: Transform): void {
  source.once('error', (error) => body.destroy(error))
  body.on('error', () => undefined)
}

/**
 * The chunks up to the first byte that is no white space, mark or zero byte, which UTF-16 has beside it, and
 * whether that byte begins JSON.
 */
async function leading(source: Readable): Promise<{ chunks: Buffer[]; isJson: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  let zeros = 0
  for (;;) {
    const chunk = await nextChunk(source)
    if (chunk === null) return { chunks, isJson: false }
    chunks.push(chunk)
    for (const byte of chunk) {
      zeros = byte === 0 ? zeros + 1 : 0
      if (isLeading(byte) && zeros < 4 && length < MAX_LEADING) length += 1
      else if (length >= MAX_LEADING) throw uncheckable('the body begins with too much white space')
      else return { chunks, isJson: byte === 0x7b || byte === 0x5b }
    }
  }
}

function isLeading(byte: number): boolean {
  return (
    byte === 0x20 ||
    (byte >= 0x09 && byte <= 0x0d) ||
    byte === 0 ||
    byte === 0xef ||
    byte === 0xbb ||
    byte === 0xbf ||
    byte === 0xfe ||
    byte === 0xff
  )
}

/** Whether the first byte that no reader skips begins JSON. */
export function beginsJson(bytes: Buffer): boolean {
  const first = bytes.find((byte) => !isLeading(byte))
  return first === 0x7b || first === 0x5b
}

/** The next chunk; null at the end. */
function nextChunk(source: Readable): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const settle = (step: () => void): void => {
      source.off('readable', read).off('end', end).off('error', fail).off('close', end)
      step()
    }
    const read = (): void => {
      const chunk: unknown = source.read()
      if (chunk instanceof Buffer) settle(() => resolve(chunk))
    }
    const end = (): void => settle(() => resolve(null))
    const fail = (error: Error): void => settle(() => reject(error))
    source.on('readable', read).on('end', end).on('error', fail).on('close', end)
    if (source.errored !== null) fail(source.errored)
    else if (source.readableEnded || source.destroyed) end()
    else read()
  })
}

/** Reads the rest of the body into `chunks`. */
async function wholeJson(source: Readable, chunks: Buffer[], held: HeldMemory): Promise<RequestScan> {
  const scan = new RequestScan(false)
  const take = (chunk: Buffer): void => {
    held.take(chunk.length)
    scan.write(chunk)
    if (scan.problem !== null) throw uncheckable(scan.problem)
  }
  for (const chunk of chunks) take(chunk)
  for (let chunk = await nextChunk(source); chunk !== null; chunk = await nextChunk(source)) {
    chunks.push(chunk)
    take(chunk)
  }
  scan.end()
  if (scan.problem !== null) throw uncheckable(scan.problem)
  return scan
}

/** A file in JSON lines that arrives in chunks: finds the ids in it, and reads its lines as requests. */
class FileLines {
  readonly scan = new RequestScan(true)
  private readonly reader: BatchReader
  private readonly held: HeldMemory
  /** Complete lines that are not read yet. */
  private lines: Buffer[] = []
  /** The begin of the next line. */
  private rest: Buffer[] = []
  private restBytes = 0

  constructor({ openReader, held }: Pick<InspectOptions, 'openReader' | 'held'>) {
    this.reader = openReader(null)
    this.held = held
  }

  write(chunk: Buffer): void {
    this.scan.write(chunk)
    if (this.scan.problem !== null) {
      this.lines = []
      this.drop()
      return
    }
    let from = 0
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.lines.push(Buffer.concat([...this.rest, chunk.subarray(from, end)]))
      this.drop()
      from = end + 1
    }
    if (from === chunk.length) return
    this.held.take(chunk.length - from)
    this.restBytes += chunk.length - from
    this.rest.push(chunk.subarray(from))
  }

  end(): void {
    this.scan.end()
    if (this.restBytes > 0) this.lines.push(Buffer.concat(this.rest))
    this.drop()
  }

  /** Reads the lines that are complete. */
  async read(): Promise<void> {
    const lines = this.lines
    this.lines = []
    for (const line of lines) await this.reader.read(line)
  }

  /** Null if the file is no JSON lines, and cannot be a batch. */
  get summary(): BatchSummary | null {
    return this.scan.problem === null ? this.reader.summary : null
  }

  /** Rejects unless the account may send the requests in the complete file. */
  async check({ check, checkFile }: InspectOptions): Promise<void> {
    if (this.scan.problem !== null) return
    if (this.reader.isBatch) checkFile(this.reader.summary)
    if (this.scan.ids.size > 0) await check([...this.scan.ids])
  }

  private drop(): void {
    this.held.release(this.restBytes)
    this.rest = []
    this.restBytes = 0
  }
}

/** A form whose fields must not name objects, and whose files in JSON lines are read. */
class ScannedForm extends Transform implements StreamedScan {
  private readonly form: FormScan
  private readonly options: InspectOptions
  private readonly files: FileLines[] = []

  constructor(boundary: string, options: InspectOptions) {
    super()
    this.options = options
    this.form = new FormScan(boundary, () => {
      const file = new FileLines(options)
      this.files.push(file)
      return file
    })
  }

  /** Null if the form has several files. */
  get summary(): BatchSummary | null {
    const [file] = this.files
    return this.files.length === 1 ? (file?.summary ?? null) : null
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    passThen(() => this.inspect(chunk), chunk, done)
  }

  override _flush(done: TransformCallback): void {
    this.form.end()
    passThen(() => this.checkAll(), null, done)
  }

  private async inspect(chunk: Buffer): Promise<void> {
    this.form.write(chunk)
    if (this.form.problem !== null) throw uncheckable(this.form.problem)
    for (const file of this.files) await file.read()
  }

  private async checkAll(): Promise<void> {
    if (this.form.problem !== null) throw uncheckable(this.form.problem)
    for (const file of this.files) {
      await file.read()
      await file.check(this.options)
    }
    if (this.form.ids.size > 0) await this.options.check([...this.form.ids])
  }
}

/** The bytes of a file in JSON lines, such as the requests of a batch. */
class ScannedLines extends Transform implements StreamedScan {
  private readonly file: FileLines
  private readonly options: InspectOptions

  constructor(options: InspectOptions) {
    super()
    this.file = new FileLines(options)
    this.options = options
  }

  get summary(): BatchSummary | null {
    return this.file.summary
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    passThen(() => this.inspect(chunk), chunk, done)
  }

  override _flush(done: TransformCallback): void {
    passThen(() => this.checkAll(), null, done)
  }

  private inspect(chunk: Buffer): Promise<void> {
    this.file.write(chunk)
    return this.file.read()
  }

  private async checkAll(): Promise<void> {
    this.file.end()
    await this.file.read()
    await this.file.check(this.options)
  }
}

/**
 * Passes the chunk when the step has ended. The provider gets the end of the body only if the last step
 * allows it: it does not act on a request that is cut.
 */
function passThen(step: () => Promise<void>, chunk: Buffer | null, done: TransformCallback): void {
  step().then(
    () => done(null, chunk),
    (error: unknown) => done(error instanceof Error ? error : new Error('the check failed')),
  )
}

/** The error of a body that cannot be checked. */
export function uncheckable(problem: string, what = 'The body'): GatewayError {
  return new GatewayError(
    'malformed_request',
    `${what} cannot be checked for objects of other accounts (native_sharing: account): ${problem}.`,
  )
}

function encoded(): GatewayError {
  return new GatewayError(
    'unsupported_media_type',
    'A native body with a content-encoding cannot be checked for objects of other accounts (native_sharing: account): send it without.',
    { param: 'content-encoding' },
  )
}

// Scans a multipart form that arrives in chunks: fields must not name objects, because their values would
// have to be held back, and a file in JSON lines (the requests of a batch) is scanned like a body. Pure.

/** Maximum size of the headers of a part. */
const MAX_HEAD = 8_192

export class FormScan {
  /** Why the form is refused; null if it is not. */
  problem: string | null = null
  /** The objects that fields with JSON name. */
  readonly ids = new Set<string>()
  private readonly openFile: () => Pick<FileLines, 'write' | 'end'>
  private readonly delimiter: Buffer
  /** Bytes that may be part of a delimiter or of the headers of a part. */
  private rest: Buffer = Buffer.from('\r\n')
  private state: 'preamble' | 'head' | 'body' | 'over' = 'preamble'
  /** Bytes of the line end between headers and contents that are still to come. */
  private leading = 0
  /** The current part: a file, or a field. */
  private part: { readonly file: Pick<FileLines, 'write' | 'end'> } | { readonly field: RequestScan } | null =
    null

  constructor(boundary: string, openFile: () => Pick<FileLines, 'write' | 'end'>) {
    this.delimiter = Buffer.from(`\r\n--${boundary}`)
    this.openFile = openFile
  }

  write(chunk: Buffer): void {
    let bytes: Buffer = Buffer.concat([this.rest, chunk])
    while (this.problem === null) {
      const next = this.state === 'head' ? this.readHead(bytes) : this.readBody(bytes)
      if (next === null) return
      bytes = next
    }
  }

  end(): void {
    if (this.state !== 'over') this.problem ??= 'the form is incomplete'
  }

  /** The bytes after the headers of a part; null if they are incomplete. */
  private readHead(bytes: Buffer): Buffer | null {
    if (bytes.length < 2) return this.wait(bytes)
    if (bytes[0] === 0x2d && bytes[1] === 0x2d) {
      this.state = 'over'
      return this.wait(Buffer.alloc(0))
    }
    const end = bytes.indexOf('\r\n\r\n')
    if (end > MAX_HEAD || (end < 0 && bytes.length > MAX_HEAD)) {
      this.problem = 'the headers of a part are too long'
      return null
    }
    if (end < 0) return this.wait(bytes)
    const head = bytes.toString('latin1', 0, end)
    if (namesObject(head)) {
      this.problem = 'a field of a form must not name an object: send the request as JSON'
      return null
    }
    this.state = 'body'
    // A field may be one JSON value, such as the session of a call.
    this.leading = 2
    this.part = /filename/i.test(head) ? { file: this.openFile() } : { field: new RequestScan(false) }
    // The delimiter of an empty part begins with the end of its headers.
    return bytes.subarray(end + 2)
  }

  /** The bytes after the next delimiter; null if there is none yet. */
  private readBody(bytes: Buffer): Buffer | null {
    if (this.state === 'over') return this.wait(Buffer.alloc(0))
    const end = bytes.indexOf(this.delimiter)
    if (end < 0) {
      const kept = Math.min(bytes.length, this.delimiter.length)
      this.take(bytes.subarray(0, bytes.length - kept))
      return this.wait(bytes.subarray(bytes.length - kept))
    }
    this.take(bytes.subarray(0, end))
    this.endPart()
    this.state = 'head'
    return bytes.subarray(end + this.delimiter.length)
  }

  private wait(bytes: Buffer): null {
    this.rest = Buffer.from(bytes)
    return null
  }

  private take(bytes: Buffer): void {
    if (this.part === null || this.state !== 'body') return
    const cut = Math.min(this.leading, bytes.length)
    this.leading -= cut
    const contents = bytes.subarray(cut)
    if ('file' in this.part) this.part.file.write(contents)
    else this.part.field.write(contents)
  }

  private endPart(): void {
    const { part } = this
    this.part = null
    if (part === null) return
    if ('file' in part) {
      part.file.end()
      return
    }
    part.field.end()
    if (part.field.problem === null) for (const id of part.field.ids) this.ids.add(id)
  }
}

/**
 * Whether the headers of a part contain the name of a member that names an object, or a name in another
 * encoding. A file with such a name is refused, too: readers of forms disagree about quotes.
 */
function namesObject(head: string): boolean {
  if (/(?:^|[;\s])name\s*\*/i.test(head)) return true
  return head
    .replaceAll('\\', '')
    .split(/[^A-Za-z_]+/)
    .some(isIdMember)
}
