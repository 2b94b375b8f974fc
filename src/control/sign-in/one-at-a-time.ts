/**
 * Sign-ins of one identity that may make or change its user run in sequence, over all processes. A
 * token of the store is the lock: it exists once, and no secret has its digest.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../errors.js'
import type { Store } from '../../store/store.js'
import type { Identity } from './identity-provider.js'
import { signInTokenIdOf } from './sessions.js'

/** After this time the lock of a process that was killed is free. */
const LOCK_MS = 30_000
const POLL_MS = 50
/** Longer than `LOCK_MS`. */
const MAX_POLLS = 700

/** Runs `work` while no other process runs it for the identity. */
export async function oneAtATime<Result>(
  { store, now }: { readonly store: Pick<Store, 'signInTokens'>; readonly now: () => number },
  { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { signInTokens } = store
  // Cookies and links have no brackets.
  const id = signInTokenIdOf(`identity ${JSON.stringify([issuer, subject])}`)
  for (let polls = 0; ; polls += 1) {
    const token = { id, kind: 'oidc', accountId: '', expiresAtMs: now() + LOCK_MS, text: '' } as const
    if (await signInTokens.add(token)) break
    if (polls === MAX_POLLS) {
      throw new GatewayError('forbidden', 'Another sign-in of this user is in progress: sign in again.')
    }
    // A lock that has expired keeps its id until it is removed.
    if (polls % 20 === 19) await signInTokens.sweep(now())
    await sleep(POLL_MS)
  }
  try {
    return await work()
  } finally {
    await signInTokens.take('oidc', id, now())
  }
}
