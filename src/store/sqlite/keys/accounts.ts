/**
 * Accounts in SQLite.
 */
import type { Account } from '../../../accounts/account.js'
import { damaged } from '../../errors.js'
import { readAccount, writeAccount, type AccountRecord } from '../../records/account-records.js'
import type { AccountEdit, AccountOutcome, Page, PageQuery } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import type { KeyChanges } from './key-changes.js'
import { textIn, type Row, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, pageOf, type PageStatements } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'

/** The part of `Store` that is about accounts. */
export class SqliteAccounts {
  private readonly engine: Engine
  private readonly auditTrail: SqliteAuditTrail
  private readonly changes: KeyChanges
  private readonly byIdRow: Statement
  private readonly byEmailRow: Statement
  private readonly insert: Statement
  private readonly update: Statement
  private readonly lastPlace: Statement
  private readonly pages: PageStatements

  constructor(engine: Engine, auditTrail: SqliteAuditTrail, changes: KeyChanges) {
    this.engine = engine
    this.auditTrail = auditTrail
    this.changes = changes
    this.byIdRow = engine.prepare('SELECT record FROM accounts WHERE id = ?')
    this.byEmailRow = engine.prepare('SELECT id, record FROM accounts WHERE email = ?')
    this.insert = engine.prepare(
      'INSERT INTO accounts (place, id, email, record) VALUES (?, ?, ?, ?)',
    )
    this.update = engine.prepare('UPDATE accounts SET record = ? WHERE id = ?')
    this.lastPlace = engine.prepare('SELECT max(place) AS place FROM accounts')
    this.pages = {
      oldest_first: engine.prepare(
        'SELECT place, id, record FROM accounts WHERE place > ? ORDER BY place LIMIT ?',
      ),
      newest_first: engine.prepare(
        'SELECT place, id, record FROM accounts WHERE place < ? ORDER BY place DESC LIMIT ?',
      ),
    }
  }

  async create(account: Account, auditEntries: readonly AuditEntry[]): Promise<AccountOutcome> {
    const email = account.email.toLowerCase()
    if (!isName(account.id) || !isName(email)) return 'bad_name'
    return this.engine.writeDurably<AccountOutcome>('creating an account', () => {
      if (this.byEmailRow.get(email) !== undefined) return 'email_taken'
      if (this.byIdRow.get(account.id) !== undefined) return 'id_taken'
      const last = this.lastPlace.get()?.['place']
      const order = typeof last === 'number' ? last + 1 : 1
      const text = writeAccount({ account, order, liveKeys: 0 })
      this.insert.run(order, account.id, email, text)
      this.auditTrail.addAll(auditEntries)
      return 'created'
    })
  }

  byId(id: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => this.record(id)?.account ?? null)
  }

  byEmail(email: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => {
      const name = email.toLowerCase()
      const row = isName(name) ? this.byEmailRow.get(name) : undefined
      return row === undefined ? null : recordIn(row, textIn(row, 'id')).account
    })
  }

  list(query: PageQuery): Promise<Page<Account>> {
    return this.engine.read('listing accounts', () =>
      pageOf(this.pages, [], query, (row) => recordIn(row, textIn(row, 'id')).account),
    )
  }

  async change(
    id: string,
    edit: AccountEdit,
    entriesOf: AuditEntriesOf<Account>,
  ): Promise<Account | null> {
    return this.changes.announced(
      this.engine.writeDurably('changing an account', () => {
        const record = this.record(id)
        if (record === null) return null
        const account = { ...record.account, ...edit }
        this.write({ ...record, account })
        this.auditTrail.addAll(entriesOf(record.account, account))
        // A new password changes no key look-up.
        if (edit.plan !== undefined || edit.disabled !== undefined) this.changes.note(null)
        return account
      }),
    )
  }

  /** The record, or null if there is none. Throws an Error if it is damaged. */
  record(id: string): AccountRecord | null {
    const row = isName(id) ? this.byIdRow.get(id) : undefined
    return row === undefined ? null : recordIn(row, id)
  }

  /** Only inside a transaction. */
  write(record: AccountRecord): void {
    this.update.run(writeAccount(record), record.account.id)
  }
}

/** The account in a row's `record`. Throws an Error if it is damaged, or the record of another account. */
export function recordIn(row: Row, id: string): AccountRecord {
  const record = intact(`account '${id}'`, () => readAccount(textIn(row, 'record')))
  if (record.account.id !== id) throw damaged(`account '${id}'`, 'it is another account')
  return record
}
