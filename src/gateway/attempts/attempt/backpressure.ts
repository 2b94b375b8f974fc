/** Chunks of an upstream's reply on their way into the stream of the client, with back-pressure on the upstream. */
import type { UpstreamCall } from '../../../upstreams/upstream-call.js'
import { joinChunks } from '../../bodies/join-chunks.js'
import type { ReplyTransform } from '../../streams/reply-transform.js'
import type { AttemptClock } from './attempt-timeouts.js'

/** The attempt that the chunks belong to. */
export interface ChunkFeedOwner {
  readonly clock: AttemptClock
  readonly upstream: UpstreamCall | null
  /** False once the stream has ended, or the attempt. */
  isStreaming(): boolean
}

/** Feeds one stream. */
export class ChunkFeed {
  private readonly stream: ReplyTransform
  private readonly fed: ChunkFeedOwner
  /** Chunks of the current read. */
  private arrived: Buffer[] = []

  constructor(stream: ReplyTransform, fed: ChunkFeedOwner) {
    this.stream = stream
    this.fed = fed
    stream.onDrain = () => this.resume()
  }

  take(chunk: Buffer): void {
    if (this.arrived.push(chunk) === 1) process.nextTick(() => this.pass())
  }

  /** Chunks of one read go on together: a write to the client costs more than the translation of many frames. */
  pass(): void {
    const { arrived, fed, stream } = this
    if (arrived.length === 0 || !fed.isStreaming()) return
    this.arrived = []
    const takesMore = stream.write(joinChunks(arrived))
    // If this chunk ended the stream nobody would resume, and the socket could not be used again.
    if (takesMore || !fed.isStreaming() || fed.clock.isPaused) return
    fed.clock.pause(performance.now())
    fed.upstream?.pause()
  }

  resume(): void {
    const { clock, upstream } = this.fed
    if (!clock.isPaused) return
    clock.resume(performance.now())
    upstream?.resume()
  }
}
