/**
 * The one Transform of a streamed reply: a call into a translation, and nothing else.
 */
import { Transform, type TransformCallback } from 'node:stream'
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import type { Translation } from './translate.js'

/** Small, so that a client that does not read holds little: 400 stuck readers held 689 KB each (L3). */
const BUFFER_BYTES = 16_384

/** Upstream bytes in, the client’s bytes out, in one step each. */
export class ReplyStream extends Transform {
  readonly translation: Translation
  /** Called after each piece, when the translation's verdict may have changed. */
  onStep: () => void = () => undefined
  private readonly x: Exchange

  constructor(translation: Translation, x: Exchange) {
    super({ readableHighWaterMark: BUFFER_BYTES, writableHighWaterMark: BUFFER_BYTES })
    this.translation = translation
    this.x = x
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const before = performance.now()
    this.pass(() => this.translation.write(chunk))
    this.x.facts.translateMs += performance.now() - before
    done()
    this.onStep()
  }

  override _flush(done: TransformCallback): void {
    this.pass(() => this.translation.end())
    done()
    this.onStep()
  }

  /** A codec that throws has failed like any other: a Transform that throws would never end. */
  private pass(translate: () => string | Buffer): void {
    try {
      const ready = translate()
      if (ready.length > 0) this.push(ready)
    } catch (error) {
      this.x.failure = error
      this.translation.fail(UNFORESEEN)
    }
  }
}
