/**
 * Passes a stream if both sides use the same dialect: the upstream's own bytes, which the dialect's tap reads
 * for usage, errors and the end. Only the frames that the tap needs are parsed.
 */
import type { FinishReason } from '../../chat/event.js'
import type { OutputSize } from '../../chat/reply/output-size.js'
import type { Usage } from '../../chat/usage.js'
import type { StreamTap } from '../../dialects/dialect.js'
import type { WireError } from '../../errors.js'
import type { FrameSink } from '../../wire/frames/framer-types.js'
import { SseFramer } from '../../wire/frames/sse-framer.js'
import { OVERFLOW, TRUNCATED, type Translation, type ReplyResult } from './translated-stream.js'
import { ReplyTransform, type ReplyOwner } from './reply-transform.js'
import type { StreamForm } from './sse-or-json-array.js'

/** Passes the upstream's bytes to the client. */
export class PassthroughTransform extends ReplyTransform {
  constructor(tap: StreamTap, owner: ReplyOwner, form?: StreamForm) {
    super(new PassthroughStream(tap), owner, form)
  }
}

/** The bytes without the frames that are not for the client. Pure and synchronous. */
export class PassthroughStream implements Translation, FrameSink {
  outcome: ReplyResult['outcome'] = 'open'
  error: WireError | null = null
  wasCut = false
  readonly breach = null
  readonly lost = []
  readonly resume = null
  readonly repeatCause = null
  private readonly framer: SseFramer
  private readonly tap: StreamTap
  private ready = ''
  /** A frame was left out or added, so that the chunk cannot pass unchanged. */
  private isChanged = false

  constructor(tap: StreamTap) {
    this.tap = tap
    this.framer = new SseFramer(this, { bytes: true })
  }

  get usage(): Usage {
    return this.tap.usage
  }
  get reason(): FinishReason | null {
    return this.tap.reason
  }
  get model(): string | null {
    return this.tap.model
  }
  get tier(): string | null {
    return this.tap.tier
  }
  get outputSize(): OutputSize {
    return this.tap.outputSize
  }
  get content(): boolean {
    return this.tap.hasContent || this.outcome === 'complete'
  }

  /** A stream that passes through cannot pause. */
  proceed(): void {
    this.fail(TRUNCATED)
  }

  write(chunk: Buffer): string | Buffer {
    if (this.outcome !== 'open') return ''
    const startsBetweenEvents = this.framer.isBetweenEvents
    this.framer.write(chunk)
    if (this.framer.overflow) this.fail(OVERFLOW)
    this.takeUnframed()
    // Latin-1 text is as long as its bytes, so an equal length means that the chunk passes unchanged.
    if (startsBetweenEvents && !this.isChanged && this.ready.length === chunk.length) {
      this.ready = ''
      return chunk
    }
    return this.take()
  }

  end(): string | Buffer {
    if (this.outcome !== 'open') return ''
    this.framer.end()
    this.settle()
    if (this.tap.isFinished) this.terminate()
    // Without a blank line after the last event, the error event that follows would become a part of it.
    else if (this.ready !== '' && !this.ready.endsWith('\n\n')) this.ready += '\n\n'
    this.fail(TRUNCATED)
    return this.take()
  }

  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
  }

  errorFrame(error: WireError): string | null {
    return this.tap.failed?.(error) ?? null
  }

  frame(name: string, data: string): void {
    if (this.outcome !== 'open') return
    if (this.tap.frame(name, data)) {
      this.pass(this.framer.raw, this.tap)
    } else {
      this.ready += this.framer.lead
      this.isChanged = true
    }
    this.settle()
  }

  private pass(raw: string, { excess, missingFrame }: StreamTap): void {
    const index = excess === '' ? -1 : raw.lastIndexOf(excess)
    const forwarded = index < 0 ? raw : raw.slice(0, index) + raw.slice(index + excess.length)
    if (missingFrame === '') {
      this.ready += forwarded
      return
    }
    // Comments and blank lines before the frame stay before the inserted frame.
    const { lead } = this.framer
    this.ready += lead + missingFrame + forwarded.slice(lead.length)
    this.isChanged = true
  }

  /**
   * Comments are passed too, up to the end of the reply; later bytes are dropped, regardless of chunk
   * boundaries.
   */
  private takeUnframed(): void {
    const unframed = this.framer.takeUnframed()
    if (this.outcome === 'open') this.ready += unframed
  }

  private settle(): void {
    if (this.tap.error !== null) this.fail(this.tap.error)
    else if (this.tap.isComplete) this.complete()
  }

  /**
   * A finish reason and then the end of the connection: the content is complete, and clients wait for the
   * terminator.
   */
  private terminate(): void {
    if (this.outcome !== 'open') return
    if (this.ready !== '' && !this.ready.endsWith('\n\n')) this.ready += '\n\n'
    this.ready += this.tap.terminator
    this.wasCut = this.tap.terminator !== ''
    this.complete()
  }

  private complete(): void {
    if (this.outcome === 'open') this.outcome = 'complete'
  }

  private take(): string | Buffer {
    this.isChanged = false
    if (this.ready === '') return ''
    const bytes = Buffer.from(this.ready, 'latin1')
    this.ready = ''
    return bytes
  }
}
