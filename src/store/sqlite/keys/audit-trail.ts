/**
 * The audit trail in SQLite, limited for each account and in total.
 */
import { readAuditEntry, writeAuditEntry } from '../../records/account-records.js'
import type { StoreCapacity } from '../../store.js'
import type { AuditTrail, AuditEntry, AuditQuery } from '../../audit-trail.js'
import { numberIn, textIn, type Row, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName } from '../read-records.js'

/** Sorts after every id. */
const LAST = '\uffff'

/** The audit trail of a store. */
export class SqliteAuditTrail implements AuditTrail {
  private readonly engine: Engine
  private readonly capacity: StoreCapacity
  private readonly insert: Statement
  private readonly countOf: Statement
  private readonly size: Statement
  private readonly dropOf: Statement
  private readonly drop: Statement
  private readonly pageOfAll: Statement
  private readonly pageOfOne: Statement

  constructor(engine: Engine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
    this.insert = engine.prepare(
      `INSERT INTO trail (id, account_id, record) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, record = excluded.record`,
    )
    this.countOf = engine.prepare('SELECT count(*) AS entries FROM trail WHERE account_id = ?')
    this.size = engine.prepare("SELECT entries FROM sizes WHERE name = 'trail'")
    this.dropOf = engine.prepare(
      'DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE account_id = ? ORDER BY id LIMIT ?)',
    )
    this.drop = engine.prepare(
      'DELETE FROM trail WHERE id IN (SELECT id FROM trail ORDER BY id LIMIT ?)',
    )
    this.pageOfAll = engine.prepare(
      'SELECT record FROM trail WHERE id < ? ORDER BY id DESC LIMIT ?',
    )
    this.pageOfOne = engine.prepare(
      'SELECT record FROM trail WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?',
    )
  }

  async add(entry: AuditEntry): Promise<void> {
    await this.engine.writeDurably('adding to the audit trail', () => this.addAll([entry]))
  }

  /** Adds the entries of a change, in its transaction. */
  addAll(entries: readonly AuditEntry[]): void {
    if (entries.length === 0) return
    for (const entry of entries) {
      this.insert.run(entry.id, entry.accountId, writeAuditEntry(entry))
    }
    for (const accountId of new Set(entries.map((entry) => entry.accountId))) {
      const surplus = entriesIn(this.countOf.get(accountId)) - this.capacity.auditEntriesPerAccount
      if (surplus > 0) this.dropOf.run(accountId, surplus)
    }
    const surplus = entriesIn(this.size.get()) - this.capacity.auditEntries
    if (surplus > 0) this.drop.run(surplus)
  }

  page({ accountId, after, limit }: AuditQuery): Promise<AuditEntry[]> {
    return this.engine.read('reading the audit trail', () => {
      const before = after ?? LAST
      if (!isName(before) || (accountId !== null && !isName(accountId))) return []
      const rows =
        accountId === null
          ? this.pageOfAll.all(before, limit)
          : this.pageOfOne.all(accountId, before, limit)
      return rows.map((row) =>
        intact('an audit entry', () => readAuditEntry(textIn(row, 'record'))),
      )
    })
  }
}

function entriesIn(row: Row | undefined): number {
  return row === undefined ? 0 : numberIn(row, 'entries')
}
