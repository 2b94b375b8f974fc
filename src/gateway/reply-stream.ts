/**
 * A streamed reply between the upstream's connection and the client's: a call into a translation per
 * chunk, and what is ready goes on at once. Holds what is ready before the client's side opens.
 * Knows no socket; not a Transform, which costs 5 µs per fragment here (docs/decisions/0003).
 */
import type { Exchange } from './exchange.js'
import { UNFORESEEN } from './fault.js'
import type { Translation } from './translate.js'

/** As much may wait for the client's side to open; enough for a head that is held for content. */
const WAITING_BYTES = 16_384

/** The client's side. */
export interface ReplySink {
  /** Takes a piece. False where the client is behind; `ReplyStream.drained` is due once it is not. */
  take(piece: string | Buffer): boolean
  /** Nothing more comes. Called once, last. */
  finish(): void
}

/** Upstream bytes in, the client’s bytes out, in one step each. */
export class ReplyStream {
  readonly translation: Translation
  /** Called after each piece, when the translation's verdict may have changed. */
  onStep: () => void = () => undefined
  /** Called when there is room again after `write` said that there was none. */
  onDrain: () => void = () => undefined
  private readonly x: Exchange
  private sink: ReplySink | null = null
  private waiting: (string | Buffer)[] = []
  private waitingBytes = 0
  private isFull = false
  private isOver = false
  /** The end has come, and the exchange knows. */
  private isEnding = false
  /** What comes from here on is the end, and waits for the exchange to let it go. */
  private isHeld = false
  /** The client is gone; what comes is read and dropped. */
  private isDraining = false
  private isDestroyed = false

  constructor(translation: Translation, x: Exchange) {
    this.translation = translation
    this.x = x
  }

  /** True where something waits for `open`. */
  get isWaiting(): boolean {
    return this.waiting.length > 0
  }

  /** One chunk of the upstream, which came at `nowMs`. False where no more should come until `onDrain`. */
  write(chunk: Buffer, nowMs: number): boolean {
    if (this.isOver) return true
    let ready: string | Buffer
    try {
      ready = this.translation.write(chunk)
    } catch (error) {
      ready = this.broken(error)
    }
    this.x.facts.translateMs += performance.now() - nowMs
    if (this.translation.outcome === 'complete') this.hold()
    if (ready.length > 0) this.pass(ready)
    this.onStep()
    return !this.isFull
  }

  /** The upstream's end of file; where it only paused, more is to come. Only the first end counts. */
  end(): void {
    if (this.isOver) return
    let ready: string | Buffer
    try {
      ready = this.translation.end()
    } catch (error) {
      ready = this.broken(error)
    }
    const isLast = this.translation.resume === null
    this.isOver = isLast
    if (this.translation.outcome === 'complete') this.hold()
    if (ready.length > 0) this.pass(ready)
    this.onStep()
    // One that failed before its client had any of it is not an end yet.
    if (!isLast || this.isDestroyed) return
    this.hold()
    if (!this.isHeld) this.sink?.finish()
  }

  /** Hands over to the client's side, with what has waited for it. */
  open(sink: ReplySink): void {
    this.sink = sink
    if (!this.isHeld) this.flush(sink)
  }

  /** The client has caught up. */
  drained(): void {
    if (!this.isFull) return
    this.isFull = false
    this.onDrain()
  }

  /** The client is gone, and the answer is to be read to its end all the same. */
  drain(): void {
    this.isDraining = true
    this.destroy()
    this.drained()
  }

  /** Nobody reads any more: what waits is dropped, and nothing is given, or even taken, from here on. */
  destroy(): void {
    this.isDestroyed = !this.isDraining
    this.isOver ||= this.isDestroyed
    this.sink = null
    this.waiting = []
  }

  private flush(sink: ReplySink): void {
    const { waiting } = this
    this.waiting = []
    let takesMore = true
    for (const piece of waiting) takesMore = sink.take(piece)
    if (this.isOver) sink.finish()
    else if (!takesMore) this.isFull = true
    else this.drained()
  }

  /** The end goes out once the exchange is done with what comes before it. */
  private hold(): void {
    if (this.isEnding) return
    this.isEnding = true
    const until = this.x.ending()
    if (until === null) return
    this.isHeld = true
    void until.then(() => {
      this.isHeld = false
      if (this.sink !== null) this.flush(this.sink)
    })
  }

  private pass(piece: string | Buffer): void {
    if (this.isDraining) return
    if (this.sink !== null && !this.isHeld) {
      if (!this.sink.take(piece)) this.isFull = true
      return
    }
    this.waiting.push(piece)
    this.waitingBytes += piece.length
    if (this.waitingBytes > WAITING_BYTES) this.isFull = true
  }

  /** A codec that throws has failed like any other. */
  private broken(error: unknown): string {
    this.x.failure = error
    this.translation.fail(UNFORESEEN)
    return ''
  }
}
