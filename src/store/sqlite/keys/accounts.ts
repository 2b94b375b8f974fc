/**
 * Accounts in SQLite.
 */
import type { Account } from '../../../accounts/account.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import type { AccountTable } from '../../build-store.js'
import { damaged } from '../../errors.js'
import {
  readAccount,
  writeAccount,
  type AccountRecord,
} from '../../records/account-and-key-records.js'
import type { AccountEdit, AccountOutcome, Page, PageQuery } from '../../store.js'
import { textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, numberOf, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteNotifications } from './notifications.js'

/** The part of `Store` that is about accounts. */
export class SqliteAccounts implements AccountTable {
  private readonly engine: Engine
  private readonly auditTrail: SqliteAuditTrail
  private readonly notifications: SqliteNotifications

  constructor(engine: Engine, auditTrail: SqliteAuditTrail, notifications: SqliteNotifications) {
    this.engine = engine
    this.auditTrail = auditTrail
    this.notifications = notifications
  }

  async create(account: Account, auditEntries: readonly AuditEntry[]): Promise<AccountOutcome> {
    const email = account.email.toLowerCase()
    if (!isName(account.id) || !isName(email)) return 'bad_name'
    return this.engine.writeDurably<AccountOutcome>('creating an account', () => {
      if (this.row('email', email) !== undefined) return 'email_taken'
      if (this.row('id', account.id) !== undefined) return 'id_taken'
      const last = this.engine.prepare('SELECT coalesce(max(place), 0) AS n FROM accounts')
      const order = numberOf(last.get()) + 1
      this.engine
        .prepare('INSERT INTO accounts (place, id, email, record) VALUES (?, ?, ?, ?)')
        .run(order, account.id, email, writeAccount({ account, order, liveKeys: 0 }))
      this.auditTrail.addAll(auditEntries)
      return 'created'
    })
  }

  byId(id: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => this.record(id)?.account ?? null)
  }

  byEmail(email: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => {
      const row = this.row('email', email.toLowerCase())
      return row === undefined ? null : recordIn(row).account
    })
  }

  list(query: PageQuery): Promise<Page<Account>> {
    const { engine } = this
    const rows = { engine, sql: 'SELECT place, id, record FROM accounts WHERE true', values: [] }
    return engine.read('listing accounts', () =>
      pageOf(rows, query, (row) => recordIn(row).account),
    )
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
        // A new password changes no key look-up.
        if (edit.plan !== undefined || edit.disabled !== undefined) this.notifications.note(null)
        return account
      }),
    )
  }

  /** The record, or null if there is none. Throws an Error if it is damaged. */
  record(id: string): AccountRecord | null {
    const row = this.row('id', id)
    return row === undefined ? null : recordIn(row)
  }

  /** Only inside a transaction. */
  write(record: AccountRecord): void {
    this.engine
      .prepare('UPDATE accounts SET record = ? WHERE id = ?')
      .run(writeAccount(record), record.account.id)
  }

  private row(column: 'id' | 'email', name: string): Row | undefined {
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
