/**
 * Accounts and their members in SQLite.
 */
import {
  MAX_LEVELS,
  ownerOf,
  type Account,
  type Member,
  type User,
} from '../../../accounts/account.js'
import type { AccountConflict, AccountsByName } from '../../account-changes.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import type { AccountTable } from '../../build-store.js'
import { damaged } from '../../errors.js'
import {
  readAccount,
  readMember,
  writeAccount,
  writeMember,
  type AccountRecord,
} from '../../records/account-and-key-records.js'
import type { AccountEdit, AccountOutcome, Page, PageQuery } from '../../store.js'
import { textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, numberOf, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteNotifications } from './notifications.js'
import type { SqliteUsers } from './users.js'

/** The parts of the store that accounts need. */
export interface AccountsOptions {
  readonly engine: Engine
  readonly users: SqliteUsers
  readonly auditTrail: SqliteAuditTrail
  readonly notifications: SqliteNotifications
}

/** The part of `Store` that is about accounts and members. */
export class SqliteAccounts implements AccountTable {
  private readonly engine: Engine
  private readonly users: SqliteUsers
  private readonly auditTrail: SqliteAuditTrail
  private readonly notifications: SqliteNotifications

  constructor({ engine, users, auditTrail, notifications }: AccountsOptions) {
    this.engine = engine
    this.users = users
    this.auditTrail = auditTrail
    this.notifications = notifications
  }

  async create(
    account: Account,
    auditEntries: readonly AuditEntry[] = [],
    login?: User,
  ): Promise<AccountOutcome> {
    return this.engine.writeDurably<AccountOutcome>('creating an account', () => {
      const refusal = login === undefined ? null : this.users.refusalOf(login)
      if (refusal !== null) return refusal
      const conflict = this.conflictOf(account)
      if (conflict !== null) return conflict
      if (this.record(account.id) !== null) return 'id_taken'
      this.insert(account)
      if (login !== undefined) {
        this.users.insert(login)
        this.putMember(ownerOf(account, login))
      }
      this.auditTrail.addAll(auditEntries)
      return 'created'
    })
  }

