/**
 * The part of HTTP/1.1 that the clients and providers of the benchmark need, for well-formed input. A
 * complete parser would cost more than the measured work.
 */
import { isObject, type JsonObject } from '../../src/base/json.js'

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '0\r\n\r\n'

/**
 * Splits the bytes of a keep-alive connection into requests with a length or in chunks, whose framing stays
 * in the body. A request that equals the one before it and arrives in one chunk is not parsed again: under
 * load nearly all do.
 */
export class RequestReader {
  private text = ''
  private last: { readonly bytes: Buffer; readonly path: string; readonly body: string } | null = null
  private readonly onRequest: (path: string, body: string) => void

  constructor(onRequest: (path: string, body: string) => void) {
    this.onRequest = onRequest
  }

  write(bytes: Buffer): void {
    if (this.text === '' && this.last?.bytes.equals(bytes) === true) {
      this.onRequest(this.last.path, this.last.body)
      return
    }
    this.text += bytes.toString('latin1')
    const isAll = this.text.length === bytes.length
    for (;;) {
      const headEnd = this.text.indexOf(HEAD_END)
      if (headEnd < 0) return
      const head = this.text.slice(0, headEnd)
      const from = headEnd + HEAD_END.length
      const end = isChunked(head) ? chunksEnd(this.text, from) : from + contentLength(head)
      if (end === -1 || this.text.length < end) return
      const body = this.text.slice(from, end)
      this.text = this.text.slice(end)
      const path = head.split(' ', 2)[1] ?? ''
      if (isAll && end === bytes.length) this.last = { bytes: Buffer.from(bytes), path, body }
      this.onRequest(path, body)
    }
  }
}

/** Splits the bytes of a connection into replies, with a length or in chunks. */
export class ReplyReader {
  private text = ''
  private readonly onReply: (status: number, text: string) => void

  constructor(onReply: (status: number, text: string) => void) {
    this.onReply = onReply
  }

  write(bytes: Buffer): void {
    this.text += bytes.toString('latin1')
    const headEnd = this.text.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = this.text.slice(0, headEnd)
    const whole = isChunked(head)
      ? this.text.endsWith('\r\n0\r\n\r\n')
      : this.text.length >= headEnd + HEAD_END.length + contentLength(head)
    if (!whole) return
    const { text } = this
    this.text = ''
    this.onReply(statusOf(head), text)
  }
}

/** The status in the first line of a head. */
export function statusOf(head: string): number {
  return Number(head.slice(9, 12))
}

function isChunked(head: string): boolean {
  return /^transfer-encoding: *chunked/im.test(head)
}

/** The position after the last chunk; -1 until it has arrived. */
function chunksEnd(text: string, from: number): number {
  const last = text.startsWith(LAST_CHUNK, from) ? from : text.indexOf(`\r\n${LAST_CHUNK}`, from) + 2
  return last === 1 ? -1 : last + LAST_CHUNK.length
}

function contentLength(head: string): number {
  return Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
}

/** The bytes of a POST of a JSON body on a keep-alive connection. */
export function postBytes(path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

function fieldsOf(json: string): JsonObject {
  const value: unknown = JSON.parse(json)
  if (!isObject(value)) throw new Error('expected a JSON object of settings')
  return value
}

/** A number of the settings of a process of the benchmark. */
export function numberField(json: string, name: string): number {
  const value = fieldsOf(json)[name]
  if (typeof value !== 'number') throw new Error(`the setting '${name}' must be a number`)
  return value
}

/** A text of the settings of a process of the benchmark. */
export function textField(json: string, name: string): string {
  const value = fieldsOf(json)[name]
  if (typeof value !== 'string') throw new Error(`the setting '${name}' must be a text`)
  return value
}
