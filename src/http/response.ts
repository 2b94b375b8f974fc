/**
 * One answer on its way to a client: a head, a body in one piece or in many, and how it ended.
 * A whole answer, and the head of a stream with its first piece, leave in one write.
 */
import { STATUS_CODES } from 'node:http'
import { flat, isFieldText } from '../wire/http-message.js'

/** What an answer asks of its connection. */
export interface Outlet {
  /** True where another request may follow this answer on the connection. */
  readonly keepsAlive: boolean
  /** The lines that promise so. */
  readonly keepAliveLines: string
  /** Bytes that wait for the client to take them. */
  readonly writableLength: number
  /** The other end's, as the socket has it. */
  readonly address: string
  /** False where the client is behind; `drained` is told once it is not. */
  write(data: string | Buffer, encoding: 'latin1' | 'utf8'): boolean
  /** The answer has been written whole: `Response.finished` is due once it has left. */
  answered(): void
  /** Ends the connection, now or once what is written has left. */
  cut(isSoon: boolean): void
}

/** Whose answer it is. */
export interface ResponseOwner {
  /** What the client may call the exchange by, where it has an id. */
  readonly id?: string
  /** The answer has left whole (`writableFinished`), or the connection is gone. Called once. */
  closed(): void
}

/** Who writes the answer. */
export interface ResponseWatcher extends ResponseOwner {
  /** The client has caught up, after a write that said it was behind. */
  drained(): void
}

/** Pieces up to this are copied into one buffer with their frame; larger ones are not. */
const COPY_BYTES = 8192
/** An answer without a body of its own: neither length nor chunks are told beyond what is given. */
const BODILESS = new Set([204, 304])

/** An answer: written once, by `send` or by `writeHead`, `write` and `end`. */
export class Response {
  statusCode = 200
  /** True once the head is written, or waits for the first piece. */
  headersSent = false
  /** True once the whole answer has left. */
  writableFinished = false
  /** True once nothing can be written any more: what is written is dropped. */
  destroyed = false
  /** True once it has been ended by `breakOff`: that the connection goes says nothing of the client. */
  brokenOff = false
  /** True where the connection ends with this answer; known with the head. */
  closes = false
  owner: ResponseOwner | null = null
  watcher: ResponseWatcher | null = null
  /** Name, value, … of whoever has the path: sent with every head, behind the answer's own. */
  besides: readonly string[] = []
  private readonly outlet: Outlet
  private readonly isOld: boolean
  private isBodiless: boolean
  private isChunked = false
  private isEnded = false
  private isOver = false
  /** A head that waits for the first piece. */
  private head = ''

  constructor(outlet: Outlet, httpVersion: string, method: string) {
    this.outlet = outlet
    this.isOld = httpVersion === '1.0'
    this.isBodiless = method === 'HEAD'
  }

  /** Bytes that wait for the client to take them. */
  get writableLength(): number {
    return this.outlet.writableLength
  }

  /** The client's address as the socket has it; empty once that is gone. */
  get address(): string {
    return this.outlet.address
  }

  /**
   * Begins the answer; `headers` are name, value, …, behind `lines`, which are as `headLines` makes them. The head
   * leaves with the first piece.
   */
  writeHead(status: number, headers: readonly string[], lines = ''): this {
    this.begin(status, headers, -1, lines)
    return this
  }

  /** The whole answer at once, its head as `writeHead` has it; `length` is the body's in bytes, and is told. */
  send(
    status: number,
    headers: readonly string[],
    body: string | Buffer,
    length = Buffer.byteLength(body),
    lines = '',
  ): void {
    const isText = typeof body === 'string'
    this.begin(status, headers, length, lines)
    this.isEnded = true
    if (this.isBodiless) this.flushHeaders()
    else if (isText) this.pass(body, length === body.length)
    // Latin-1 gives the bytes back as they were.
    else if (length <= COPY_BYTES) this.pass(body.toString('latin1'), true)
    else {
      this.flushHeaders()
      this.put(body, 'latin1')
    }
    this.conclude()
  }

  /** Sends the head without waiting for the first piece. */
  flushHeaders(): void {
    if (this.head === '') return
    const { head } = this
    this.head = ''
    this.put(head, 'latin1')
  }

  /**
   * Sends a piece of the body, of `length` bytes. False where the client is behind; the watcher is told once
   * it is not.
   */
  write(piece: string | Buffer, length = Buffer.byteLength(piece)): boolean {
    if (this.isEnded || this.destroyed || piece.length === 0) return true
    if (this.isBodiless) return true
    if (typeof piece !== 'string') return this.writeBytes(piece)
    const text = this.isChunked ? `${length.toString(16)}\r\n${piece}\r\n` : piece
    return this.pass(text, length === piece.length)
  }

