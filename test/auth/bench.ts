/** What tests of the authenticator share: one whose store, time and chance are set by hand. */
import type { Identity } from '../../src/accounts/account.js'
import { Authenticator, type AuthResult } from '../../src/auth/authenticator.js'
import { AuthCache } from '../../src/auth/cache.js'
import { GatewayError, type WireError } from '../../src/errors.js'
import { FakeStore } from './fake-store.js'

/** An authenticator over a store, a clock and a chance that a test sets. */
export function newBench(cache = new AuthCache()) {
  const store = new FakeStore()
  const clock = { ms: 1_000_000, wallMs: 1_000 }
  const settings = { freshSeconds: 30, staleSeconds: 300 }
  const results: AuthResult[] = []
  const bench = { random: 0 }
  const auth = new Authenticator({
    store,
    settings: () => settings,
    now: () => clock.ms,
    wallClock: () => clock.wallMs,
    random: () => bench.random,
    onResult: (result) => results.push(result),
    cache,
  })
  return { store, clock, settings, results, auth, chance: bench }
}

/** What `newBench` makes. */
export type Bench = ReturnType<typeof newBench>

/** The identity, or the error as the client sees it; and that it came at once, if it did. */
export async function outcome(
  { auth }: Bench,
  secret: string | null,
): Promise<Identity | WireError> {
  try {
    return await auth.identify(secret)
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
}

/** The kind of the error, or `ok`. */
export async function kind(bench: Bench, secret: string | null): Promise<string> {
  const answer = await outcome(bench, secret)
  return 'kind' in answer ? answer.kind : 'ok'
}
