/**
 * The beginning: a gateway without an administrator prints a link that makes the first one.
 * The link is made by the process that starts the others, so that all of them print one and the same.
 */
import type { Store } from '../store/store.js'
import { passIdOf } from './sessions.js'

/** How long the link is good. */
const LINK_MS = 86_400_000

const known = new WeakSet<object>()

/** Whether there is an administrator. Administrators are not taken away, so one look that finds any will do. */
export async function hasAdmin(store: Pick<Store, 'listAccounts'>): Promise<boolean> {
  if (known.has(store)) return true
  const accounts = await store.listAccounts()
  const found = accounts.some(({ role }) => role === 'admin')
  if (found) known.add(store)
  return found
}

/**
 * Makes the secret of a set-up link good for a day, and those of earlier starts bad. True where this
 * process was the first to do so, and should tell; false where others did, or there is an administrator.
 */
export async function offerSetUp(
  store: Pick<Store, 'listAccounts' | 'passes'>,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  if (await hasAdmin(store)) return false
  const id = passIdOf(secret)
  await store.passes.end('set-up', '', id)
  const expiresAtMs = nowMs + LINK_MS
  return store.passes.add({ id, kind: 'set-up', accountId: '', expiresAtMs, text: '' })
}
