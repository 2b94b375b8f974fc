/** What changes of accounts, keys, members and tokens have in common: clock, randomness, and errors. */
import { GatewayError } from '../errors.js'
import type { RandomBytes } from './key-secret.js'

/** Clock and randomness; tests pass their own. */
export interface Sources {
  /** Milliseconds since 1970. */
  readonly now?: () => number
  readonly random?: RandomBytes
}

/** Ids and digests are random, so a collision means a broken random source. */
export function unforeseen(kind: string, outcome: string): GatewayError {
  return new GatewayError('bug', `the store refused a new ${kind}: ${outcome}`)
}
