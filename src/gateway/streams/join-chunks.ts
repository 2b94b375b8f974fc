/**
 * Joins the chunks of a body, and defines the size from which a body is processed in several turns of the
 * event loop.
 */

/** Each pass over a larger body takes milliseconds, so it is processed in several turns of the event loop. */
export const LARGE_BYTES = 256 * 1024

/** All chunks as one buffer. A single chunk, the usual case, is returned without a copy. */
export function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks)
}
