/** Encrypted records of requests in SQLite. */
import { Pacer } from '../../../base/pacer.js'
import {
  MAX_LISTED_RECORDS,
  type RecordFilter,
  type RecordHead,
  type RecordKind,
  type SealedRecord,
  type SealedRecords,
} from '../../sealed-records.js'
import { numberIn, textIn, type Row, type Value } from '../driver.js'
import { BATCH, inBatches, type Engine } from '../engine.js'
import { numberOf } from '../read-records.js'
import type { AuditEntry } from '../../audit-trail.js'
import type { SqliteAuditTrail } from './audit-trail.js'

const HEAD = 'kind, id, account_id, key_id, model, at_ms, expires_at_ms, info, bytes'
const DELETE = 'DELETE FROM sealed_records WHERE kind = ? AND id = ?'
const INSERT = `INSERT INTO sealed_records (${HEAD}, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const SIZE = "SELECT bytes AS n FROM sizes WHERE name = 'records ' || ?"
const INFO = 'SELECT info FROM sealed_records WHERE kind = ? AND id = ?'
const FIRST = `SELECT id FROM sealed_records WHERE kind = ? ORDER BY expires_at_ms, id LIMIT 1`
const DELETE_EXPIRED = `DELETE FROM sealed_records WHERE (kind, id) IN
  (SELECT kind, id FROM sealed_records WHERE expires_at_ms <= ? LIMIT ${BATCH})`

/** Rows of a list that are read in one turn. */
const PAGE = 500

/** The records of a store. */
export class SqliteSealedRecords implements SealedRecords {
  private readonly engine: Engine
  private readonly auditTrail: SqliteAuditTrail

  constructor(engine: Engine, auditTrail: SqliteAuditTrail) {
    this.engine = engine
    this.auditTrail = auditTrail
  }

  async put(record: SealedRecord, maxBytes: number): Promise<void> {
    const { kind, id, accountId, keyId, model, atMs, expiresAtMs, info, value } = record
    const { engine } = this
    await engine.write('storing a record', () => {
      engine.prepare(DELETE).run(kind, id)
      const head = [kind, id, accountId, keyId, model, atMs, expiresAtMs, info, value.length]
      engine.prepare(INSERT).run(...head, value)
      for (let removed = 0; removed < BATCH; removed += 1) {
        if (numberOf(engine.prepare(SIZE).get(kind)) <= maxBytes) return
        const first = engine.prepare(FIRST).get(kind)
        if (first === undefined) return
        engine.prepare(DELETE).run(kind, textIn(first, 'id'))
      }
    })
  }

  replace(
    record: SealedRecord,
    before: string | null,
    auditEntries: readonly AuditEntry[] = [],
  ): Promise<boolean> {
    const { kind, id, info } = record
    const { engine } = this
    const replace = (): boolean => {
      const row = engine.prepare(INFO).get(kind, id)
      if ((row === undefined ? null : textIn(row, 'info')) !== before) return false
      const { accountId, keyId, model, atMs, expiresAtMs, value } = record
      engine.prepare(DELETE).run(kind, id)
      const head = [kind, id, accountId, keyId, model, atMs, expiresAtMs, info, value.length]
      engine.prepare(INSERT).run(...head, value)
      this.auditTrail.addAll(auditEntries)
      return true
    }
    const what = 'changing a record'
    return auditEntries.length === 0 ? engine.write(what, replace) : engine.writeDurably(what, replace)
  }

  find(kind: RecordKind, id: string, nowMs: number): Promise<SealedRecord | null> {
    return this.engine.read('reading a record', () => {
      const sql = `SELECT ${HEAD}, value FROM sealed_records WHERE kind = ? AND id = ?`
      const row = this.engine.prepare(sql).get(kind, id)
      if (row === undefined || numberIn(row, 'expires_at_ms') <= nowMs) return null
      const { value } = row
      if (!(value instanceof Uint8Array)) throw new Error("column 'value' has no bytes")
      return { ...headIn(kind, row), value }
    })
  }

  async list(kind: RecordKind, filter: RecordFilter, nowMs: number): Promise<RecordHead[]> {
    const { where, values } = conditionOf(kind, filter)
    const page = `SELECT ${HEAD} FROM sealed_records WHERE ${where} AND expires_at_ms > ?
      AND (at_ms, id) < (?, ?) ORDER BY at_ms DESC, id DESC LIMIT ${PAGE}`
    const pacer = new Pacer()
    const found: RecordHead[] = []
    let after: [atMs: number, id: string] = [Number.MAX_SAFE_INTEGER, '']
    while (found.length < MAX_LISTED_RECORDS) {
      const heads = await this.engine.read('listing records', () => {
        const rows = this.engine.prepare(page).all(...values, nowMs, ...after)
        return rows.map((row) => headIn(kind, row))
      })
      found.push(...heads)
      const last = heads.at(-1)
      if (last === undefined || heads.length < PAGE) break
      after = [last.atMs, last.id]
      await pacer.pace()
    }
    return found.slice(0, MAX_LISTED_RECORDS)
  }

  take(kind: RecordKind, id: string, auditEntries: readonly AuditEntry[]): Promise<boolean> {
    return this.engine.writeDurably('removing a record', () => {
      if (Number(this.engine.prepare(DELETE).run(kind, id).changes) === 0) return false
      this.auditTrail.addAll(auditEntries)
      return true
    })
  }

  remove(kind: RecordKind, filter: RecordFilter): Promise<number> {
    const { where, values } = conditionOf(kind, filter)
    const sql = `DELETE FROM sealed_records WHERE (kind, id) IN
      (SELECT kind, id FROM sealed_records WHERE ${where} LIMIT ${BATCH})`
    return inBatches(this.engine, 'removing records', () =>
      Number(this.engine.prepare(sql).run(...values).changes),
    )
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(this.engine, 'removing expired records', () =>
      Number(this.engine.prepare(DELETE_EXPIRED).run(nowMs).changes),
    )
  }
}

function headIn(kind: RecordKind, row: Row): RecordHead {
  return {
    kind,
    id: textIn(row, 'id'),
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    model: textIn(row, 'model'),
    atMs: numberIn(row, 'at_ms'),
    expiresAtMs: numberIn(row, 'expires_at_ms'),
    info: textIn(row, 'info'),
    bytes: numberIn(row, 'bytes'),
  }
}

function conditionOf(kind: RecordKind, filter: RecordFilter): { where: string; values: Value[] } {
  const conditions: [string, Value | undefined][] = [
    ['kind = ?', kind],
    ['id = ?', filter.id],
    ['account_id = ?', filter.accountId],
    ['key_id = ?', filter.keyId],
    ['model = ?', filter.model],
    ['at_ms >= ?', filter.sinceMs],
    ['at_ms <= ?', filter.untilMs],
  ]
  const given = conditions.flatMap(([sql, value]): [string, Value][] =>
    value === undefined ? [] : [[sql, value]],
  )
  return {
    where: given.map(([sql]) => sql).join(' AND '),
    values: given.map(([, value]) => value),
  }
}
