/**
 * First set-up: a gateway without an administrator prints a link that creates one. The process that starts
 * the workers makes the link, so that a gateway has only one. Gateways that start together on one store print
 * one each, and every link is valid until one of them has created the administrator.
 */
import { gatewayRoleOf } from '../../accounts/address-proof.js'
import { GatewayError } from '../../errors.js'
import { userPages } from '../../store/list-all.js'
import type { Store } from '../../store/store.js'
import { signInTokenIdOf } from './sessions.js'

/** Lifetime of the link. */
const LINK_MS = 86_400_000
/** The token of the link that is being used: it exists once, and no secret has this digest. */
const CLAIM_ID = '0'.repeat(64)
/** How long the use of a link may take. After a crash the other links work again after this time. */
const CLAIM_MS = 60_000

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
    if (page.some((user) => gatewayRoleOf(user) === 'admin')) return true
  }
  return false
}

/**
 * Stores the secret of a set-up link for a day. Returns true if this process should print the link; false if
 * another process has stored it, or an administrator exists. The links of other gateways stay valid, since
 * their operators may have read them already.
 */
export async function offerSetUp(
  store: Pick<Store, 'users' | 'signInTokens'>,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  if (await hasAdmin(store)) return false
  const id = signInTokenIdOf(secret)
  const expiresAtMs = nowMs + LINK_MS
  return store.signInTokens.add({ id, kind: 'set-up', accountId: '', expiresAtMs, text: '' })
}

/**
 * Creates the first administrator with the link of this id, and ends all links. Of several links that are
 * used at the same time, one creates it. If `create` rejects, the link stays valid. Returns null if
 * the link has been used, or an administrator exists.
 */
export async function redeemSetUp<T>(
  store: Pick<Store, 'users' | 'signInTokens'>,
  { id, now }: { readonly id: string; readonly now: () => number },
  create: () => Promise<T>,
): Promise<T | null> {
  const { signInTokens } = store
  if (!(await claim(store, now()))) {
    const message = 'Another link creates the administrator at this moment: try again.'
    throw new GatewayError('forbidden', message, { param: 'link' })
  }
  try {
    const link = await signInTokens.take('set-up', id, now())
    // Not `hasAdmin`, which may join a search that began before the claim.
    if (link === null || (await searchAdmin(store))) return null
    const made = await create().catch(async (error: unknown) => {
      await signInTokens.add(link)
      throw error
    })
    await signInTokens.end('set-up', '', CLAIM_ID)
    return made
  } finally {
    await signInTokens.take('set-up', CLAIM_ID, now())
  }
}

/** False while another link is being used. */
async function claim(
  { signInTokens }: Pick<Store, 'users' | 'signInTokens'>,
  nowMs: number,
): Promise<boolean> {
  const expiresAtMs = nowMs + CLAIM_MS
  const token = { id: CLAIM_ID, kind: 'set-up', accountId: '', expiresAtMs, text: '' } as const
  if (await signInTokens.add(token)) return true
  // The claim of a process that has crashed keeps its id until it is removed.
  await signInTokens.sweep(nowMs)
  return signInTokens.add(token)
}
