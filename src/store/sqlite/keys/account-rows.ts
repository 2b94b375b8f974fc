/**
 * The rows of accounts and members, read and written inside transactions: by the store's connection, or by
 * that of its background thread.
 */
import { MAX_LEVELS, type Account, type Member } from '../../../accounts/account.js'
import type { AccountConflict } from '../../account-changes.js'
import { damaged } from '../../store-errors.js'
import {
  readAccount,
  readMember,
  writeAccount,
  writeMember,
  type AccountRecord,
} from '../../records/account-and-key-records.js'
import { textIn, type Row, type Statements } from '../driver.js'
import { intact, isName, numberOf } from '../read-records.js'
import type { ChangeRows } from './change-rows.js'

/** The rows of a connection. */
export class AccountRows {
  protected readonly statements: Statements
  private readonly changes: ChangeRows

  constructor(statements: Statements, changes: ChangeRows) {
    this.statements = statements
    this.changes = changes
  }

  /** The record, or null if there is none. Throws an Error if it is damaged. */
  record(id: string): AccountRecord | null {
    const row = this.row('id', id)
    return row === undefined ? null : recordIn(row)
  }

  /** The text of the record; null if there is none. */
  text(id: string): string | null {
    const row = this.row('id', id)
    return row === undefined ? null : textIn(row, 'record')
  }

  hasUser(id: string): boolean {
    const user = this.statements.prepare('SELECT 1 FROM users WHERE id = ?')
    return isName(id) && user.get(id) !== undefined
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
    return this.statements.prepare(sql).all(accountId).map(memberIn)
  }

  member(accountId: string, email: string): Member | null {
    if (!isName(accountId) || !isName(email)) return null
    const sql = 'SELECT record FROM members WHERE account_id = ? AND email = ?'
    const row = this.statements.prepare(sql).get(accountId, email)
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
    const last = this.statements.prepare('SELECT coalesce(max(place), 0) AS n FROM accounts')
    const order = numberOf(last.get()) + 1
    const text = writeAccount({ account, order, liveKeys: 0 })
    this.statements
      .prepare('INSERT INTO accounts (place, id, name, record, parent_id) VALUES (?, ?, ?, ?, ?)')
      .run(order, account.id, account.name, text, account.parentId ?? null)
  }

  /** Replaces a record. Only inside a transaction. */
  write(record: AccountRecord): void {
    const { id, parentId } = record.account
    this.statements
      .prepare('UPDATE accounts SET record = ?, parent_id = ? WHERE id = ?')
      .run(writeAccount(record), parentId ?? null, id)
  }

  /** Only inside a transaction. */
  putMember(member: Member): void {
    const { accountId, email, userId } = member
    this.statements
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
    this.statements.prepare(sql).run(accountId, email)
  }

  /** Removes the account, its members and its keys. Only inside a transaction. */
  purge(accountId: string): void {
    for (const table of ['keys', 'members']) {
      this.statements.prepare(`DELETE FROM ${table} WHERE account_id = ?`).run(accountId)
    }
    this.statements.prepare('DELETE FROM accounts WHERE id = ?').run(accountId)
    this.changes.note(null)
  }

  children(accountId: string): string[] {
    if (!isName(accountId)) return []
    const sql = 'SELECT id FROM accounts WHERE parent_id = ?'
    return this.statements
      .prepare(sql)
      .all(accountId)
      .map((row) => textIn(row, 'id'))
  }

  /** The levels of the tree below and including the account. */
  private levels(accountId: string): number {
    const below = this.children(accountId).map((id) => this.levels(id))
    return 1 + Math.max(0, ...below)
  }

  protected row(column: 'id' | 'name', name: string): Row | undefined {
    const statement = this.statements.prepare(`SELECT id, record FROM accounts WHERE ${column} = ?`)
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
