/**
 * The stream of a reply to the client: the upstream's bytes in, the client's bytes out. A thin shell around a
 * pure translation (`formats/translated-stream.ts`, or a watcher if both sides use the same dialect). Has no
 * socket and no timer. Until the client reads it, its read buffer holds the output.
 */
import { Transform, type TransformCallback } from 'node:stream'
import type { WireError } from '../../errors.js'
import type { ReplyLog } from '../../policy/capture-and-replay.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'
import type { Translation } from '../../formats/translated-stream.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { EVENT_STREAM, type StreamForm } from './sse-or-json-array.js'

/** High-water mark of each of its two buffers; enough for a head that waits for content. */
const BUFFERED_BYTES = 16_384
/** Written at the end of a part if the next part arrives on another connection. */
const END_OF_PART = Buffer.alloc(0)

/** The callbacks of a reply. */
export interface ReplyOwner {
  /**
   * Called once, at the end of the reply: writes its ledger entry. Resolves when the client may get the end;
   * null: at once.
   */
  ending(): Promise<void> | null
  /** Reports an exception of a codec. */
  threw(cause: unknown): void
  /** Reports the duration of one step of the translation. */
  translated(ms: number): void
}

/**
 * Emits `end` after the complete output was read, or `failed` if the reply failed after a part of it: nothing
 * follows then, and `translation` has the error.
 */
export class ReplyTransform extends Transform {
  readonly translation: Translation
  readonly form: StreamForm
  /** Called after each step of the translation. */
  onStep: () => void = () => undefined
  /** Called when a step that takes several turns has output. */
  onOutput: () => void = () => undefined
  /** Called when the stream accepts chunks again. */
  onDrain: () => void = () => undefined
  /** The reply failed and the error may be sent to the client. */
  hasFailed = false
  /** See `meter`. */
  isMetered = false
  /** The events of the reply; null if nothing needs them. */
  log: ReplyLog | null = null
  private readonly owner: ReplyOwner
  /** The client left and the rest of the reply is read: the output is dropped. */
  private isDrained = false
  /** The end of the form, such as `]`, was written. */
  private hasEnded = false
  /** Resolves when the end may be sent; undefined before the end. */
  private endDelay: Promise<void> | null | undefined

  constructor(translation: Translation, owner: ReplyOwner, form = EVENT_STREAM) {
    super({ highWaterMark: BUFFERED_BYTES })
    this.translation = translation
    this.form = form
    this.owner = owner
    this.on('drain', () => this.onDrain())
  }

  /** The upstream ended a part of the reply; another part may follow. */
  endPart(): void {
    this.write(END_OF_PART)
  }

  /** The reply failed after the client got a part of it. Translated output is still sent. */
  fail(error: WireError): void {
    this.translation.fail(error)
    const emit = (): void => {
      if (this.destroyed || this.hasFailed) return
      this.hasFailed = true
      this.emit('failed')
    }
    const delay = this.delayEnd()
    if (delay === null) emit()
    else void delay.then(emit)
  }

  /** The client left, and the rest of the reply is read: translates everything and drops the output. */
  drain(): void {
    this.isDrained = true
    // Others may get the events of the log.
    if (this.log === null) this.translation.unguard?.()
    this.removeAllListeners('data')
    this.resume()
  }

  /** A guardrail refused the rest of the reply, which is read to count its tokens: the client's side ends. */
  meter(): void {
    this.isDrained = true
    this.isMetered = true
    this.translation.meter?.()
    this.push(null)
  }

  /** The client's side closed. */
  leave(): void {
    if (!this.isDrained) this.destroy()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.translation.unguard?.()
    done(error)
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { translation } = this
    this.step(() => (chunk === END_OF_PART ? translation.end() : translation.write(chunk)), done)
  }

  /** The end of the upstream's connection is an input like any other. */
  override _flush(done: TransformCallback): void {
    this.step(
      () => this.translation.end(),
      () => {
        // If the reply failed before the client got any of it, another attempt may follow.
        if (this.destroyed) return
        const delay = this.delayEnd()
        if (delay === null) done()
        else void delay.then(() => done())
      },
    )
  }

  private step(translate: () => string | Buffer, done: () => void): void {
    const beganMs = performance.now()
    let ready: string | Buffer = ''
    try {
      ready = translate()
    } catch (error) {
      this.threw(error)
    }
    this.owner.translated(performance.now() - beganMs)
    if (this.translation.isPending) {
      if (ready.length > 0) {
        this.emitEvents(ready)
        this.onOutput()
      }
      const next = (): void => {
        if (!this.destroyed) this.step(() => this.translation.more(), done)
      }
      const { judging = null } = this.translation
      void (judging === null ? bodyTurns.next() : judging.catch((error: unknown) => this.threw(error))).then(
        next,
      )
      return
    }
    const delay = this.translation.outcome === 'complete' ? this.delayEnd() : null
    if (delay === null) this.emitOutput(ready)
    else {
      void delay.then(() => {
        this.emitOutput(ready)
        done()
      })
    }
    this.onStep()
    if (delay === null && !this.destroyed) done()
  }

  private threw(error: unknown): void {
    this.owner.threw(error)
    this.translation.fail(UNEXPECTED_FAILURE)
  }

  private emitOutput(ready: string | Buffer): void {
    if (this.destroyed || this.isDrained) return
    this.emitEvents(ready)
    if (this.translation.outcome !== 'complete' || this.hasEnded) return
    this.hasEnded = true
    const end = this.form.end()
    if (end !== '') this.push(end)
  }

  private emitEvents(ready: string | Buffer): void {
    if (this.destroyed || this.isDrained || ready.length === 0) return
    const events = this.form.events(ready)
    if (events.length > 0) this.push(events)
  }

  private delayEnd(): Promise<void> | null {
    // Without a client, the exchange ends when all its upstreams have.
    if (this.isDrained) return null
    if (this.endDelay === undefined) {
      const delay = this.owner.ending()
      this.endDelay = delay
      void delay?.then(() => (this.endDelay = null))
    }
    return this.endDelay
  }
}
