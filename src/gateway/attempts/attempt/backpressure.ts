/**
 * Passes chunks of an upstream's reply to the client's stream, and pauses the upstream while that stream is
 * full. Streams that arrive fast share the turns of the event loop, so that they delay no other request.
 */
import { joinChunks } from '../../bodies/join-chunks.js'
import type { ReplyTransform } from '../../streams/reply-transform.js'
import type { UpstreamExchange } from './upstream-exchange.js'

/** The upstream is paused while this number of bytes waits. */
const PAUSE_BYTES = 64 * 1024
/** A read of this number of bytes is one of a fast stream. Models send less than a tenth of it. */
const FAST_BYTES = 16 * 1024
/** Fast streams are translated for this time in one turn, all of them together. */
const FAST_MS = 4

/** The chunks of one stream. */
export class ChunkFeed {
  private readonly stream: ReplyTransform
  private readonly exchange: UpstreamExchange
  /** Chunks that the stream does not have yet, and their size. */
  private arrived: Buffer[] = []
  private bytes = 0
  /** The chunks wait for a turn of the event loop. */
  private isWaiting = false

  constructor(stream: ReplyTransform, exchange: UpstreamExchange) {
    this.stream = stream
    this.exchange = exchange
    stream.onDrain = () => this.resume()
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.arrived.push(chunk) === 1 && !this.isWaiting) process.nextTick(() => this.pass())
    if (this.bytes >= PAUSE_BYTES) this.exchange.pause()
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
      this.exchange.pause()
    }
  }

  /** Writes the chunks in their turn. */
  write(): void {
    const { arrived, exchange, stream } = this
    this.isWaiting = false
    this.arrived = []
    this.bytes = 0
    if (arrived.length === 0 || !exchange.isStreaming()) return
    const takesMore = stream.write(joinChunks(arrived))
    // A stream that this chunk ended would never be resumed, and its connection could not be reused.
    if (!exchange.isStreaming()) return
    if (takesMore) this.resume()
    else if (!exchange.clock.isPaused) exchange.pause()
  }

  resume(): void {
    if (this.exchange.clock.isPaused && !this.isWaiting) this.exchange.resume()
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
