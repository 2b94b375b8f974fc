/**
 * One WebSocket of a client of Responses, from its opening to its end. Each turn runs as a request of its
 * own; the connection has the responses of its turns, and limits on its input and its lifetime.
 */
import type { Socket } from 'node:net'
import { WebSocket, type RawData } from 'ws'
import type { Identity } from '../../accounts/account.js'
import { GatewayError, isRetryable, waitSecondsOf } from '../../errors.js'
import { encodeError } from '../../formats/openai-responses/client/encode-error.js'
import { MAX_TEXT_BYTES, type ParsedObject } from '../../formats/wire/json/parse-body.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import type { HttpRequest, HttpResponse } from '../../http/message.js'
import type { HeldMemory } from '../body-memory.js'
import type { SocketTurn } from '../client-exchange.js'
import { NOT_LISTED } from '../in-flight-list.js'
import type { ConnectionResponses } from '../stored-responses/connection-responses.js'
import type { Timed } from '../timeouts.js'
import { toGatewayError } from '../phases/send-error.js'
import { isObjectText, parseMessage, turnIn, type LastTurn, type RequestedTurn } from './read-message.js'
import { errorMessage, TurnReply, TurnRequest, type Handshake } from './turn-messages.js'

/** Reasons for which the gateway closes a WebSocket (RFC 6455, section 7.4.1). */
export const CLOSE = { away: 1001, unsupported: 1003, policy: 1008, tooBig: 1009 } as const

/** The lifetime of a connection, as OpenAI's: then its client opens another one. */
const LIFETIME_MS = 60 * 60_000
/** Maximum input in a minute. */
const MAX_INPUT_BYTES = 128 * 1024 * 1024
const MINUTE_MS = 60_000
/** Interval of the pings on a connection without a turn; a client that answers none has left. */
const PING_MS = 30_000
/** Time for the client to answer a close. */
const CLOSING_MS = 1000
/** Bytes of a control frame beside its data. */
const FRAME_BYTES = 14

/** Announces its close because of an invalid message, so that the client gets an error before it. */
export class ClientSocket extends WebSocket {
  onClosing: ((code: number | undefined) => void) | null = null

  override close(code?: number, reason?: string | Buffer): void {
    if (this.readyState === WebSocket.OPEN) this.onClosing?.(code)
    super.close(code, reason)
  }
}

/** What a session needs from its gateway. */
interface SocketOptions {
  readonly identity: Identity
  readonly handshake: Handshake
  readonly kept: ConnectionResponses
  /** Counts the memory of messages while they arrive. */
  readonly held: HeldMemory
  /** Starts a turn as a request of its own. */
  readonly run: (req: HttpRequest, res: HttpResponse, turn: SocketTurn) => void
  readonly onClosed: () => void
}

/** An open WebSocket. Its messages are read until `close`. */
export class ResponsesSocket implements Timed {
  listIndex = NOT_LISTED
  private readonly socket: ClientSocket
  private readonly options: SocketOptions
  private readonly openedMs = performance.now()
  private turn: { readonly reply: TurnReply; readonly ended: Promise<void> } | null = null
  private last: LastTurn | null = null
  /** Messages are read in sequence. */
  private reading: Promise<void> = Promise.resolve()
  /** Bytes of what has not arrived completely; messages that wait to be read have theirs. */
  private arrivingBytes = 0
  private minute = { beganMs: this.openedMs, bytes: 0 }
  private pingedMs = this.openedMs
  private hasAnswered = true
  /** How the connection ends after its turn; null if it stays open. */
  private ending: { readonly message: string | null; readonly code: number } | null = null
  private isClosing = false

  constructor(socket: ClientSocket, options: SocketOptions) {
    this.socket = socket
    this.options = options
    socket.onClosing = (code) => this.closingInvalid(code)
    socket
      .on('message', (data, isBinary) => this.received(data, isBinary))
      .on('ping', (data) => this.control(data))
      .on('pong', (data) => this.control(data))
      .on('close', () => this.closed())
      // The close follows.
      .on('error', () => undefined)
    const { socket: connection } = options.handshake
    connection.prependListener('data', (chunk: Buffer) => this.arrived(chunk.length, connection))
  }

  /** The digest of the key that opened it; null for a credential that cannot be revoked. */
  get keyDigest(): string | null {
    return this.options.identity.digest
  }

  /** Closes the connection after its turn, with an error if there is one. */
  end(code: number, error: GatewayError | null = null): void {
    this.ending ??= { message: error === null ? null : messageOf(error), code }
    if (this.turn === null) this.finish()
  }

  tick(nowMs: number): void {
    if (nowMs - this.openedMs > LIFETIME_MS) this.end(CLOSE.policy, tooOld())
    if (nowMs - this.pingedMs < PING_MS) return
    this.pingedMs = nowMs
    if (!this.hasAnswered) this.socket.terminate()
    else if (this.turn === null) {
      this.hasAnswered = false
      this.socket.ping()
    }
  }

  /** Counts bytes of the connection before the message that they belong to is read. */
  private arrived(bytes: number, connection: Socket): void {
    this.hasAnswered = true
    if (this.isClosing) return
    const nowMs = performance.now()
    if (nowMs - this.minute.beganMs > MINUTE_MS) this.minute = { beganMs: nowMs, bytes: 0 }
    this.minute.bytes += bytes
    if (this.minute.bytes > MAX_INPUT_BYTES) {
      const mib = MAX_INPUT_BYTES / 1024 / 1024
      const message = `The connection sent more than ${mib} MiB in a minute.`
      this.fail(new GatewayError('rate_limited', message, { retryAfterSeconds: 60 }), CLOSE.policy)
      return
    }
    try {
      this.options.held.take(bytes)
      this.arrivingBytes += bytes
    } catch (error) {
      this.fail(toGatewayError(error), CLOSE.tooBig)
      connection.resume()
    }
  }

