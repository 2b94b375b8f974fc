/** Changes of accounts and keys in a store, as records and without the rules of `accounts/changes`. */
import {
  firstOwnerOf,
  type Account,
  type ApiKey,
  type KeyReference,
  type User,
} from '../../src/accounts/account.js'
import type { AccountConflict } from '../../src/store/account-changes.js'
import type { AuditEntriesOf, AuditEntry } from '../../src/store/audit-trail.js'
import type { Store } from '../../src/store/store.js'

type Changed = Pick<Store, 'transact'>

/** Creates an account and, with a login, its owner. */
export async function putAccount(
  store: Changed,
  account: Account,
  audit: readonly AuditEntry[] = [],
  login?: User,
): Promise<'created' | AccountConflict> {
  const members = login === undefined ? {} : { users: [login], members: [firstOwnerOf(account, login)] }
  const result = await store.transact<AccountConflict>({
    ...{ accountId: account.id, nowMs: account.createdAtMs },
    decide: (state) =>
      state.account === null ? { write: { account, audit, ...members } } : { refuse: 'id_taken' },
  })
  if (result.kind === 'written') return 'created'
  return result.kind === 'conflict' ? result.conflict : result.reason
}

/** Changes members of an account; null if it does not exist. */
export async function editAccount(
  store: Changed,
  accountId: string,
  edit: Partial<Account>,
  auditOf: AuditEntriesOf<Account> = () => [],
): Promise<Account | null> {
  const result = await store.transact({
    ...{ accountId, nowMs: Date.now() },
    decide({ account }) {
      if (account === null) return { refuse: 'absent' }
      const changed = { ...account, ...edit }
      return { write: { account: changed, audit: auditOf(account, changed) } }
    },
  })
  return result.kind === 'written' ? (result.writes.account ?? null) : null
}

/** Gives an account another parent, or none. */
export async function moveAccount(store: Changed, accountId: string, parentId: string | null): Promise<void> {
  await store.transact({
    ...{ accountId, nowMs: Date.now() },
    decide({ account }) {
      if (account === null) return { refuse: 'absent' }
      const moved = { ...account }
      delete moved.parentId
      return { write: { account: parentId === null ? moved : { ...moved, parentId }, audit: [] } }
    },
  })
}

type KeyOutcome = 'created' | 'plan_limit' | 'no_account' | AccountConflict

/** Adds a key if the account then has at most `maxKeys` that are not revoked; null: no limit. */
export async function putKey(
  store: Changed,
  key: ApiKey,
  maxKeys: number | null = null,
  audit: readonly AuditEntry[] = [],
): Promise<KeyOutcome> {
  const result = await store.transact<KeyOutcome>({
    ...{ accountId: key.accountId, nowMs: key.createdAtMs },
    decide({ account, liveKeys }) {
      if (account === null) return { refuse: 'no_account' }
      if (maxKeys !== null && liveKeys >= maxKeys) return { refuse: 'plan_limit' }
      return { write: { newKeys: [key], audit } }
    },
  })
  if (result.kind === 'written') return 'created'
  return result.kind === 'conflict' ? result.conflict : result.reason
}

/** Members of a key; null removes one. */
export type KeyEdit = { readonly [Name in keyof ApiKey]?: ApiKey[Name] | null }

/** The key without the members that are null. */
function without(edited: KeyEdit): ApiKey {
  const set = Object.entries(edited).filter(([, value]) => value !== null)
  return Object.fromEntries(set) as unknown as ApiKey
}

/** Changes members of a key; null if the account has no such key, or if it is revoked. */
export async function editKey(
  store: Changed,
  { accountId, id }: KeyReference,
  edit: KeyEdit | ((key: ApiKey) => KeyEdit),
  auditOf: AuditEntriesOf<ApiKey> = () => [],
): Promise<ApiKey | null> {
  const result = await store.transact({
    ...{ accountId, nowMs: Date.now(), reads: { keyIds: [id] } },
    decide({ keysById }) {
      const key = keysById.get(id)
      if (key === undefined || key.revokedAtMs !== undefined) return { refuse: 'absent' }
      const edited = { ...key, ...(typeof edit === 'function' ? edit(key) : edit) }
      const changed = without(edited)
      return { write: { keys: [changed], audit: auditOf(key, changed) } }
    },
  })
  return result.kind === 'written' ? (result.writes.keys?.[0] ?? null) : null
}

/** Revokes a key; false if the account has no such key. */
export async function endKey(
  store: Changed,
  { accountId, id }: KeyReference,
  atMs: number,
  audit: readonly AuditEntry[] = [],
): Promise<boolean> {
  const result = await store.transact({
    ...{ accountId, nowMs: atMs, reads: { keyIds: [id] } },
    decide({ keysById }) {
      const key = keysById.get(id)
      if (key === undefined) return { refuse: 'absent' }
      if (key.revokedAtMs !== undefined) return { write: { keys: [key], audit: [] } }
      return { write: { keys: [{ ...key, revokedAtMs: atMs }], audit } }
    },
  })
  return result.kind === 'written'
}
