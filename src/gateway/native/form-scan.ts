/**
 * Scans a multipart form that arrives in chunks: fields must not name objects, because their values would
 * have to be held back, and a file in JSON lines (the requests of a batch) is scanned like a body. Pure.
 */
import { isIdMember } from '../objects/object-ids.js'
import { RequestScan, type RequestSummary } from '../objects/request-scan.js'

/** Maximum size of the headers of a part. */
const MAX_HEAD = 8_192

/** Scans one form. */
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
