/** Set-up of the authenticator's tests: a fake store, a manual clock and a fixed random number. */
import type { Identity } from '../../../src/accounts/account.js'
import type { AuthResult } from '../../../src/accounts/authentication/authentication-result.js'
import { Authenticator } from '../../../src/accounts/authentication/authenticator.js'
import { AuthCache } from '../../../src/accounts/authentication/key-cache.js'
import { GatewayError, type WireError } from '../../../src/errors.js'
import { FakeStore } from './fake-store.js'

/** Returns an authenticator with the store, clock, settings and random number that a test controls. */
export function newBench(cache = new AuthCache()) {
  const store = new FakeStore()
  const clock = { ms: 1_000_000, wallMs: 1_000 }
  const settings = { acceptImportedKeys: false, freshSeconds: 30, staleSeconds: 300 }
  const results: AuthResult[] = []
  const chance = { random: 0 }
  const auth = new Authenticator({
    store,
    settings: () => settings,
    now: () => clock.ms,
    wallClock: () => clock.wallMs,
    random: () => chance.random,
    onResult: (result) => results.push(result),
    cache,
  })
  return { store, clock, settings, results, auth, chance }
}

/** The result of `newBench`. */
export type Bench = ReturnType<typeof newBench>

/** The identity of the key, or the error as the client receives it. */
export async function outcome({ auth }: Bench, secret: string | null): Promise<Identity | WireError> {
  try {
    return await auth.identify(secret)
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
}

/** The kind of the error, or `ok`. */
export async function kind(bench: Bench, secret: string | null): Promise<string> {
  const result = await outcome(bench, secret)
  return 'kind' in result ? result.kind : 'ok'
}
