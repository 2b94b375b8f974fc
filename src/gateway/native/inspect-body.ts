/**
 * Reads the body of a native request as far as the check of its objects needs it. JSON is held until it is
 * complete and checked; other bodies stream on, and the text of a form or of a file in JSON lines is scanned
 * on its way.
 */
import { PassThrough, Readable, Transform, type TransformCallback } from 'node:stream'
import { GatewayError } from '../../errors.js'
import type { HeldMemory } from '../body-memory.js'
import { RequestScan, type RequestSummary } from '../objects/request-scan.js'
import { isIdMember } from '../objects/object-ids.js'

/** A body that may be sent, with what is known of it before that. */
interface InspectedBody {
  readonly body: Readable
  /** The scan of a JSON body that is complete; null for other bodies. */
  readonly scan: RequestScan | null
  /** The scan of a body that streams; it is complete when the reply arrives. */
  readonly stream: StreamedScan | null
}

/** The results of a scan of a body that streams. */
export interface StreamedScan {
  /** The size of the batch in an uploaded file; null if the file is no JSON lines. */
  readonly summary: RequestSummary | null
}

/** How to read a body. */
interface InspectOptions {
  readonly contentType: string
  readonly isEncoded: boolean
  /** The path is one for the bytes of files. */
  readonly isUpload: boolean
  readonly held: HeldMemory
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
  const { contentType, isUpload, check } = options
  const [, boundary] = /^multipart\/.*;\s*boundary=("[^"]{1,70}"|[^\s;"]{1,70})/i.exec(contentType) ?? []
  if (/^multipart\//i.test(contentType)) {
    if (boundary === undefined) throw refusal('a form needs a boundary in its content-type')
    if (options.isEncoded) throw encoded()
    const form = new ScannedForm(new FormScan(boundary.replaceAll('"', '')), check)
    return { body: resumed(source, [], form), scan: null, stream: form }
  }
  const { chunks, isJson } = await leading(source)
  if (!isJson) {
    if (options.isEncoded && !isUpload && chunks.length > 0) throw encoded()
    return { body: resumed(source, chunks, new PassThrough()), scan: null, stream: null }
  }
  if (isUpload) {
    const lines = new ScannedLines(check)
    return { body: resumed(source, chunks, lines), scan: null, stream: lines }
  }
  const scan = await wholeJson(source, chunks, options.held)
  await check([...scan.ids])
  return { body: Readable.from(chunks, { objectMode: false }), scan, stream: null }
}

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
      else if (length >= MAX_LEADING) throw refusal('the body begins with too much white space')
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
    if (scan.problem !== null) throw refusal(scan.problem)
  }
  for (const chunk of chunks) take(chunk)
  for (let chunk = await nextChunk(source); chunk !== null; chunk = await nextChunk(source)) {
    chunks.push(chunk)
    take(chunk)
  }
  scan.end()
  if (scan.problem !== null) throw refusal(scan.problem)
  return scan
}

/** A form whose fields must not name objects, and whose files in JSON lines are scanned. */
class ScannedForm extends Transform implements StreamedScan {
  private readonly form: FormScan
  private readonly check: InspectOptions['check']

  constructor(form: FormScan, check: InspectOptions['check']) {
    super()
    this.form = form
    this.check = check
  }

  get summary(): RequestSummary | null {
    return this.form.summary
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.form.write(chunk)
    if (this.form.problem !== null) done(refusal(this.form.problem))
    else done(null, chunk)
  }

  override _flush(done: TransformCallback): void {
    this.form.end()
    const { problem, ids } = this.form
    if (problem !== null) done(refusal(problem))
    else checkThen(this.check, ids, done)
  }
}

/** The bytes of a file in JSON lines, such as the requests of a batch. */
class ScannedLines extends Transform implements StreamedScan {
  private readonly lines = new RequestScan(true)
  private readonly check: InspectOptions['check']

  constructor(check: InspectOptions['check']) {
    super()
    this.check = check
  }

  get summary(): RequestSummary | null {
    return this.lines.problem === null ? this.lines.summary : null
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.lines.write(chunk)
    done(null, chunk)
  }

  override _flush(done: TransformCallback): void {
    this.lines.end()
    // A file that is not JSON lines cannot be a batch.
    const ids = this.lines.problem === null ? this.lines.ids : []
    checkThen(this.check, ids, done)
  }
}

/**
 * The provider gets the end of the body only if the account owns the objects: it does not act on a request
 * that is cut.
 */
function checkThen(check: InspectOptions['check'], ids: Iterable<string>, done: TransformCallback): void {
  const list = [...ids]
  if (list.length === 0) done()
  else
    check(list).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : new Error('the check failed')),
    )
}

function refusal(problem: string): GatewayError {
  return new GatewayError(
    'malformed_request',
    `The body cannot be checked for objects of other accounts (native_sharing: account): ${problem}.`,
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
  /** The objects that files in JSON lines name. */
  readonly ids = new Set<string>()
  private readonly delimiter: Buffer
  /** Bytes that may be part of a delimiter or of the headers of a part. */
  private rest: Buffer = Buffer.from('\r\n')
  private state: 'preamble' | 'head' | 'body' | 'over' = 'preamble'
  private lines: RequestScan | null = null
  private readonly summaries: RequestSummary[] = []

  constructor(boundary: string) {
    this.delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /** The size of the batch in the form's only file in JSON lines; null if it has none. */
  get summary(): RequestSummary | null {
    return this.summaries.length === 1 ? (this.summaries[0] ?? null) : null
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
    this.lines = new RequestScan(/filename/i.test(head))
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
    if (this.lines === null || this.state !== 'body') return
    // Begins with the line end between headers and contents, which is white space.
    this.lines.write(bytes)
    if (this.lines.problem !== null) this.lines = null
  }

  private endPart(): void {
    const { lines } = this
    this.lines = null
    if (lines === null) return
    lines.end()
    if (lines.problem !== null) return
    for (const id of lines.ids) this.ids.add(id)
    this.summaries.push(lines.summary)
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
