/**
 * Bytes to frames: the contract of every framing.
 * A framer is synchronous, keeps what is incomplete, and gives the same frames however the bytes were cut.
 */

/** How an upstream delimits the units of a stream. */
export type Framing = 'sse'

/** Takes one frame: the event's name (`''` where it has none) and its data. */
export interface FrameSink {
  frame(name: string, data: string): void
}

/** write() any number of times, then end() exactly once. */
export interface Framer {
  write(chunk: Buffer): void
  end(): void
}
