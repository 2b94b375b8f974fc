/**
 * A body that came in pieces, whole. Knows nothing of what it says.
 */

/** A body with more bytes takes milliseconds for each look at it: what is done with it is done in turns. */
export const LARGE_BYTES = 256 * 1024

/** All pieces as one; the only one as it is, as most bodies come. */
export function joinChunks(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces)
}
