/**
 * The rules and the writes of a change of an account with its members and keys (`account-changes.ts`), inside
 * a transaction of either connection.
 */
import type { Account, ApiKey } from '../../../accounts/account.js'
import { isAnyNameTaken, type AccountConflict, type AccountWrites } from '../../account-changes.js'
import type { StoreCapacity } from '../../store.js'
import type { Statements } from '../driver.js'
import { isName } from '../read-records.js'
import type { AccountRows } from './account-rows.js'
import { addAuditEntries } from './audit-rows.js'
import type { ChangeRows } from './change-rows.js'
import type { KeyRows } from './key-rows.js'
import { changeSignIns } from './sign-in-rows.js'
import { insertUser, refusalOfUser, rewriteUser } from './user-rows.js'

/** The rows that a change reads and writes, through one connection. */
export interface ChangeTables {
  readonly statements: Statements
  readonly accounts: AccountRows
  readonly keys: KeyRows
  readonly changes: ChangeRows
  readonly capacity: ChangeCapacity
}

/** How many keys and audit entries the store keeps. */
export type ChangeCapacity = Pick<StoreCapacity, 'keysPerAccount' | 'auditEntries' | 'auditEntriesPerAccount'>

/** The rule that the writes break; null for none. Changes the store only if it is null. */
export function conflictOf(
  { statements, accounts, keys, capacity }: ChangeTables,
  former: Account | null,
  {
    account = former ?? undefined,
    users = [],
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
  for (const user of users) {
    const refusal = refusalOfUser(statements, user)
    if (refusal !== null) return refusal
  }
  const isNew = (userId: string): boolean => users.some(({ id }) => id === userId)
  if (members.some(({ userId }) => !isNew(userId) && !accounts.hasUser(userId))) return 'no_user'
  if (keys.countAll(account.id) + newKeys.length > capacity.keysPerAccount) return 'account_full'
  if (newKeys.some(({ id, digest }) => !isName(id) || !isName(digest))) return 'bad_name'
  if (newKeys.some((key) => keys.isTaken(key))) return 'id_taken'
  const holders = new Map<string, ApiKey>()
  for (const { name } of former === null ? [] : [...newKeys, ...changed]) {
    const holder = keys.named(account.id, name)
    if (holder !== null) holders.set(name, holder)
  }
  return isAnyNameTaken([...changed, ...newKeys], holders, nowMs) ? 'name_taken' : null
}

/** Writes; only inside a transaction. */
export function apply(
  { statements, accounts, keys, changes, capacity }: ChangeTables,
  accountId: string,
  nowMs: number,
  {
    account,
    users = [],
    members = [],
    removedMembers = [],
    ends,
    link,
    newKeys = [],
    keys: changed = [],
    purge,
    audit,
  }: AccountWrites,
): void {
  addAuditEntries(statements, capacity, audit)
  if (purge === true) {
    accounts.purge(accountId)
    return
  }
  const isNew = account !== undefined && accounts.record(accountId) === null
  // A member may have lost the role with which its programs run.
  if (!isNew && members.length + removedMembers.length > 0) changes.note(null)
  if (isNew) accounts.insert(account)
  for (const user of users) insertUser(statements, user)
  for (const member of members) {
    // The time of the change does not tell whether the user is new.
    if (!users.some(({ id }) => id === member.userId)) rewriteUser(statements, member.userId)
    accounts.putMember(member)
  }
  for (const email of removedMembers) accounts.removeMember(accountId, email)
  changeSignIns(statements, changes, { ends, link })
  let live = 0
  for (const key of changed) {
    const wasRevoked = keys.isRevoked(accountId, key.id)
    if (wasRevoked === null) continue
    if (!wasRevoked && key.revokedAtMs !== undefined) live -= 1
    keys.update(key, nowMs)
  }
  for (const key of newKeys) {
    keys.insert(key, nowMs)
    if (key.revokedAtMs === undefined) live += 1
  }
  const record = accounts.record(accountId)
  if (record === null || (live === 0 && account === undefined)) return
  const liveKeys = Math.max(0, record.liveKeys + live)
  accounts.write({ ...record, account: account ?? record.account, liveKeys })
  if (account !== undefined) changes.note(null)
}
