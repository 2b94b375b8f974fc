/**
 * A streamed reply on its way to the client: the upstream's bytes in, the client's bytes out.
 * A thin shell around a pure translation (`translated-stream.ts`, or a watcher when both sides speak the same dialect).
 * No socket, no timer. Until the client's side is piped, its read buffer holds what is ready.
 */
import { Transform, type TransformCallback } from 'node:stream'
import type { WireError } from '../../errors.js'
import { UNEXPECTED_FAILURE } from '../transport-errors.js'
import type { Translation } from './translated-stream.js'
import { EVENT_STREAM, type StreamForm } from './stream-form.js'

/** Most bytes in each of its two buffers before it asks its source to wait; enough for a head that is held for content. */
const BUFFERED_BYTES = 16_384
/** Written when a part of a reply ends and the next one follows from another connection. */
const END_OF_PART = Buffer.alloc(0)

/** What a reply reports to while it is translated. */
export interface ReplyOwner {
  /**
   * Called once, when the reply has come to its end: its ledger entry is written. Resolves when the client may have
   * the end; null if at once.
   */
  ending(): Promise<void> | null
  /** A codec threw this. */
  threw(cause: unknown): void
  /** A step of the translation took so long. */
  translated(ms: number): void
}

/**
 * Emits `end` once the client has everything, and `failed` if the reply failed after a part of it was given: nothing
 * follows then, and `translation` has the error.
 */
export class ReplyTransform extends Transform {
  readonly translation: Translation
  readonly form: StreamForm
  /** Called after each step, when the translation's replyResult may have changed. */
  onStep: () => void = () => undefined
  /** Called when there is room again. */
  onDrain: () => void = () => undefined
  /** The reply failed and the client may be told. */
  hasFailed = false
  private readonly owner: ReplyOwner
  /** The client left and the reply is read on: what is ready is dropped. */
  private isDrained = false
  /** What ends a complete stream was given. */
  private hasEnded = false
  /** Until when the end is held back; undefined before the end. */
  private held: Promise<void> | null | undefined

  constructor(translation: Translation, owner: ReplyOwner, form = EVENT_STREAM) {
    super({ highWaterMark: BUFFERED_BYTES })
    this.translation = translation
    this.form = form
    this.owner = owner
    this.on('drain', () => this.onDrain())
  }

  /** The upstream ended a part of the reply; the next part may follow. */
  endPart(): void {
    this.write(END_OF_PART)
  }

  /** The reply failed after the client got a part of it. What has been translated still goes out. */
  fail(error: WireError): void {
    this.translation.fail(error)
    const emit = (): void => {
      if (this.destroyed || this.hasFailed) return
      this.hasFailed = true
      this.emit('failed')
    }
    const held = this.hold()
    if (held === null) emit()
    else void held.then(emit)
  }

  /** The client left, and the upstream's reply is to be read to its end: everything is translated and dropped. */
  drain(): void {
    this.isDrained = true
    this.unpipe()
    this.removeAllListeners('data')
    this.resume()
  }

  /** The client's side closed. */
  leave(): void {
    if (!this.isDrained) this.destroy()
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
        // A reply that failed before the client got any of it is not an end: another attempt may follow.
        if (this.destroyed) return
        const held = this.hold()
        if (held === null) done()
        else void held.then(() => done())
      },
    )
  }

  private step(translate: () => string | Buffer, done: () => void): void {
    const beganMs = performance.now()
    let ready: string | Buffer = ''
    try {
      ready = translate()
    } catch (error) {
      this.owner.threw(error)
      this.translation.fail(UNEXPECTED_FAILURE)
    }
    this.owner.translated(performance.now() - beganMs)
    const held = this.translation.outcome === 'complete' ? this.hold() : null
    if (held === null) this.give(ready)
    else {
      void held.then(() => {
        this.give(ready)
        done()
      })
    }
    this.onStep()
    if (held === null && !this.destroyed) done()
  }

  private give(ready: string | Buffer): void {
    if (this.destroyed || this.isDrained) return
    const events = ready.length > 0 ? this.form.events(ready) : ''
    if (events.length > 0) this.push(events)
    if (this.translation.outcome !== 'complete' || this.hasEnded) return
    this.hasEnded = true
    const end = this.form.end()
    if (end !== '') this.push(end)
  }

  private hold(): Promise<void> | null {
    if (this.held === undefined) {
      const held = this.owner.ending()
      this.held = held
      void held?.then(() => (this.held = null))
    }
    return this.held
  }
}
