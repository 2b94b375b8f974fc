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

/**
 * The store was emptied, or another one is in its place, since it was last opened: its keys are gone, and to
 * call the keys of clients wrong would be false.
 */
export function storeLost(found: 'none' | 'another'): GatewayError {
  const what =
    found === 'none'
      ? 'the store is empty, and it was not when it was last opened'
      : 'another store is in the place of the one that was opened last'
  const advice = "restore it, or begin with what is there: 'sluice store accept --config FILE'"
  return unavailable('opening the store failed', new Error(`${what}; ${advice}`))
}

/** A record that cannot be read, or is not what it should be. */
export function damaged(what: string, why: string): Error {
  return new Error(`the store's record of ${what} is damaged: ${why}`)
}
