/**
 * Accounts and their members in SQLite.
 */
import type { Account, Member } from '../../../accounts/account.js'
import type { AccountsByName } from '../../account-changes.js'
import type { AccountTable } from '../../build-store.js'
import type { Page, PageQuery } from '../../store.js'
import type { Engine } from '../engine.js'
import { pageOf } from '../read-records.js'
import { AccountRows, recordIn } from './account-rows.js'
import type { SqliteNotifications } from './notifications.js'
import type { SqliteUsers } from './users.js'

/** The parts of the store that accounts need. */
interface AccountsOptions {
  readonly engine: Engine
  readonly users: SqliteUsers
  readonly notifications: SqliteNotifications
}

/** The part of `Store` that is about accounts and members. */
export class SqliteAccounts extends AccountRows implements AccountTable {
  private readonly engine: Engine
  private readonly users: SqliteUsers

  constructor({ engine, users, notifications }: AccountsOptions) {
    super(engine, notifications)
    this.engine = engine
    this.users = users
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
    return engine.read('listing accounts', () => pageOf(rows, query, (row) => recordIn(row).account))
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
}
