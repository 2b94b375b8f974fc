/**
 * A body that came in pieces, whole. Knows nothing of what it says.
 */

/** All pieces as one; the only one as it is, as most bodies come. */
export function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces)
}