  /** Ends the answer, with a last piece of it. */
  end(piece: string | Buffer = ''): void {
    if (this.isEnded) return
    if (piece.length > 0) this.write(piece)
    this.isEnded = true
    if (this.isChunked && !this.isBodiless) this.pass('0\r\n\r\n', true)
    else this.flushHeaders()
    this.conclude()
  }

  /** Ends an answer that is not whole, after a last piece: the connection is cut where the end would be. */
  breakOff(piece: string): void {
    this.write(piece)
    this.isEnded = true
    this.brokenOff = true
    this.outlet.cut(true)
  }

  /** Drops the connection, unless the answer has left whole. */
  destroy(): void {
    if (this.writableFinished) return
    this.destroyed = true
    this.outlet.cut(false)
  }

  /** For the connection: all that was written has left, and that is the whole answer. */
  finished(): void {
    this.writableFinished = true
    this.over()
  }

  /** For the connection: it is gone, or nobody listens at its other end. */
  lost(isGone: boolean): void {
    if (this.writableFinished) return
    this.destroyed = true
    if (isGone) this.over()
  }

  private over(): void {
    if (this.isOver) return
    this.isOver = true
    this.owner?.closed()
    this.watcher?.closed()
  }

  /** `length` is the body's where it is known, else -1. */
  private begin(status: number, headers: readonly string[], length: number, lines: string): void {
    if (this.headersSent) throw new Error('the head has been written already')
    this.headersSent = true
    this.statusCode = status
    if (BODILESS.has(status)) this.isBodiless = true
    let head = status === 200 ? OK : statusLine(status)
    if (lines !== '') head += lines
    let hasLength = false
    let hasConnection = false
    const all = this.besides.length === 0 ? headers : [...headers, ...this.besides]
    if (all.length > 0) {
      head += headLines(all)
      hasLength = hasName(all, 'content-length')
      // Nobody gives it but to say `close`.
      hasConnection = hasName(all, 'connection')
    }
    if (length >= 0) {
      hasLength = true
      head += `content-length: ${length}\r\n`
    }
    const isFramed = hasLength || this.isBodiless || !this.isOld
    this.closes = hasConnection || !isFramed || !this.outlet.keepsAlive
    const keeping = this.closes ? 'Connection: close\r\n' : this.outlet.keepAliveLines
    head += lastLines(hasConnection ? '' : keeping)
    this.isChunked = !hasLength && !this.isBodiless && !this.isOld
    this.head = head + (this.isChunked ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n')
  }

  /** Text, with the head where that still waits. ASCII is the same in both encodings, and quicker in one. */
  private pass(text: string, isAscii: boolean): boolean {
    const { head } = this
    this.head = ''
    return this.put(head === '' ? text : head + text, isAscii ? 'latin1' : 'utf8')
  }

  private writeBytes(piece: Buffer): boolean {
    this.flushHeaders()
    if (!this.isChunked) return this.put(piece, 'latin1')
    const size = `${piece.length.toString(16)}\r\n`
    if (piece.length > COPY_BYTES) {
      this.put(size, 'latin1')
      this.put(piece, 'latin1')
      return this.put('\r\n', 'latin1')
    }
    return this.put(`${size}${piece.toString('latin1')}\r\n`, 'latin1')
  }

  private put(data: string | Buffer, encoding: 'latin1' | 'utf8'): boolean {
    return this.destroyed || this.outlet.write(data, encoding)
  }

  private conclude(): void {
    if (!this.destroyed) this.outlet.answered()
  }
}

/** Name, value, … as lines of a head. Throws where one of them would be two. */
export function headLines(headers: readonly string[]): string {
  let lines = ''
  let values = ''
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1] ?? ''
    lines += `${headers[i] ?? ''}: ${value}\r\n`
    values += value
  }
  if (!isFieldText(values)) throw new Error('a header has characters it may not have')
  return lines
}

function hasName(headers: readonly string[], name: string): boolean {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return true
  return false
}

const OK = 'HTTP/1.1 200 OK\r\n'

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
}

let date = ''
/** The lines behind the date that were asked for last, and all of them as one part. */
let lastBehind = ''
let last = ''

/** The time by the second, made once in each, and the lines behind it. */
function lastLines(behind: string): string {
  if (date !== '' && behind === lastBehind) return last
  if (date === '') {
    const now = new Date()
    date = `Date: ${now.toUTCString()}\r\n`
    setTimeout(() => (date = ''), 1000 - now.getMilliseconds()).unref()
  }
  lastBehind = behind
  last = flat(date + behind)
  return last
}
