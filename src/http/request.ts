/**
 * One request as its head and body came over a connection.
 * Knows no route and no rule: what a request may be is `gateway/admit.ts`'s to say.
 */
import type { Framing } from '../wire/http-message.js'
import { headFields } from '../wire/http-message.js'

/** Who takes a request's body. */
export interface BodyTaker {
  /** One piece of the body, in order. */
  data(piece: Buffer): void
  /** The body is whole. Not called where it never became so. */
  end(): void
}

/** What a request asks of its connection. */
export interface Intake {
  /** Somebody takes the body from here on. */
  wanted(): void
}

const NONE: Buffer[] = []
const NO_TRAILERS: readonly string[] = []
const LINE = /^([A-Z-]{1,32}) ([!-~\x80-\xff]+) HTTP\/(\d\.\d)$/
/** The beginning of such a line; what does not match can become none any more. */
const LINE_BEGUN = /^[A-Z-]{1,32}(?: [!-~\x80-\xff]*(?: [HTP/.\d]{0,8}\r?)?)?$/
const CONTINUE = /^100-continue$/i
const LENGTH = /^(?:0|[1-9]\d{0,10})$/
/** The head of a request, and its body once somebody takes it. */
export class Request {
  readonly method: string
  /** The target as it was written. */
  readonly url: string
  readonly httpVersion: string
  /** Name, value, … in the order in which they came; the names in lower case. */
  readonly headers: readonly string[]
  /** Name, value, … of the fields behind a chunked body. */
  trailers = NO_TRAILERS
  /** True once the whole body has come. */
  complete = false
  /** The client waits for `100 Continue` before it sends the body. */
  awaitsContinue = false
  /** What the client allows to come after this request on its connection. */
  readonly keepAlive: boolean
  private readonly length: string | null = null
  private readonly encoding: string | null = null
  private connection: Intake | null = null
  private taker: BodyTaker | null = null
  private queue: Buffer[] = NONE
  private isDiscarded = false

  constructor(method: string, url: string, version: string, headers: readonly string[]) {
    this.method = method
    this.url = url
    this.httpVersion = version
    this.headers = headers
    // HTTP/1.0 has to ask for it; whoever asks for the end gets that.
    let keeps = version === '1.1'
    let ends = false
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? ''
      const value = headers[i + 1] ?? ''
      // By length first: most fields are dismissed without looking at their name.
      switch (name.length) {
        case 6:
          if (name === 'expect') this.awaitsContinue = version === '1.1' && CONTINUE.test(value)
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
          if (name === 'content-length') this.length ??= value
          break
        case 17:
          if (name === 'transfer-encoding') this.encoding ??= value
      }
    }
    this.keepAlive = keeps && !ends
  }

  /** The value of the first field of a name, which is given in lower case. */
  header(name: string): string | undefined {
    const { headers } = this
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i] === name) return headers[i + 1]
    }
    return undefined
  }

  /** Gives what has come of the body, and then what comes, to `taker`. */
  read(taker: BodyTaker): void {
    this.taker = taker
    const { queue } = this
    this.queue = NONE
    for (const piece of queue) this.push(piece)
    this.connection?.wanted()
    if (this.complete) this.tellEnd()
  }

  /** Throws away what has come of the body and what comes; nobody is told any more. */
  discard(): void {
    this.isDiscarded = true
    this.taker = null
    this.queue = NONE
  }

  /** How the body's end is told; `close` where it cannot be known. Null: there is no body. */
  framing(): Framing | null {
    const { length, encoding } = this
    if (encoding !== null) {
      return encoding === 'chunked' && length === null ? { kind: 'chunked' } : { kind: 'close' }
    }
    if (length === null || length === '0') return null
    return LENGTH.test(length) ? { kind: 'length', bytes: Number(length) } : { kind: 'close' }
  }

  /** For the connection: whom to tell that the body is wanted. */
  awaitFor(connection: Intake): void {
    this.connection = connection
  }

  /** For the connection: a piece has come. False where it is only held, for a taker that may come. */
  push(piece: Buffer): boolean {
    if (this.taker !== null) {
      this.taker.data(piece)
      return true
    }
    if (this.isDiscarded) return true
    if (this.queue === NONE) this.queue = [piece]
    else this.queue.push(piece)
    return false
  }

  /** For the connection: the body has come to its end. */
  finish(trailers = NO_TRAILERS): void {
    this.trailers = trailers
    this.complete = true
    this.awaitsContinue = false
    this.tellEnd()
  }

  private tellEnd(): void {
    this.taker?.end()
  }
}

/** The request whose head, up to and with its empty line, is `text`, in Latin-1; null where it is none. */
export function parseRequest(text: string): Request | null {
  const end = text.indexOf('\r')
  const target = text.indexOf(' ') + 1
  const version = text.indexOf(' ', target) + 1
  if (end - version !== 8 || !LINE.test(text.slice(0, end))) return null
  const fields = headFields(text, end + 2)
  if (fields === null) return null
  return new Request(
    text.slice(0, target - 1),
    text.slice(target, version - 1),
    text.slice(version + 5, end),
    fields,
  )
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
