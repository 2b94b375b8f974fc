/**
 * The interface of framers, which split bytes into frames. A framer is synchronous, keeps incomplete frames,
 * and emits the same frames regardless of chunk boundaries.
 */

/** How an upstream delimits the frames of a stream. */
export type Framing = 'sse'

/** Receives frames: the name of the event (`''` if it has none) and its data. */
export interface FrameSink {
  frame(name: string, data: string): void
}

/** write() any number of times, then end() exactly once. */
export interface Framer {
  write(chunk: Buffer): void
  end(): void
}