  private control(data: Buffer): void {
    this.free(data.length + FRAME_BYTES)
  }

  private free(bytes: number): void {
    this.options.held.free(this.taken(bytes))
  }

  /** That many of the bytes that have arrived are no longer those of a message that is not complete. */
  private taken(bytes: number): number {
    const taken = Math.min(bytes, this.arrivingBytes)
    this.arrivingBytes -= taken
    return taken
  }

  private received(data: RawData, isBinary: boolean): void {
    if (this.isClosing) return
    if (isBinary || !Buffer.isBuffer(data) || !isObjectText(data)) {
      this.fail(noObject('The message must be text with a JSON object.'), CLOSE.unsupported)
      return
    }
    // With the heads of its frames, and what of the next message came with its end.
    const heldBytes = this.taken(Infinity)
    this.reading = this.reading.then(() => this.read(data)).then(() => this.options.held.free(heldBytes))
  }

  /** Never rejects. */
  private async read(bytes: Buffer): Promise<void> {
    try {
      const parsed = await parseMessage(bytes)
      if (this.isClosing) return
      await this.take(bytes, parsed)
    } catch (thrown) {
      const error = toGatewayError(thrown)
      if (isJson(bytes)) this.send(messageOf(error))
      else this.fail(error, CLOSE.unsupported)
    }
  }

  private async take(bytes: Buffer, parsed: ParsedObject): Promise<void> {
    const isCreate = parsed.value['type'] !== 'response.processed'
    if (isCreate && this.turn !== null) {
      if (!this.turn.reply.isOver) {
        const message = 'The connection runs one turn at a time: wait for the end of the response.'
        this.fail(new GatewayError('malformed_request', message, { param: 'type' }), CLOSE.policy)
        return
      }
      await this.turn.ended
    }
    const requested = turnIn(bytes, parsed, this.last)
    if (requested !== null && !this.isClosing) this.start(requested)
  }

  private start(requested: RequestedTurn): void {
    const { handshake, kept, run } = this.options
    const req = new TurnRequest(handshake, requested)
    const reply = new TurnReply(req, {
      send: (text, done) => this.send(text, done),
      ping: () => this.socket.ping(),
    })
    const { lastId } = kept
    const ended = new Promise<void>((resolve) => {
      reply.once('close', () => {
        const responseId = kept.lastId === lastId ? null : kept.lastId
        this.last = { settings: requested.settings, responseId }
        this.turnEnded(reply)
        resolve()
      })
    })
    this.turn = { reply, ended }
    run(req, reply, { kept, generates: requested.generates })
  }

  private turnEnded(reply: TurnReply): void {
    this.turn = null
    if (this.isClosing) return
    if (!reply.isOver) this.send(messageOf(new GatewayError('bug', 'The turn ended without a reply.')))
    // The credential has expired or was revoked: no later turn can succeed.
    if (reply.statusCode === 401) this.ending = { message: null, code: CLOSE.policy }
    if (this.ending !== null) this.finish()
  }

  private finish(): void {
    if (this.ending === null || this.isClosing) return
    const { message, code } = this.ending
    if (message !== null) this.send(message)
    this.close(code)
  }

  /** Sends the error, and closes the connection at once. */
  private fail(error: GatewayError, code: number): void {
    this.send(messageOf(error))
    this.close(code)
  }

  private close(code: number): void {
    this.isClosing = true
    this.socket.close(code)
    setTimeout(() => this.socket.terminate(), CLOSING_MS).unref()
  }

  /** The library closes the connection: of its own reasons, the client gets the error of HTTP. */
  private closingInvalid(code: number | undefined): void {
    if (this.isClosing) return
    this.isClosing = true
    if (code === CLOSE.tooBig) {
      this.send(messageOf(new GatewayError('body_too_large', 'The message is too large.')))
    } else if (code === 1002 || code === 1007 || code === CLOSE.policy) {
      this.send(messageOf(noObject('The message is not valid.')))
    }
  }

  private send(text: string, done: () => void = () => undefined): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text, () => done())
    else done()
  }

  private closed(): void {
    this.isClosing = true
    const { held, kept, onClosed } = this.options
    this.turn?.reply.destroy()
    held.end()
    kept.end()
    onClosed()
  }
}

function noObject(message: string): GatewayError {
  return new GatewayError('malformed_request', message)
}

function tooOld(): GatewayError {
  const message = 'The connection has reached its limit of 60 minutes: open another one to continue.'
  return new GatewayError('malformed_request', message, { code: 'websocket_connection_limit_reached' })
}

/** Whether the bytes are JSON, which may still be refused; larger texts are not parsed a second time. */
function isJson(bytes: Buffer): boolean {
  if (bytes.length > MAX_TEXT_BYTES) return true
  try {
    JSON.parse(bytes.toString('utf8'))
    return true
  } catch {
    return false
  }
}

/** The event of an error that belongs to no request. */
function messageOf({ wire }: GatewayError): string {
  const { status, body } = encodeError(withoutSecrets(wire))
  const headers: Record<string, string> = {}
  const seconds = waitSecondsOf(wire)
  if (seconds !== undefined) headers['retry-after'] = String(seconds)
  if (!isRetryable(wire)) headers['x-should-retry'] = 'false'
  return errorMessage({ status, body, headers })
}
