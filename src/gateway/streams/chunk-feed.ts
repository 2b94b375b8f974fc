/**
 * Passes the chunks of an upstream's reply to the client's stream, and pauses the upstream while that stream
 * is full. Streams that arrive fast share the turns of the event loop, so that they delay no other request.
 */
import { joinChunks } from './join-chunks.js'
import type { ReplyTransform } from './reply-transform.js'

/** The upstream is paused while this number of bytes waits. */
const PAUSE_BYTES = 64 * 1024
/** A read of this number of bytes is one of a fast stream. Models send less than a tenth of it. */
const FAST_BYTES = 16 * 1024
/** Fast streams are translated for this time in one turn, all of them together. */
const FAST_MS = 4

/** The upstream's side of a stream. */
export interface StreamSource {
  /** The reply is a stream that has not ended. */
  isStreaming(): boolean
  readonly isPaused: boolean
  pause(): void
  resume(): void
}

export class ChunkFeed {
  private readonly stream: ReplyTransform
  private readonly source: StreamSource
  /** Chunks that the stream does not have yet, and their size. */
  private arrived: Buffer[] = []
  private bytes = 0
  /** The chunks wait for a turn of the event loop. */
  private isWaiting = false

  constructor(stream: ReplyTransform, source: StreamSource) {
    this.stream = stream
    this.source = source
    stream.onDrain = () => this.resume()
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.arrived.push(chunk) === 1 && !this.isWaiting) process.nextTick(() => this.pass())
    if (this.bytes >= PAUSE_BYTES) this.source.pause()
  }

  /** Writes the collected chunks at once, before the end of the reply. */
  flush(): void {
    if (this.arrived.length > 0) this.write()
  }

  /**
   * Writes the collected chunks to the stream. Chunks of one read are written together, because a write to
   * the client costs more than the translation of many frames.
   */
  private pass(): void {
    if (this.bytes < FAST_BYTES) this.flush()
    else if (!FAST_STREAMS.pass(this)) {
      this.isWaiting = true
      this.source.pause()
    }
  }

  /** Writes the chunks in their turn. */
  write(): void {
    const { arrived, source, stream } = this
    this.isWaiting = false
    this.arrived = []
    this.bytes = 0
    if (arrived.length === 0 || !source.isStreaming()) return
    const takesMore = stream.write(joinChunks(arrived))
    // A stream that this chunk ended would never be resumed, and its connection could not be reused.
    if (!source.isStreaming()) return
    if (takesMore) this.resume()
    else if (!source.isPaused) source.pause()
  }

  resume(): void {
    if (this.source.isPaused && !this.isWaiting) this.source.resume()
  }
}

/** The fast streams of this process. */
class FastStreams {
  private waiting: ChunkFeed[] = []
  private usedMs = 0
  private hasTurn = false

  /** Writes the chunks if this turn has time for them; else they wait, in the order of their arrival. */
  pass(feed: ChunkFeed): boolean {
    const isNow = this.usedMs < FAST_MS && this.waiting.length === 0
    if (isNow) this.write(feed)
    else this.waiting.push(feed)
    return isNow
  }

  private write(feed: ChunkFeed): void {
    const beganMs = performance.now()
    feed.write()
    this.usedMs += performance.now() - beganMs
    if (this.hasTurn) return
    this.hasTurn = true
    setImmediate(() => this.turn())
  }

  private turn(): void {
    this.hasTurn = false
    this.usedMs = 0
    let next = 0
    const { waiting } = this
    for (; next < waiting.length && this.usedMs < FAST_MS; next += 1) {
      const feed = waiting[next]
      if (feed !== undefined) this.write(feed)
    }
    this.waiting = this.waiting.slice(next)
  }
}

const FAST_STREAMS = new FastStreams()
