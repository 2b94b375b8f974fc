/**
 * Changes of an account with its members and keys in one transaction (`account-changes.ts`).
 */
import type { ApiKey } from '../../../accounts/account.js'
import {
  isAnyNameHeld,
  type AccountChange,
  type AccountChangeResult,
  type AccountConflict,
  type AccountReads,
  type AccountState,
  type AccountWrites,
} from '../../account-changes.js'
import type { StoreCapacity } from '../../store.js'
import type { Engine } from '../engine.js'
import { isName } from '../read-records.js'
import type { SqliteAccounts } from './accounts.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteKeys } from './keys.js'
import type { SqliteNotifications } from './notifications.js'
import type { SqliteUsers } from './users.js'

/** The parts of the store that a change writes. */
export interface TransactOptions {
  readonly engine: Engine
  readonly accounts: SqliteAccounts
  readonly users: SqliteUsers
  readonly keys: SqliteKeys
  readonly auditTrail: SqliteAuditTrail
  readonly notifications: SqliteNotifications
  readonly capacity: StoreCapacity
}

/** See `Store.transact`. */
export function transact<Reason>(
  tables: TransactOptions,
  { accountId, reads = {}, decide, nowMs }: AccountChange<Reason>,
): Promise<AccountChangeResult<Reason>> {
  const { engine, notifications } = tables
  return notifications.announced(
    engine.writeDurably<AccountChangeResult<Reason>>('changing an account', () => {
      const before = stateOf(tables, accountId, reads)
      const decision = decide(before)
      if ('refuse' in decision) return { kind: 'refused', reason: decision.refuse }
      const writes = decision.write
      const conflict = conflictOf(tables, before, writes, nowMs)
      if (conflict !== null) return { kind: 'conflict', conflict }
      apply(tables, accountId, writes)
      return { kind: 'written', before, writes }
    }),
  )
}

function stateOf(
  { accounts, keys }: TransactOptions,
  accountId: string,
  { members = [], keys: names = [] }: AccountReads,
): AccountState {
  const record = accounts.record(accountId)
  if (record === null) return { account: null, members: new Map(), keys: new Map(), liveKeys: 0 }
  const found =
    members === 'all'
      ? accounts.members(accountId)
      : members.map((email) => accounts.member(accountId, email))
  const named = names.map((name) => [name, keys.named(accountId, name)] as const)
  return {
    account: record.account,
    members: new Map(found.flatMap((member) => (member === null ? [] : [[member.email, member]]))),
    keys: new Map(named.flatMap(([name, key]) => (key === null ? [] : [[name, key]]))),
    liveKeys: record.liveKeys,
  }
}

/** The rule that the writes break; null for none. Changes the store only if it is null. */
function conflictOf(
  { accounts, users, keys, capacity }: TransactOptions,
  before: AccountState,
  {
    account = before.account ?? undefined,
    members = [],
    newKeys = [],
    keys: changed = [],
    purge,
  }: AccountWrites,
  nowMs: number,
): AccountConflict | null {
  if (account === undefined) return null
  if (purge === true) return accounts.children(account.id).length > 0 ? 'has_children' : null
  const conflict = accounts.conflictOf(account)
  if (conflict !== null) return conflict
  if (members.some(({ userId }) => users.user(userId) === null)) return 'no_user'
  if (keys.countAll(account.id) + newKeys.length > capacity.keysPerAccount) return 'account_full'
  if (newKeys.some(({ id, digest }) => !isName(id) || !isName(digest))) return 'bad_name'
  if (newKeys.some((key) => keys.isTaken(key))) return 'id_taken'
  const holders = new Map<string, ApiKey>()
  for (const { name } of before.account === null ? [] : newKeys) {
    const holder = keys.named(account.id, name)
    if (holder !== null) holders.set(name, holder)
  }
  return isAnyNameHeld(newKeys, changed, holders, nowMs) ? 'name_taken' : null
}

function apply(
  { accounts, keys, auditTrail, notifications }: TransactOptions,
  accountId: string,
  {
    account,
    members = [],
    removedMembers = [],
    newKeys = [],
    keys: changed = [],
    purge,
    audit,
  }: AccountWrites,
): void {
  auditTrail.addAll(audit)
  if (purge === true) {
    accounts.purge(accountId)
    return
  }
  const isNew = account !== undefined && accounts.record(accountId) === null
  if (isNew) accounts.insert(account)
  for (const member of members) accounts.putMember(member)
  for (const email of removedMembers) accounts.removeMember(accountId, email)
  let live = 0
  for (const key of changed) {
    const former = keys.own(accountId, key.id)
    if (former === null) continue
    if (former.revokedAtMs === undefined && key.revokedAtMs !== undefined) live -= 1
    keys.update(key)
  }
  for (const key of newKeys) {
    if (!isNew) keys.takeName(key, Number.POSITIVE_INFINITY)
    keys.insert(key)
    if (key.revokedAtMs === undefined) live += 1
  }
  const record = accounts.record(accountId)
  if (record === null || (live === 0 && account === undefined)) return
  const liveKeys = Math.max(0, record.liveKeys + live)
  accounts.write({ ...record, account: account ?? record.account, liveKeys })
  if (account !== undefined) notifications.note(null)
}
