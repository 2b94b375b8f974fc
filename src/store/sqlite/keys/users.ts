/**
 * Users in SQLite.
 */
import { comparableEmail, type Member, type User } from '../../../accounts/account.js'
import type { UsersByEmail } from '../../account-changes.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import {
  editedUser,
  readMember,
  readUser,
  writeMember,
  writeUser,
} from '../../records/account-and-key-records.js'
import type { Page, UserEdit, UserOutcome, Users } from '../../store.js'
import { textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName } from '../read-records.js'
import type { AddedSignIn, ChangedSignIns } from '../../sign-in-tokens.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteNotifications } from './notifications.js'
import { changeSignIns } from './sign-in-rows.js'
import { insertUser, refusalOfUser } from './user-rows.js'

/** The users of a store. */
export class SqliteUsers implements Users {
  private readonly engine: Engine
  private readonly notifications: SqliteNotifications
  private readonly auditTrail: SqliteAuditTrail

  constructor(engine: Engine, notifications: SqliteNotifications, auditTrail: SqliteAuditTrail) {
    this.engine = engine
    this.notifications = notifications
    this.auditTrail = auditTrail
  }

  async create(
    user: User,
    auditEntries: readonly AuditEntry[] = [],
    link: AddedSignIn | null = null,
  ): Promise<UserOutcome> {
    return this.engine.writeDurably<UserOutcome>('creating a user', () => {
      const refusal = refusalOfUser(this.engine, user)
      if (refusal !== null) return refusal
      insertUser(this.engine, user)
      changeSignIns(this.engine, this.notifications, { link })
      this.auditTrail.addAll(auditEntries)
      return 'created'
    })
  }

  byId(id: string): Promise<User | null> {
    return this.engine.read('reading a user', () => this.user(id))
  }

  byEmail(email: string): Promise<User | null> {
    return this.engine.read('reading a user', () => this.named(email))
  }

  list({ after, limit }: UsersByEmail): Promise<Page<User>> {
    const sql = 'SELECT record FROM users WHERE email > ? ORDER BY email LIMIT ?'
    return this.engine.read('listing users', () => {
      const rows = this.engine.prepare(sql).all(after ?? '', limit + 1)
      const items = rows.slice(0, limit).map(userIn)
      return { items, next: rows.length > limit ? (items.at(-1)?.email ?? null) : null }
    })
  }

  change(
    id: string,
    edit: UserEdit | ((user: User) => UserEdit | null),
    entriesOf: AuditEntriesOf<User> = () => [],
    signInsOf: (before: User, after: User) => ChangedSignIns = () => ({}),
  ): Promise<User | null> {
    const written = this.engine.writeDurably('changing a user', () => {
      const before = this.user(id)
      const user = before === null ? null : editedUser(before, edit)
      if (before === null || user === null) return null
      this.engine.prepare('UPDATE users SET record = ? WHERE id = ?').run(writeUser(user), id)
      changeSignIns(this.engine, this.notifications, signInsOf(before, user))
      this.auditTrail.addAll(entriesOf(before, user))
      return user
    })
    return this.notifications.announced(written)
  }

  changeEmail(
    id: string,
    email: string,
    entriesOf: AuditEntriesOf<User> = () => [],
  ): Promise<User | 'email_taken' | null> {
    return this.engine.writeDurably<User | 'email_taken' | null>('changing an address', () => {
      const before = this.user(id)
      if (before === null || before.email === email) return before
      const holder = this.named(email)
      if (!isName(email) || (holder !== null && holder.id !== id)) return 'email_taken'
      const user = { ...before, email }
      const { engine } = this
      const record = writeUser(user)
      engine.prepare('UPDATE users SET email = ?, record = ? WHERE id = ?').run(email, record, id)
      const moved = 'UPDATE OR REPLACE members SET email = ?, record = ? WHERE account_id = ? AND email = ?'
      for (const member of this.membersOf(id)) {
        engine.prepare(moved).run(email, writeMember({ ...member, email }), member.accountId, member.email)
      }
      this.auditTrail.addAll(entriesOf(before, user))
      return user
    })
  }

  memberships(userId: string): Promise<Member[]> {
    return this.engine.read('reading members', () => this.membersOf(userId))
  }

  private membersOf(userId: string): Member[] {
    if (!isName(userId)) return []
    const rows = this.engine.prepare('SELECT record FROM members WHERE user_id = ?').all(userId)
    return rows.map((row) => intact('a member', () => readMember(textIn(row, 'record'))))
  }

  /** The user with this id, in a transaction or not. */
  user(id: string): User | null {
    const row = isName(id) ? this.engine.prepare('SELECT record FROM users WHERE id = ?').get(id) : undefined
    return row === undefined ? null : userIn(row)
  }

  /** The user with this address, in a transaction or not. */
  named(email: string): User | null {
    const name = comparableEmail(email)
    const row = isName(name)
      ? this.engine.prepare('SELECT record FROM users WHERE email = ?').get(name)
      : undefined
    return row === undefined ? null : userIn(row)
  }
}

function userIn(row: Row): User {
  return intact('a user', () => readUser(textIn(row, 'record')))
}
