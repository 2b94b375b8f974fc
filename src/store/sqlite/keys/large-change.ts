/**
 * Changes of an account with hundreds of members and keys (`account-changes.ts`): the background thread reads
 * all records in one step, the event loop decides in turns, and the thread writes if the records are still
 * the same. What passes between both are texts.
 */
import { createHash } from 'node:crypto'
import type { ApiKey, Member } from '../../../accounts/account.js'
import type { Steps } from '../../../base/steps.js'
import {
  NO_ACCOUNT,
  type AccountConflict,
  type AccountReads,
  type AccountState,
  type AccountWrites,
} from '../../account-changes.js'
import { readAccount, readMember } from '../../records/account-and-key-records.js'
import { prepared, textIn, type Connection, type Row } from '../driver.js'
import { intact } from '../read-records.js'
import { AccountRows } from './account-rows.js'
import { apply, conflictOf, type ChangeCapacity, type ChangeTables } from './account-writes.js'
import { keyIn, KeyRows } from './key-rows.js'
import { ChangeRows } from './change-rows.js'

/** What the thread has read. */
interface AccountTexts {
  /** A digest of all of it. */
  readonly version: string
  /** Null if the account does not exist. */
  readonly account: string | null
  readonly members: readonly string[]
  /** Digest and record. */
  readonly keys: readonly (readonly [string, string])[]
  readonly keysById: readonly (readonly [string, string])[]
}

/** What the thread writes if it reads the same version. */
export interface LargeChange {
  readonly accountId: string
  readonly reads: AccountReads
  readonly version: string
  /** Parts of the writes as JSON. */
  readonly writes: readonly string[]
  readonly nowMs: number
  readonly capacity: ChangeCapacity
  /** As `ChangeRows.mostRows`. */
  readonly changesKept: number
}

/** Records that are read or encoded in one step. */
const AT_ONCE = 50

/** The records in the texts. */
export function* stateIn({ account: text, members, keys, keysById }: AccountTexts): Steps<AccountState> {
  if (text === null) return NO_ACCOUNT
  const { account, liveKeys } = intact('an account', () => readAccount(text))
  const membersByEmail = new Map<string, Member>()
  for (const [at, record] of members.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) yield
    const member = intact('a member', () => readMember(record))
    membersByEmail.set(member.email, member)
  }
  const named = yield* keysIn(keys, 'name')
  return {
    ...{ account, members: membersByEmail, keys: named, liveKeys },
    keysById: yield* keysIn(keysById, 'id'),
  }
}

function* keysIn(records: AccountTexts['keys'], by: 'name' | 'id'): Steps<ReadonlyMap<string, ApiKey>> {
  const found = new Map<string, ApiKey>()
  for (const [at, [digest, record]] of records.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) yield
    const key = keyIn(record, digest)
    found.set(key[by], key)
  }
  return found
}

/** The writes as JSON, in parts. */
export function* encoded({
  members = [],
  removedMembers = [],
  newKeys = [],
  keys = [],
  audit,
  ...others
}: AccountWrites): Steps<string[]> {
  const parts = [JSON.stringify({ ...others, audit: [] })]
  for (const [name, items] of Object.entries({ members, removedMembers, newKeys, keys, audit })) {
    for (let at = 0; at < items.length; at += AT_ONCE) {
      parts.push(JSON.stringify({ [name]: items.slice(at, at + AT_ONCE) }))
      yield
    }
  }
  return parts
}

function decoded(texts: readonly string[]): AccountWrites {
  const parts = texts.map((text) => JSON.parse(text) as Partial<AccountWrites>)
  return {
    ...parts[0],
    members: parts.flatMap(({ members = [] }) => members),
    removedMembers: parts.flatMap(({ removedMembers = [] }) => removedMembers),
    newKeys: parts.flatMap(({ newKeys = [] }) => newKeys),
    keys: parts.flatMap(({ keys = [] }) => keys),
    audit: parts.flatMap(({ audit = [] }) => audit),
  }
}

/** The texts of what a change reads; runs on the thread. */
export function accountTexts(db: Connection, accountId: string, reads: AccountReads): AccountTexts {
  db.exec('BEGIN')
  try {
    return textsOf(rowsOf(db), accountId, reads)
  } finally {
    db.exec('COMMIT')
  }
}

/** Writes the change; runs on the thread. */
export function writeLarge(
  db: Connection,
  { accountId, reads, version, nowMs, capacity, changesKept, ...change }: LargeChange,
): 'written' | 'changed' | AccountConflict {
  const tables = { ...rowsOf(db, changesKept), capacity }
  const writes = decoded(change.writes)
  const refusal = (): 'changed' | AccountConflict | null => {
    if (textsOf(tables, accountId, reads).version !== version) return 'changed'
    const former = tables.accounts.record(accountId)?.account ?? null
    return conflictOf(tables, former, writes, nowMs)
  }
  db.exec('BEGIN IMMEDIATE')
  try {
    const refused = refusal()
    if (refused === null) apply(tables, accountId, nowMs, writes)
    db.exec('COMMIT')
    return refused ?? 'written'
  } catch (error) {
    try {
      db.exec('ROLLBACK')
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    throw error
  }
}

/** The rows through the connection of the thread. */
function rowsOf(db: Connection, changesKept?: number): Omit<ChangeTables, 'capacity'> {
  const statements = { prepare: (sql: string) => prepared(db, sql) }
  const changes = new ChangeRows(statements, changesKept)
  const accounts = new AccountRows(statements, changes)
  return { statements, accounts, keys: new KeyRows(statements, changes), changes }
}

function textsOf(
  { statements, accounts }: Pick<ChangeTables, 'statements' | 'accounts'>,
  accountId: string,
  { members = [], keys: names = [], keyIds = [] }: AccountReads,
): AccountTexts {
  const account = accounts.text(accountId)
  const found = (sql: string, all: readonly string[]): Row[] => {
    const statement = statements.prepare(sql)
    const rows = account === null ? [] : all.map((each) => statement.get(accountId, each))
    return rows.filter((row) => row !== undefined)
  }
  const member = 'SELECT record FROM members WHERE account_id = ? AND email = ?'
  const keys = (column: 'name' | 'id', all: readonly string[]) => {
    const sql = `SELECT digest, record FROM keys WHERE account_id = ? AND ${column} = ?`
    return found(sql, all).map((row) => [textIn(row, 'digest'), textIn(row, 'record')] as const)
  }
  const emails = members === 'all' ? accounts.members(accountId).map(({ email }) => email) : members
  const texts = {
    account,
    members: found(member, emails).map((row) => textIn(row, 'record')),
    keys: keys('name', names),
    keysById: keys('id', keyIds),
  }
  const version = createHash('sha256').update(JSON.stringify(texts)).digest('hex')
  return { version, ...texts }
}
