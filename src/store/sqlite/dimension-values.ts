/** The values of dimensions in SQLite: a row each; the table `sizes` counts those of an account. */
import { objectOf } from '../../base/json.js'
import {
  addedTools,
  type DimensionValues,
  type StoredValue,
  type ToolCalls,
  type ValueBounds,
  type ValueName,
  type ValueRecord,
  type ValueState,
  type ValueUse,
} from '../dimension-values.js'
import { valueDigest } from '../value-digest.js'
import { numberIn, textIn, type Row } from './driver.js'
import { BATCH, inBatches, type Engine } from './engine.js'
import type { AuditEntry } from '../audit-trail.js'
import type { SqliteAuditTrail } from './keys/audit-trail.js'
import type { SqliteNotifications } from './keys/notifications.js'
import { numberOf } from './read-records.js'

const OF = 'account_id = ? AND dimension = ? AND value = ?'
const INSERT = `INSERT INTO dimension_values (account_id, dimension, value, expires_at_ms) VALUES (?, ?, ?, ?)`
const ADD = `UPDATE dimension_values SET requests = requests + ?, input_tokens = input_tokens + ?,
  output_tokens = output_tokens + ?, cost_nano_usd = cost_nano_usd + ?,
  first_at_ms = CASE WHEN ? > 0 THEN min(coalesce(first_at_ms, ?), ?) ELSE first_at_ms END,
  last_at_ms = max(coalesce(last_at_ms, 0), ?), expires_at_ms = max(expires_at_ms, ?) WHERE
  ${OF}`
const END = `UPDATE dimension_values SET ended_at_ms = coalesce(ended_at_ms, ?), expires_at_ms = max(expires_at_ms, ?) WHERE
  ${OF}`
const SET_TOOLS = `UPDATE dimension_values SET tools = ? WHERE ${OF}`
const DELETE_EXPIRED = `DELETE FROM dimension_values WHERE rowid IN
  (SELECT rowid FROM dimension_values WHERE expires_at_ms <= ? LIMIT ${BATCH})`
const DELETE_EXPIRED_OF = `DELETE FROM dimension_values WHERE rowid IN
  (SELECT rowid FROM dimension_values WHERE account_id = ? AND dimension = ? AND expires_at_ms <= ? LIMIT ${BATCH})`

/** The values of a store. */
export class SqliteDimensionValues implements DimensionValues {
  private readonly engine: Engine
  private readonly notifications: SqliteNotifications
  private readonly auditTrail: SqliteAuditTrail

  constructor(engine: Engine, notifications: SqliteNotifications, auditTrail: SqliteAuditTrail) {
    this.engine = engine
    this.notifications = notifications
    this.auditTrail = auditTrail
  }

  claim(name: ValueName, { maxValues, keepMs }: ValueBounds, nowMs: number): Promise<ValueState> {
    const { engine } = this
    return engine.write('finding a value', () => {
      const row = this.row(name)
      if (row !== undefined && numberIn(row, 'expires_at_ms') > nowMs) {
        return { hasPlace: true, endedAtMs: timeIn(row, 'ended_at_ms') }
      }
      if (row !== undefined) this.remove(name)
      const { accountId, dimension, value } = name
      if (this.count(name) >= maxValues) {
        engine.prepare(DELETE_EXPIRED_OF).run(accountId, dimension, nowMs)
        if (this.count(name) >= maxValues) return { hasPlace: false, endedAtMs: null }
      }
      engine.prepare(INSERT).run(accountId, dimension, value, nowMs + keepMs)
      return { hasPlace: true, endedAtMs: null }
    })
  }

  async add(uses: readonly ValueUse[]): Promise<void> {
    const { engine } = this
    for (let at = 0; at < uses.length; at += BATCH) {
      await engine.write('counting the use of values', () => {
        for (const use of uses.slice(at, at + BATCH)) this.addOne(use)
      })
    }
  }

  find(name: ValueName, nowMs: number): Promise<ValueRecord | null> {
    return this.engine.read('reading a value', () => {
      const row = this.row(name)
      return row === undefined || numberIn(row, 'expires_at_ms') <= nowMs ? null : recordIn(row)
    })
  }

