/**
 * Errors of the store. Their messages are for clients; the cause is for the log.
 */
import { dirname } from 'node:path'
import { GatewayError } from '../errors.js'
import { accessProblem } from '../base/file-access.js'

/** The store lost its data, or another one is at its address. */
export class LostStore extends Error {}

/** The store does not exist, or is not a store of this program. */
export class CannotOpen extends Error {}

/** A copy of the store cannot be written. */
export class CannotCopy extends Error {}

/** A record is damaged, or disappeared. */
class DamagedRecord extends Error {}

/** Whether a failure of the store is a damaged record: the store itself works. */
export function isDamaged(error: unknown): boolean {
  const cause = error instanceof GatewayError && error.cause instanceof Error ? error.cause.cause : null
  return cause instanceof DamagedRecord
}

/** The store failed while it did `what`. The message does not contain the cause. */
export function unavailable(what: string, cause: unknown): GatewayError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const advice = cause instanceof CannotCopy ? COPY_ADVICE : adviceFor(reason)
  return new GatewayError('store_unavailable', messageFor(cause), {
    retryAfterSeconds: 1,
    cause: new Error(`${what}: ${reason}${advice}`, { cause }),
  })
}

/** SQLite's and the system's reasons for a file, or a folder, that this user cannot write. */
const NOT_WRITABLE = /readonly database|unable to open database|cannot create the folder|EACCES|EROFS/
/** Their reasons for a disk that is full or broken, or a file that has reached the limit of the process. */
const DISK_FAILS = /disk is full|disk I\/O error|ENOSPC|EFBIG|EIO/
/** SQLite's reasons for a file with wrong content. */
const DAMAGED = /disk image is malformed|no such (?:table|column)/
const NO_STORE = /(?:file|it) is (?:not a database|a database of another program|a folder|not a regular file)/
const COPY_ADVICE = '; choose a folder that you can write to, on a disk with free space'

function adviceFor(reason: string): string {
  if (NOT_WRITABLE.test(reason)) {
    return '; set "store" to a file in a folder that the gateway\'s user can write to'
  }
  if (DISK_FAILS.test(reason)) return '; check that the disk works and has free space'
  if (DAMAGED.test(reason)) return "; restore a copy that 'sluice backup' made"
  if (NO_STORE.test(reason)) return '; set "store" to a store of sluice or to a new file'
  return ''
}

function messageFor(cause: unknown): string {
  if (cause instanceof LostStore) {
    return 'The key store has lost its data; an administrator has to restore it.'
  }
  if (cause instanceof CannotOpen) return 'The key store cannot be opened.'
  if (cause instanceof CannotCopy) return 'The copy cannot be written.'
  if (cause instanceof DamagedRecord) {
    return 'A record of the key store is damaged; an administrator has to restore it.'
  }
  const reason = cause instanceof Error ? cause.message : ''
  if (DISK_FAILS.test(reason)) return 'The disk of the key store is full or has failed.'
  if (NOT_WRITABLE.test(reason)) return 'The key store cannot be written: it is read-only.'
  if (DAMAGED.test(reason)) return 'The key store is damaged; an administrator has to restore it.'
  return 'The key store does not answer; try again.'
}

/** The primary applied the change; a failover could still undo it, for `reason`. */
export function unconfirmed(what: string, reason: string): GatewayError {
  const message =
    'The change is applied, not yet confirmed by a replica: a failover now could undo it. Repeating it is safe.'
  return new GatewayError('store_unconfirmed', message, {
    retryAfterSeconds: 1,
    cause: new Error(`${what} is applied, not yet confirmed: ${reason}`),
  })
}

/** Turns `store_unconfirmed` of a preparing step into `store_unavailable`: the change itself was not made. */
export function notApplied(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.kind !== 'store_unconfirmed') return error
  const message = 'The change was not made: too few replicas confirm changes at the moment; try again.'
  const { cause } = error
  return new GatewayError('store_unavailable', message, { retryAfterSeconds: 1, cause })
}

/** The message of the error's cause, for the log. */
export function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined }
  if (cause instanceof Error) return cause.message
  return error instanceof Error ? error.message : String(error)
}

/**
 * The store was emptied or replaced since it was last opened. Answering 401 for its keys would be wrong, so
 * it is refused. `missingPath`: the file of an embedded store, if it does not exist.
 */
export function storeReplaced(found: 'none' | 'another', missingPath?: string): GatewayError {
  const what =
    found === 'none'
      ? 'the store is empty, and it was not when it was last opened'
      : 'another store is at the address of the one that was opened last'
  const advice = "restore it, or accept the current one with 'sluice store accept --config FILE'"
  const where = missingPath === undefined ? '' : `'${missingPath}' does not exist: `
  return unavailable('opening the store failed', new LostStore(`${where}${what}; ${advice}`))
}

/** The reason for a file that must exist. */
export function missing(path: string): string {
  const problem = accessProblem(dirname(path), 'read')
  if (problem !== null) return problem
  return `'${path}' does not exist: check "store", or let 'sluice serve' or 'sluice accounts create' create it`
}

/** A record cannot be read, or belongs to something else. */
export function damaged(what: string, why: string): Error {
  return new DamagedRecord(`the store's record of ${what} is damaged: ${why}`)
}
