/**
 * Passes chunks of an upstream's reply to the client's stream, and pauses the upstream while that stream is
 * full.
 */
import { joinChunks } from '../../bodies/join-chunks.js'
import type { ReplyTransform } from '../../streams/reply-transform.js'
import type { UpstreamExchange } from './upstream-exchange.js'

/** The chunks of one stream. */
export class ChunkFeed {
  private readonly stream: ReplyTransform
  private readonly exchange: UpstreamExchange
  /** Chunks of the current read. */
  private arrived: Buffer[] = []

  constructor(stream: ReplyTransform, exchange: UpstreamExchange) {
    this.stream = stream
    this.exchange = exchange
    stream.onDrain = () => this.resume()
  }

  add(chunk: Buffer): void {
    if (this.arrived.push(chunk) === 1) process.nextTick(() => this.flush())
  }

  /**
   * Writes the collected chunks to the stream. Chunks of one read are written together, because a write to
   * the client costs more than the translation of many frames.
   */
  flush(): void {
    const { arrived, exchange, stream } = this
    if (arrived.length === 0 || !exchange.isStreaming()) return
    this.arrived = []
    const takesMore = stream.write(joinChunks(arrived))
    // A stream that this chunk ended would never be resumed, and its connection could not be reused.
    if (takesMore || !exchange.isStreaming() || exchange.clock.isPaused) return
    exchange.pause()
  }

  resume(): void {
    if (this.exchange.clock.isPaused) this.exchange.resume()
  }
}
