/**
 * Tokens of the admin API in SQLite.
 */
import {
  MAX_ADMIN_TOKENS,
  type AdminToken,
  type AdminTokenEdit,
  type AdminTokenPage,
  type AdminTokens,
} from '../../admin-tokens.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import { readAdminToken, writeAdminToken } from '../../records/account-and-key-records.js'
import { textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, numberOf, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'

/** The tokens of a store. */
export class SqliteAdminTokens implements AdminTokens {
  private readonly engine: Engine
  private readonly auditTrail: SqliteAuditTrail

  constructor(engine: Engine, auditTrail: SqliteAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  add(token: AdminToken, auditEntries: readonly AuditEntry[] = []): Promise<boolean> {
    const { engine } = this
    return engine.writeDurably('adding an admin token', () => {
      const all = engine.prepare('SELECT count(*) AS n FROM admin_tokens')
      if (numberOf(all.get()) >= MAX_ADMIN_TOKENS) return false
      const insert = 'INSERT INTO admin_tokens (id, digest, record) VALUES (?, ?, ?)'
      const { changes } = engine
        .prepare(`${insert} ON CONFLICT DO NOTHING`)
        .run(token.id, token.digest, writeAdminToken(token))
      if (Number(changes) === 0) return false
      this.auditTrail.addAll(auditEntries)
      return true
    })
  }

  byDigest(digest: string): Promise<AdminToken | null> {
    return this.engine.read('reading an admin token', () => this.find('digest', digest))
  }

  byId(id: string): Promise<AdminToken | null> {
    return this.engine.read('reading an admin token', () => this.find('id', id))
  }

  page(after: string | null, limit: number): Promise<AdminTokenPage> {
    const { engine } = this
    const query = { order: 'newest_first', after, limit } as const
    const sql = 'SELECT place, record FROM admin_tokens WHERE true'
    return engine.read('listing admin tokens', () => pageOf({ engine, sql, values: [] }, query, tokenIn))
  }

  change(
    id: string,
    edit: AdminTokenEdit,
    auditEntries: AuditEntriesOf<AdminToken> = () => [],
  ): Promise<AdminToken | null> {
    return this.engine.writeDurably('changing an admin token', () => {
      const before = this.find('id', id)
      const after = before === null ? null : edit(before)
      if (before === null || after === null) return before
      this.engine.prepare('UPDATE admin_tokens SET record = ? WHERE id = ?').run(writeAdminToken(after), id)
      this.auditTrail.addAll(auditEntries(before, after))
      return after
    })
  }

  remove(ids: readonly string[]): Promise<void> {
    return this.engine.writeDurably('removing admin tokens', () => {
      const remove = this.engine.prepare('DELETE FROM admin_tokens WHERE id = ?')
      for (const id of ids) remove.run(id)
    })
  }

  private find(column: 'id' | 'digest', name: string): AdminToken | null {
    const select = this.engine.prepare(`SELECT record FROM admin_tokens WHERE ${column} = ?`)
    const row = isName(name) ? select.get(name) : undefined
    return row === undefined ? null : tokenIn(row)
  }
}

function tokenIn(row: Row): AdminToken {
  return intact('an admin token', () => readAdminToken(textIn(row, 'record')))
}
