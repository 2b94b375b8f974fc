/**
 * The address of a user follows that at the identity provider: user, memberships and the keys that the user
 * made. The accounts keep theirs, since limits of the configuration select accounts by it.
 */
import type { AuditEntriesOf } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { hasName, type User } from './account.js'

/** Keys that are read, and changed in one step. */
const KEYS_AT_ONCE = 100

interface NewAddress {
  readonly user: User
  readonly email: string
  readonly nowMs: number
  readonly audit: AuditEntriesOf<User>
}

/** The user with the address; null, without a change, if another user has it. */
export async function followAddress(
  store: Pick<Store, 'users' | 'listKeys' | 'transact'>,
  { user, email, nowMs, audit }: NewAddress,
): Promise<User | null> {
  const changed = await store.users.changeEmail(user.id, email, audit)
  if (changed === null || changed === 'email_taken') return null
  if (user.email === email) return changed
  for (const { accountId } of await store.users.memberships(user.id)) {
    for (let after: string | null = null; ;) {
      const page = await store.listKeys(accountId, { order: 'oldest_first', after, limit: KEYS_AT_ONCE })
      const own = page.items.filter((key) => key.createdBy === user.email && hasName(key))
      const names = own.map(({ name }) => name)
      if (names.length > 0) await changeMaker(store, { accountId, names, nowMs, from: user.email, to: email })
      if (page.next === null) break
      after = page.next
    }
  }
  return changed
}

interface MakerChange {
  readonly accountId: string
  readonly names: readonly string[]
  readonly nowMs: number
  readonly from: string
  readonly to: string
}

/** Members see the keys that they made (`ApiKey.createdBy`). */
async function changeMaker(
  store: Pick<Store, 'transact'>,
  { accountId, names, nowMs, from, to }: MakerChange,
): Promise<void> {
  await store.transact<null>({
    ...{ accountId, nowMs, reads: { keys: names } },
    decide: ({ account, keys }) => {
      const own = [...keys.values()].filter(({ createdBy }) => createdBy === from)
      if (account === null || own.length === 0) return { refuse: null }
      return { write: { keys: own.map((key) => ({ ...key, createdBy: to })), audit: [] } }
    },
  })
}
