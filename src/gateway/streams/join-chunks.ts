/**
 * Joins the chunks of a body, and defines the size from which a body is processed in several turns of the
 * event loop.
 */
import type { Steps } from '../../base/steps.js'

/** Each pass over a larger body takes milliseconds, so it is processed in several turns of the event loop. */
export const LARGE_BYTES = 256 * 1024
/** Bytes that are copied in one step. */
const STEP_BYTES = 4 * 1024 * 1024

/** All chunks as one buffer. A single chunk, the usual case, is returned without a copy. */
export function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks)
}

/** The same in steps; empties the list, so that each chunk can be freed. */
export function* joinedSteps(chunks: Buffer[]): Steps<Buffer> {
  if (chunks.length === 1) return joinChunks(chunks.splice(0))
  const bytes = Buffer.allocUnsafe(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  let stepEnd = STEP_BYTES
  for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
    at += chunk.copy(bytes, at)
    if (at < stepEnd) continue
    stepEnd = at + STEP_BYTES
    yield
  }
  return bytes
}
