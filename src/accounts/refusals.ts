/** Errors that operations on accounts and keys have in common. */
import { GatewayError } from '../errors.js'

/** Ids and digests are random, so a collision means a broken random source. */
export function unforeseen(kind: string, outcome: string): GatewayError {
  return new GatewayError('bug', `the store refused a new ${kind}: ${outcome}`)
}

/** The account does not exist. */
export function noAccount(): GatewayError {
  return refused('there is no such account', 'account')
}

/** A value that is not accepted; `param` names the field. */
export function refused(message: string, param: string): GatewayError {
  return new GatewayError('malformed_request', message, { param })
}