  byId(id: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => this.record(id)?.account ?? null)
  }

  byName(name: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => {
      const row = this.row('name', name)
      return row === undefined ? null : recordIn(row).account
    })
  }

  byEmail(email: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => {
      const user = this.users.named(email)
      return user === null ? null : (this.record(user.id)?.account ?? null)
    })
  }

  list(query: PageQuery): Promise<Page<Account>> {
    const { engine } = this
    const rows = { engine, sql: 'SELECT place, id, record FROM accounts WHERE true', values: [] }
    return engine.read('listing accounts', () =>
      pageOf(rows, query, (row) => recordIn(row).account),
    )
  }

  listByName({ after, limit }: AccountsByName): Promise<Page<Account>> {
    const sql = 'SELECT id, record FROM accounts WHERE name > ? ORDER BY name LIMIT ?'
    return this.engine.read('listing accounts', () => {
      const rows = this.engine.prepare(sql).all(after ?? '', limit + 1)
      const items = rows.slice(0, limit).map((row) => recordIn(row).account)
      return { items, next: rows.length > limit ? (items.at(-1)?.name ?? null) : null }
    })
  }

  ancestorsOf(account: Pick<Account, 'id' | 'parentId'>): Promise<Account[]> {
    return this.engine.read('reading accounts', () => this.ancestors(account))
  }

  childrenOf(accountId: string): Promise<string[]> {
    return this.engine.read('reading accounts', () => this.children(accountId))
  }

  membersOf(accountId: string): Promise<Member[]> {
    return this.engine.read('reading members', () => this.members(accountId))
  }

  memberOf(accountId: string, email: string): Promise<Member | null> {
    return this.engine.read('reading a member', () => this.member(accountId, email))
  }

  async change(
    id: string,
    edit: AccountEdit,
    entriesOf: AuditEntriesOf<Account>,
  ): Promise<Account | null> {
    return this.notifications.announced(
      this.engine.writeDurably('changing an account', () => {
        const record = this.record(id)
        if (record === null) return null
        const account = { ...record.account, ...edit }
        this.write({ ...record, account })
        this.auditTrail.addAll(entriesOf(record.account, account))
        this.notifications.note(null)
        return account
      }),
    )
  }

  /** The record, or null if there is none. Throws an Error if it is damaged. */
  record(id: string): AccountRecord | null {
    const row = this.row('id', id)
    return row === undefined ? null : recordIn(row)
  }

  /** The accounts above it, its parent first. */
  ancestors({ parentId }: Pick<Account, 'parentId'>): Account[] {
    const found: Account[] = []
    for (let id = parentId; id !== undefined && found.length < MAX_LEVELS;) {
      const parent = this.record(id)?.account
      if (parent === undefined) throw damaged(`account '${id}'`, 'it is missing, and has a child')
      found.push(parent)
      id = parent.parentId
    }
    return found
  }

  members(accountId: string): Member[] {
    if (!isName(accountId)) return []
    const sql = 'SELECT record FROM members WHERE account_id = ? ORDER BY email'
    return this.engine.prepare(sql).all(accountId).map(memberIn)
  }

  member(accountId: string, email: string): Member | null {
    if (!isName(accountId) || !isName(email)) return null
    const sql = 'SELECT record FROM members WHERE account_id = ? AND email = ?'
    const row = this.engine.prepare(sql).get(accountId, email)
    return row === undefined ? null : memberIn(row)
  }

  /** The rule that a new account, or one with a new parent, breaks; null for none. */
  conflictOf(account: Account): AccountConflict | null {
    if (!isName(account.id) || !isName(account.name)) return 'bad_name'
    const former = this.record(account.id)?.account
    if (former === undefined && this.row('name', account.name) !== undefined) return 'name_taken'
    const { parentId } = account
    if (parentId === undefined || parentId === former?.parentId) return null
    if (!isName(parentId) || this.record(parentId) === null) return 'no_parent'
    const above = this.ancestors(account)
    if (parentId === account.id || above.some(({ id }) => id === account.id)) return 'parent_loop'
    return above.length + this.levels(account.id) > MAX_LEVELS ? 'too_deep' : null
  }

  /** Inserts an account without keys. Only inside a transaction. */
  insert(account: Account): void {
    const last = this.engine.prepare('SELECT coalesce(max(place), 0) AS n FROM accounts')
    const order = numberOf(last.get()) + 1
    const text = writeAccount({ account, order, liveKeys: 0 })
    this.engine
      .prepare('INSERT INTO accounts (place, id, name, record, parent_id) VALUES (?, ?, ?, ?, ?)')
      .run(order, account.id, account.name, text, account.parentId ?? null)
  }

  /** Replaces a record. Only inside a transaction. */
  write(record: AccountRecord): void {
    const { id, parentId } = record.account
    this.engine
      .prepare('UPDATE accounts SET record = ?, parent_id = ? WHERE id = ?')
      .run(writeAccount(record), parentId ?? null, id)
  }

  /** Only inside a transaction. */
  putMember(member: Member): void {
    const { accountId, email, userId } = member
    this.engine
      .prepare(
        `INSERT INTO members (account_id, email, user_id, record) VALUES (?, ?, ?, ?)
         ON CONFLICT (account_id, email) DO UPDATE
         SET user_id = excluded.user_id, record = excluded.record`,
      )
      .run(accountId, email, userId, writeMember(member))
  }

  /** Only inside a transaction. */
  removeMember(accountId: string, email: string): void {
    if (!isName(email)) return
    const sql = 'DELETE FROM members WHERE account_id = ? AND email = ?'
    this.engine.prepare(sql).run(accountId, email)
  }

  /** Removes the account, its members and its keys. Only inside a transaction. */
  purge(accountId: string): void {
    for (const table of ['keys', 'members']) {
      this.engine.prepare(`DELETE FROM ${table} WHERE account_id = ?`).run(accountId)
    }
    this.engine.prepare('DELETE FROM accounts WHERE id = ?').run(accountId)
    this.notifications.note(null)
  }

  children(accountId: string): string[] {
    if (!isName(accountId)) return []
    const sql = 'SELECT id FROM accounts WHERE parent_id = ?'
    return this.engine
      .prepare(sql)
      .all(accountId)
      .map((row) => textIn(row, 'id'))
  }

  /** The levels of the tree below and including the account. */
  private levels(accountId: string): number {
    const below = this.children(accountId).map((id) => this.levels(id))
    return 1 + Math.max(0, ...below)
  }

  private row(column: 'id' | 'name', name: string): Row | undefined {
    const statement = this.engine.prepare(`SELECT id, record FROM accounts WHERE ${column} = ?`)
    return isName(name) ? statement.get(name) : undefined
  }
}

/**
 * The account in a row's `id` and `record`. Throws an Error if it is damaged, or the record of another
 * account.
 */
export function recordIn(row: Row): AccountRecord {
  const id = textIn(row, 'id')
  const record = intact(`account '${id}'`, () => readAccount(textIn(row, 'record')))
  if (record.account.id !== id) throw damaged(`account '${id}'`, 'it is another account')
  return record
}

function memberIn(row: Row): Member {
  return intact('a member', () => readMember(textIn(row, 'record')))
}
