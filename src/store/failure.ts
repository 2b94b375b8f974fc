/**
 * A failure of the store as its callers are told, whatever the engine.
 */
import { GatewayError } from '../errors.js'

/** The client learns only that keys are not judged; what happened is in `cause`, for the log. */
export function unavailable(what: string, cause: unknown): GatewayError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new GatewayError('store_unavailable', 'The key store does not answer; try again.', {
    retryAfterSeconds: 1,
    cause: new Error(`${what}: ${reason}`, { cause }),
  })
}

/** A record that cannot be read, or is not what it should be. */
export function damaged(what: string, why: string): Error {
  return new Error(`the store's record of ${what} is damaged: ${why}`)
}
