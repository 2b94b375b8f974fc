/**
 * What the head of a request says, and the heads of one connection.
 * Knows no route and no rule: what a request may be is `gateway/admit.ts`'s to say.
 */
import { headFields, type Framing } from '../wire/http-message.js'

const LINE = /^([A-Z-]{1,32}) ([!-~\x80-\xff]+) HTTP\/(\d\.\d)$/
/** The beginning of such a line; what does not match can become none any more. */
const LINE_BEGUN = /^[A-Z-]{1,32}(?: [!-~\x80-\xff]*(?: [HTP/.\d]{0,8}\r?)?)?$/
const CONTINUE = /^100-continue$/i
const LENGTH = /^(?:0|[1-9]\d{0,10})$/

/** The head of one request. */
export class RequestHead {
  readonly method: string
  /** The target as it was written. */
  readonly url: string
  readonly httpVersion: string
  /** Name, value, … in the order in which they came; the names in lower case. */
  readonly headers: readonly string[]
  /** What the client allows to come after the request on its connection. */
  readonly keepAlive: boolean
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean
  /** How the body's end is told; `close` where it cannot be known. Null: there is no body. */
  readonly framing: Framing | null

  constructor(method: string, url: string, version: string, headers: readonly string[]) {
    this.method = method
    this.url = url
    this.httpVersion = version
    this.headers = headers
    // HTTP/1.0 has to ask for it; whoever asks for the end gets that.
    let keeps = version === '1.1'
    let ends = false
    let awaits = false
    let length: string | null = null
    let encoding: string | null = null
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? ''
      const value = headers[i + 1] ?? ''
      // By length first: most fields are dismissed without looking at their name.
      switch (name.length) {
        case 6:
          if (name === 'expect') awaits = version === '1.1' && CONTINUE.test(value)
          break
        case 7:
          // What is behind a request to upgrade may be of the other protocol.
          if (name === 'upgrade') ends = true
          break
        case 10:
          if (name !== 'connection') break
          if (hasToken(value, 'keep-alive')) keeps = true
          if (hasToken(value, 'close')) ends = true
          break
        case 14:
          if (name === 'content-length') length ??= value
          break
        case 17:
          if (name === 'transfer-encoding') encoding ??= value
      }
    }
    this.keepAlive = keeps && !ends
    this.awaitsContinue = awaits
    this.framing = framingOf(length, encoding)
  }

  /** The value of the first field of a name, which is given in lower case. */
  header(name: string): string | undefined {
    const { headers } = this
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i] === name) return headers[i + 1]
    }
    return undefined
  }
}

function framingOf(length: string | null, encoding: string | null): Framing | null {
  if (encoding !== null) {
    return encoding === 'chunked' && length === null ? { kind: 'chunked' } : { kind: 'close' }
  }
  if (length === null || length === '0') return null
  return LENGTH.test(length) ? { kind: 'length', bytes: Number(length) } : { kind: 'close' }
}

/** The head whose text, up to and with its empty line, is given in Latin-1; null where it is none. */
export function parseHead(text: string): RequestHead | null {
  const end = text.indexOf('\r')
  const target = text.indexOf(' ') + 1
  const version = text.indexOf(' ', target) + 1
  if (end - version !== 8 || !LINE.test(text.slice(0, end))) return null
  const fields = headFields(text, end + 2)
  if (fields === null) return null
  return new RequestHead(
    text.slice(0, target - 1),
    text.slice(target, version - 1),
    text.slice(version + 5, end),
    fields,
  )
}

/** Where the first byte is, from `from` on, that is no line end. */
export function firstOf(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 13 || bytes[at] === 10) at += 1
  return at
}

/** False for bytes that no request begins with, so that nobody need wait for the rest of them. */
export function mayBeRequest(bytes: Buffer): boolean {
  const end = bytes.indexOf(10)
  if (end === -1) return LINE_BEGUN.test(bytes.toString('latin1'))
  return end > 0 && bytes[end - 1] === 13 && LINE.test(bytes.toString('latin1', 0, end - 1))
}

function hasToken(list: string, token: string): boolean {
  if (list === 'keep-alive') return list === token
  const tokens = list.toLowerCase().split(',')
  return tokens.some((each) => each.trim() === token)
}
