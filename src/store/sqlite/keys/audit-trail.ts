/**
 * The audit trail in SQLite, limited for each account and in total.
 */
import { readAuditEntry } from '../../records/account-and-key-records.js'
import type { StoreCapacity } from '../../store.js'
import type { AuditEntry, AuditPage, AuditQuery, AuditSearch, AuditTrail } from '../../audit-trail.js'
import { textIn } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName } from '../read-records.js'
import { addAuditEntries } from './audit-rows.js'

/** Sorts after every id. */
const LAST = '\uffff'

/** The audit trail of a store. */
export class SqliteAuditTrail implements AuditTrail {
  private readonly engine: Engine
  private readonly capacity: StoreCapacity

  constructor(engine: Engine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
  }

  async add(entry: AuditEntry): Promise<void> {
    await this.engine.writeDurably('adding to the audit trail', () => this.addAll([entry]))
  }

  /** Adds the entries of a change, in its transaction. */
  addAll(entries: readonly AuditEntry[]): void {
    addAuditEntries(this.engine, this.capacity, entries)
  }

  page({ accountId, after, limit }: AuditQuery): Promise<AuditEntry[]> {
    return this.engine.read('reading the audit trail', () => {
      const before = after ?? LAST
      if (!isName(before) || (accountId !== null && !isName(accountId))) return []
      const [owned, owner] = accountId === null ? ['', []] : ['account_id = ? AND ', [accountId]]
      const rows = this.engine
        .prepare(`SELECT record FROM trail WHERE ${owned}id < ? ORDER BY id DESC LIMIT ?`)
        .all(...owner, before, limit)
      return rows.map((row) => intact('an audit entry', () => readAuditEntry(textIn(row, 'record'))))
    })
  }

  async find(query: AuditSearch): Promise<AuditPage> {
    const { accountId, after } = query
    if (![accountId, after].every((name) => name === null || isName(name))) {
      return { entries: [], next: null }
    }
    return this.engine.background.run('reading the audit trail', 'auditPage', query)
  }
}
