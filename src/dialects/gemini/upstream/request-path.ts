/**
 * Where a request goes: the path below the upstream's base URL.
 * Refuses to let a model id be anything but one segment of that path.
 */
import { GatewayError } from '../../../errors.js'

/** Longer than any id that Google serves (the longest known has 40 characters). */
const MAX_MODEL_CHARS = 128

/** What a model id may be made of. No slash, dot-only name, query, fragment, escape or space. */
const MODEL_ID = /^[A-Za-z0-9_][A-Za-z0-9._@:+-]*$/

/**
 * The path and what we accept back. Throws `GatewayError(unknown_model)` for an id that could not
 * be one: the id stands in the path, so anything outside the allow-list is refused, not escaped.
 */
export function target(model: string, stream: boolean): { path: string; accept: string } {
  if (model.length > MAX_MODEL_CHARS || !MODEL_ID.test(model)) {
    throw new GatewayError(
      'unknown_model',
      'No such model: the id has characters no model id has.',
      {
        param: 'model',
      },
    )
  }
  const path = `/models/${encodeURIComponent(model)}`
  return stream
    ? { path: `${path}:streamGenerateContent?alt=sse`, accept: 'text/event-stream' }
    : { path: `${path}:generateContent`, accept: 'application/json' }
}
