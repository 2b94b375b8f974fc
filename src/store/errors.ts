/**
 * A failure of the store as its callers are told, whatever the engine.
 */
import { GatewayError } from '../errors.js'

/** The store that was opened has lost its data, or another one is in its place. */
export class LostStore extends Error {}

/** The store is not there, or is none. */
export class CannotOpen extends Error {}

/** A record that cannot be used, or is gone. */
export class DamagedRecord extends Error {}

/** The client learns only that keys are not judged; what happened is in `cause`, for the log. */
export function unavailable(what: string, cause: unknown): GatewayError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new GatewayError('store_unavailable', messageFor(cause), {
    retryAfterSeconds: 1,
    cause: new Error(`${what}: ${reason}`, { cause }),
  })
}

function messageFor(cause: unknown): string {
  if (cause instanceof LostStore) {
    return 'The key store has lost its data; an administrator has to restore it.'
  }
  if (cause instanceof CannotOpen) return 'The key store cannot be opened.'
  if (cause instanceof DamagedRecord) {
    return 'A record of the key store is damaged; an administrator has to restore it.'
  }
  return 'The key store does not answer; try again.'
}

/** The change was made where it was sent, and `reason` says why it may not last. */
export function unconfirmed(what: string, reason: string): GatewayError {
  const message =
    'The change is applied, not yet confirmed by a replica: a failover now could undo it. Repeating it is safe.'
  return new GatewayError('store_unconfirmed', message, {
    retryAfterSeconds: 1,
    cause: new Error(`${what} is applied, not yet confirmed: ${reason}`),
  })
}

/** For a step that only prepares a change: where it is not confirmed, the change was not made. */
export function notApplied(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unconfirmed') return error
  const message =
    'The change was not made: too few replicas confirm changes at the moment; try again.'
  const { cause } = error
  return new GatewayError('store_unavailable', message, { retryAfterSeconds: 1, cause })
}

/** What a failure says for the log: the cause, which a client does not see. */
export function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined }
  if (cause instanceof Error) return cause.message
  return error instanceof Error ? error.message : String(error)
}

/**
 * The store was emptied, or another one is in its place, since it was last opened: its keys are gone, and to
 * call the keys of clients wrong would be false. `missingPath`: the file of an embedded store, if it is gone.
 */
export function storeReplaced(found: 'none' | 'another', missingPath?: string): GatewayError {
  const what =
    found === 'none'
      ? 'the store is empty, and it was not when it was last opened'
      : 'another store is in the place of the one that was opened last'
  const advice = "restore it, or begin with what is there: 'sluice store accept --config FILE'"
  const where = missingPath === undefined ? '' : `'${missingPath}' does not exist: `
  return unavailable('opening the store failed', new LostStore(`${where}${what}; ${advice}`))
}

/** A record that cannot be read, or is not what it should be. */
export function damaged(what: string, why: string): Error {
  return new DamagedRecord(`the store's record of ${what} is damaged: ${why}`)
}
