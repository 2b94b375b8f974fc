/**
 * First set-up: a gateway without an administrator prints a link that creates one. The process that starts
 * the workers makes the link, so that there is only one.
 */
import { roleOf } from '../../../accounts/account.js'
import { userPages } from '../../../store/list-all.js'
import type { Store } from '../../../store/store.js'
import { signInTokenIdOf } from './sessions.js'

/** Lifetime of the link. */
const LINK_MS = 86_400_000

const known = new WeakSet<object>()
const searches = new WeakMap<object, Promise<boolean>>()

/** Whether an administrator exists. The result `true` is cached, since administrators are not removed. */
export async function hasAdmin(store: Pick<Store, 'users'>): Promise<boolean> {
  if (known.has(store)) return true
  // Every page without a session sends this request; concurrent ones share one search.
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

async function searchAdmin(store: Pick<Store, 'users'>): Promise<boolean> {
  for await (const page of userPages(store)) {
    if (page.some((user) => roleOf(user) === 'admin')) return true
  }
  return false
}

/**
 * Stores the secret of a set-up link for a day and ends earlier links. Returns true if this process should
 * print the link; false if another process has stored it, or an administrator exists.
 */
export async function offerSetUp(
  store: Pick<Store, 'users' | 'signInTokens'>,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  if (await hasAdmin(store)) return false
  const id = signInTokenIdOf(secret)
  await store.signInTokens.end('set-up', '', id)
  const expiresAtMs = nowMs + LINK_MS
  return store.signInTokens.add({ id, kind: 'set-up', accountId: '', expiresAtMs, text: '' })
}
