/** Finds the account of a request by its API key, before any of the body is read. */
import type { Identity } from '../../accounts/account.js'
import type { Authenticator } from '../../auth/authenticator.js'
import { clientKeyOf } from './find-client-key.js'
import type { Exchange } from '../client-exchange.js'

/** The account that a request runs as. */
export interface Authenticated {
  readonly identity: Identity
  readonly tookMs: number
}

/**
 * Returns the account at once if the key is cached, else a promise. Throws, or rejects with, `GatewayError`.
 */
export function authenticate(
  x: Exchange,
  authenticator: Authenticator,
): Authenticated | Promise<Authenticated> {
  if (x.runsAs !== null) return accept(x, x.runsAs)
  const { text, keyIn } = clientKeyOf(x.req, x.path)
  const identified = authenticator.identifyBy(text, keyIn, x.clientAddress)
  return identified instanceof Promise
    ? identified.then((identity) => accept(x, identity))
    : accept(x, identified)
}

function accept(x: Exchange, identity: Identity): Authenticated {
  x.keyDigest = identity.digest
  return { identity, tookMs: performance.now() - x.startedMs }
}
