/**
 * The beginning: a gateway without an administrator prints a link that makes the first one.
 * The link is made by the process that starts the others, so that all of them print one and the same.
 */
import { everyAccount } from '../../../store/list-all.js'
import type { Store } from '../../../store/store.js'
import { passIdOf } from './sessions.js'

/** How long the link is good. */
const LINK_MS = 86_400_000

const known = new WeakSet<object>()
const searches = new WeakMap<object, Promise<boolean>>()

/** Whether there is an administrator. Administrators are not taken away, so one look that finds any will do. */
export async function hasAdmin(store: Pick<Store, 'listAccounts'>): Promise<boolean> {
  if (known.has(store)) return true
  // Everybody who opens the page without being signed in asks; one search at a time answers them all.
  const search = searches.get(store) ?? searchAdmin(store)
  searches.set(store, search)
  try {
    const found = await search
    if (found) known.add(store)
    return found
  } finally {
    searches.delete(store)
  }
}

async function searchAdmin(store: Pick<Store, 'listAccounts'>): Promise<boolean> {
  for await (const { role } of everyAccount(store)) if (role === 'admin') return true
  return false
}

/**
 * Makes the secret of a set-up link good for a day, and those of earlier starts bad. True where this
 * process was the first to do so, and should tell; false where others did, or there is an administrator.
 */
export async function offerSetUp(
  store: Pick<Store, 'listAccounts' | 'signInTokens'>,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  if (await hasAdmin(store)) return false
  const id = passIdOf(secret)
  await store.signInTokens.end('set-up', '', id)
  const expiresAtMs = nowMs + LINK_MS
  return store.signInTokens.add({ id, kind: 'set-up', accountId: '', expiresAtMs, text: '' })
}
