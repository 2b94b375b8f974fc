/**
 * What the client of a WebSocket sends to a provider, each message of which is checked as the body of a
 * request is: its bytes pass on, unchanged and in order, only when the check of the whole message has ended.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { GatewayError } from '../../errors.js'
import type { HeldMemory } from '../body-memory.js'
import { RequestScan } from '../objects/request-scan.js'
import { FrameReader } from './frame-reader.js'
import { uncheckable } from './inspect-body.js'

/** A complete message, without its frames. */
interface ClientMessage {
  readonly bytes: Buffer
  /** The objects that it names, if it is JSON. */
  readonly scan: RequestScan
}

/** Rejects for a message that the provider must not receive. */
export type MessageCheck = (message: ClientMessage) => Promise<void>

interface ClientMessagesOptions {
  readonly check: MessageCheck
  readonly held: HeldMemory
  /** Maximum size of a message. */
  readonly maxBytes: number
}

/** Passes the frames of the messages that the check allows; fails with its error for any other. */
export class ClientMessages extends Transform {
  private readonly options: ClientMessagesOptions
  private readonly frames: FrameReader
  /** Frames of messages that are incomplete, as they arrived. */
  private waiting: Buffer[] = []
  private heldBytes = 0
  private parts: Buffer[] = []
  private partBytes = 0
  /** Messages that are complete and not checked. */
  private complete: Buffer[] = []

  constructor(options: ClientMessagesOptions) {
    super()
    this.options = options
    this.frames = new FrameReader({
      part: (bytes) => {
        this.parts.push(bytes)
        this.partBytes += bytes.length
      },
      end: () => {
        this.complete.push(Buffer.concat(this.parts))
        this.parts = []
        this.partBytes = 0
      },
    })
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.pass(chunk).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : new Error('the check failed')),
    )
  }

  /** A message that the client has not completed does not reach the provider. */
  override _flush(done: TransformCallback): void {
    this.release()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.release()
    done(error)
  }

  private async pass(chunk: Buffer): Promise<void> {
    const { held, maxBytes } = this.options
    // The frames, and the message without them.
    held.take(2 * chunk.length)
    this.heldBytes += 2 * chunk.length
    const complete = this.frames.write(chunk)
    if (this.frames.isLost) throw uncheckable('its frames cannot be read', 'The WebSocket')
    if (this.partBytes > maxBytes) {
      const message = `A message of the WebSocket has more than ${maxBytes} bytes (server.max_body_bytes).`
      throw new GatewayError('body_too_large', message)
    }
    const messages = this.complete
    this.complete = []
    for (const bytes of messages) await this.check(bytes)
    if (complete === 0) {
      this.waiting.push(chunk)
      return
    }
    for (const frames of this.waiting) this.push(frames)
    this.push(chunk.subarray(0, complete))
    this.waiting = complete < chunk.length ? [chunk.subarray(complete)] : []
    const rest = 2 * (chunk.length - complete)
    held.release(this.heldBytes - rest)
    this.heldBytes = rest
  }

  private async check(bytes: Buffer): Promise<void> {
    const scan = new RequestScan(false)
    scan.write(bytes)
    scan.end()
    await this.options.check({ bytes, scan })
  }

  private release(): void {
    this.options.held.release(this.heldBytes)
    this.heldBytes = 0
    this.waiting = []
    this.parts = []
  }
}