  end(
    name: ValueName,
    keepMs: number,
    nowMs: number,
    auditEntries: readonly AuditEntry[] = [],
  ): Promise<ValueRecord> {
    const { engine, notifications } = this
    const { accountId, dimension, value } = name
    return notifications.announced(
      engine.writeDurably('ending a value', () => {
        const row = this.row(name)
        if (row !== undefined && numberIn(row, 'expires_at_ms') <= nowMs) this.remove(name)
        const untilMs = nowMs + keepMs
        const known = this.row(name)
        if (known === undefined) engine.prepare(INSERT).run(accountId, dimension, value, untilMs)
        if (known === undefined || timeIn(known, 'ended_at_ms') === null) this.auditTrail.addAll(auditEntries)
        engine.prepare(END).run(nowMs, untilMs, accountId, dimension, value)
        notifications.note(valueDigest(name))
        return recordIn(this.row(name) ?? {})
      }),
    )
  }

  async *all(): AsyncIterable<readonly StoredValue[]> {
    const sql = `SELECT rowid AS place, * FROM dimension_values WHERE rowid > ? ORDER BY rowid LIMIT ${BATCH}`
    for (let after = 0; ;) {
      const rows = await this.engine.read('reading values', () => this.engine.prepare(sql).all(after))
      const last = rows.at(-1)
      if (last === undefined) return
      yield rows.map((row) => ({
        accountId: textIn(row, 'account_id'),
        dimension: textIn(row, 'dimension'),
        value: textIn(row, 'value'),
        ...recordIn(row),
        untilMs: numberIn(row, 'expires_at_ms'),
      }))
      after = numberIn(last, 'place')
    }
  }

  sweep(nowMs: number): Promise<number> {
    const { engine } = this
    return inBatches(engine, 'removing unused values', () =>
      Number(engine.prepare(DELETE_EXPIRED).run(nowMs).changes),
    )
  }

  private addOne(use: ValueUse): void {
    const { accountId, dimension, value, keepMs, atMs, requests } = use
    const { inputTokens, outputTokens, costNanoUsd, tools = [] } = use
    const name = [accountId, dimension, value]
    if (tools.length > 0) this.addTools(use, tools)
    const times = [requests, atMs, atMs, atMs, atMs + keepMs]
    this.engine.prepare(ADD).run(requests, inputTokens, outputTokens, costNanoUsd, ...times, ...name)
  }

  private addTools(name: ValueName, tools: readonly ToolCalls[]): void {
    const row = this.row(name)
    if (row === undefined) return
    const text = JSON.stringify(addedTools(toolsIn(row), tools))
    const { accountId, dimension, value } = name
    this.engine.prepare(SET_TOOLS).run(text, accountId, dimension, value)
  }

  private row({ accountId, dimension, value }: ValueName): Row | undefined {
    const { engine } = this
    return engine.prepare(`SELECT * FROM dimension_values WHERE ${OF}`).get(accountId, dimension, value)
  }

  private remove({ accountId, dimension, value }: ValueName): void {
    this.engine.prepare(`DELETE FROM dimension_values WHERE ${OF}`).run(accountId, dimension, value)
  }

  private count({ accountId, dimension }: ValueName): number {
    const size = this.engine.prepare('SELECT entries AS n FROM sizes WHERE name = ?')
    const row = size.get(`values of ${accountId} ${dimension}`)
    return row === undefined ? 0 : numberOf(row)
  }
}

function recordIn(row: Row): ValueRecord {
  return {
    requests: numberIn(row, 'requests'),
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    costNanoUsd: numberIn(row, 'cost_nano_usd'),
    tools: toolsIn(row),
    firstAtMs: timeIn(row, 'first_at_ms'),
    lastAtMs: timeIn(row, 'last_at_ms'),
    endedAtMs: timeIn(row, 'ended_at_ms'),
  }
}

function toolsIn({ tools }: Row): ToolCalls[] {
  const found: unknown = typeof tools === 'string' ? JSON.parse(tools) : []
  return (Array.isArray(found) ? found : []).flatMap((each: unknown): ToolCalls[] => {
    const { name, calls } = objectOf(each)
    return typeof name === 'string' && typeof calls === 'number' ? [{ name, calls }] : []
  })
}

function timeIn(row: Row, name: string): number | null {
  const value = row[name] ?? null
  return value === null ? null : numberIn(row, name)
}
