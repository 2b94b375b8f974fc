/**
 * The request and the reply of one turn in the form of HTTP, so that the pipeline serves a turn as it serves
 * `POST /v1/responses`. The events of the reply become text messages.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { objectOf } from '../../base/json.js'
import { SseFramer } from '../../formats/wire/frames/sse-framer.js'
import { DetachedReply } from '../../http/detached-reply.js'
import type { HttpRequest } from '../../http/message.js'

/** The request that opened the WebSocket. */
export interface Handshake {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly socket: Socket
}

/**
 * Headers of the handshake that do not hold for a turn: those of the connection and of a body, and the key
 * under which an upstream would repeat its reply to another turn.
 */
const OF_HANDSHAKE =
  /^(?:connection|upgrade|content-.*|transfer-encoding|expect|te|trailer|sec-websocket-.*|openai-beta|idempotency-key)$/i

/** The body of a turn, and its own headers beside those of the handshake. */
export interface TurnBody {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** The request of a turn. */
export class TurnRequest extends Readable implements HttpRequest {
  readonly method = 'POST'
  readonly httpVersion = '1.1'
  readonly complete = true
  readonly rawTrailers: string[] = []
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[] = []
  readonly socket: Socket
  private body: Buffer | null

  constructor(handshake: Handshake, { body, headers: own }: TurnBody) {
    super()
    this.url = handshake.url
    this.socket = handshake.socket
    this.body = body
    const json = { 'content-type': 'application/json', 'content-length': String(body.length) }
    const added = { ...own, ...json }
    const kept = Object.entries(handshake.headers).filter(([name]) => !OF_HANDSHAKE.test(name))
    this.headers = { ...Object.fromEntries(kept), ...added }
    for (let at = 0; at < handshake.rawHeaders.length; at += 2) {
      const name = handshake.rawHeaders[at] ?? ''
      if (OF_HANDSHAKE.test(name) || name.toLowerCase() in added) continue
      this.rawHeaders.push(name, handshake.rawHeaders[at + 1] ?? '')
    }
    this.rawHeaders.push(...Object.entries(added).flat())
  }

  override _read(): void {
    const { body } = this
    this.body = null
    if (body !== null && body.length > 0) this.push(body)
    else this.push(null)
  }
}

/** The connection, to the reply of a turn. */
interface TurnSink {
  /** Sends a text message; `done` is called when the operating system has it, or cannot take it. */
  send(text: string, done: () => void): void
  /** Tells the client that the turn is still running. */
  ping(): void
}

/** Events that end a turn. */
const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error'])
/** The type of an event, which is its first member in every reply. */
const TYPE = /^\{\s*"type"\s*:\s*"([a-z0-9_.]{1,64})"/
const REMAINING = 'x-sluice-remaining-'
/** Beyond this many unsent bytes the pipeline waits for the client. */
const MAX_UNSENT_BYTES = 16 * 1024

/** The reply of a turn: its events, or the error of a request that was refused, as messages. */
export class TurnReply extends DetachedReply<TurnRequest> {
  /** The last event of the turn was sent. */
  isOver = false
  private readonly sink: TurnSink
  private readonly framer: SseFramer
  private readonly error: Buffer[] = []
  /** The messages of the chunk that is being written. */
  private messages: string[] = []
  private hasBegun = false

  constructor(req: TurnRequest, sink: TurnSink) {
    super(req, { highWaterMark: MAX_UNSENT_BYTES })
    this.sink = sink
    this.framer = new SseFramer({ frame: (name, data) => this.event(name, data) })
  }

  /** The stream ends with an error event, and the connection stays. */
  truncate(): void {
    this.end()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.isError) {
      this.error.push(chunk)
      done()
      return
    }
    this.framer.write(chunk)
    this.sendMessages(done)
  }

  override _final(done: () => void): void {
    if (this.isError) {
      this.messages.push(this.errorMessage())
      this.isOver = true
    } else this.framer.end()
    this.sendMessages(done)
  }

  private get isError(): boolean {
    return this.statusCode >= 400
  }

  private event(name: string, data: string): void {
    if (data === '[DONE]') return
    if (!this.hasBegun) {
      this.hasBegun = true
      const remaining = [...this.headers].filter(([header]) => header.startsWith(REMAINING))
      if (remaining.length > 0) this.messages.push(limitsMessage(Object.fromEntries(remaining)))
    }
    if (LAST.has(name === '' ? (TYPE.exec(data)?.[1] ?? '') : name)) this.isOver = true
    this.messages.push(data)
  }

  /** Without messages the chunk was a heartbeat. */
  private sendMessages(done: () => void): void {
    const { messages } = this
    this.messages = []
    const last = messages.pop()
    if (last === undefined) {
      if (!this.isOver) this.sink.ping()
      done()
      return
    }
    for (const message of messages) this.sink.send(message, () => undefined)
    this.sink.send(last, done)
  }

  private errorMessage(): string {
    const headers = Object.fromEntries(this.headers)
    delete headers['content-type']
    delete headers['content-length']
    const body = Buffer.concat(this.error).toString('utf8')
    return errorMessage({ status: this.statusCode, body, headers })
  }
}

/** What is left of limits, which replies over HTTP have in headers. Codex ignores types that are unknown. */
function limitsMessage(headers: Readonly<Record<string, string>>): string {
  return JSON.stringify({ type: 'sluice.limits', headers })
}

/** An error reply of HTTP. */
interface ErrorReply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** The error event with the status, the error and the headers that the client would get over HTTP. */
export function errorMessage({ status, body, headers }: ErrorReply): string {
  const { error = null } = objectOf(JSON.parse(body))
  return JSON.stringify({ type: 'error', status, error, headers })
}
