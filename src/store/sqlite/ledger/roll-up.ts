/**
 * What is derived from ledger entries: the index of entries by account and key, and the sums of hours and days.
 * Entries behind the last counted one (`counted_seq`) are added a batch at a time, in the transaction that moves the
 * mark; any process counts the entries of all. Hours that are over are added to their day in the same way
 * (`days_mark`). All of it runs in the thread of background-worker.ts, which waits for the write lock.
 */
import { randomUUID } from 'node:crypto'
import { CAUSES } from '../../../error-cause.js'
import type { UsageSum } from '../../ledger.js'
import {
  numberIn,
  textIn,
  type Connection,
  type Row,
  type Statement,
  type Value,
} from '../driver.js'
import {
  ALL_KEYS,
  BUCKET_MS,
  COUNTER_COLUMNS,
  COUNTERS,
  FIRST_CONTENT_COLUMNS,
  MOST,
  TABLE_OF,
  type Bucket,
} from './sum-columns.js'

/** What is removed: entries, or sums of hours or days. */
export type Pruned = 'entries' | Bucket

/** Entries counted in one transaction: a quarter of those that wait, within these bounds. The largest takes about 15 ms. */
const LEAST_COUNTED = 100
const MOST_COUNTED = 5_000
/** Rows of hours added to their days in one transaction. */
const MOST_MOVED = 200
/** Rows put or removed in one transaction. */
const BATCH = 200

const PLACE = 'start_ms, account_id, key_id, model'
const COLUMNS = `${PLACE}, last_at_ms, ${COUNTER_COLUMNS.join(', ')}`
const UPDATES = `ON CONFLICT DO UPDATE SET last_at_ms = max(last_at_ms, excluded.last_at_ms), ${COUNTER_COLUMNS.map(
  (column) => `${column} = ${column} + excluded.${column}`,
).join(', ')}`
const MARK = `(SELECT ${PLACE} FROM days_mark)`
const ADDED_UP = COUNTER_COLUMNS.map(
  (column) => `CAST(min(${MOST}, total(${column})) AS INTEGER)`,
).join(', ')

/**
 * Sums of one batch by hour, model and owner: a key, then all keys of an account, then all accounts. They are in
 * memory: the write lock is not held while they are computed.
 */
const BATCH_TABLE = `CREATE TEMP TABLE batch (${COLUMNS})`
const SUM_BATCH = [
  `INSERT INTO batch SELECT at_ms / ${BUCKET_MS.hour} * ${BUCKET_MS.hour}, account_id, key_id, model,
    max(at_ms), ${COUNTERS.map(([, expression]) => expression).join(', ')}
  FROM ledger_entries WHERE seq > ? AND seq <= ? GROUP BY 1, 2, 3, 4`,
  `INSERT INTO batch SELECT start_ms, account_id, '${ALL_KEYS}', model, max(last_at_ms), ${ADDED_UP}
  FROM batch GROUP BY 1, 2, 4`,
  `INSERT INTO batch SELECT start_ms, '', '', model, max(last_at_ms), ${ADDED_UP}
  FROM batch WHERE key_id = '${ALL_KEYS}' GROUP BY 1, 4`,
] as const
const INDEX_BATCH = `INSERT OR IGNORE INTO entry_places SELECT owner, at_ms, seq FROM (
    SELECT account_id AS owner, at_ms, seq FROM ledger_entries WHERE seq > ?1 AND seq <= ?2
    UNION ALL SELECT key_id, at_ms, seq FROM ledger_entries WHERE seq > ?1 AND seq <= ?2
  ) ORDER BY owner, at_ms, seq`
const ADD_HOURS = `INSERT INTO usage_hours (${COLUMNS}) SELECT ${COLUMNS} FROM batch WHERE true ${UPDATES}`
/** Days get only the hours that they include already. */
const ADD_LATE_HOURS = `INSERT INTO usage_days (${COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, max(last_at_ms), ${ADDED_UP}
  FROM batch WHERE (${PLACE}) <= ${MARK} GROUP BY 1, 2, 3, 4 ${UPDATES}`

/** The sums of accounts for a table that has only those of keys. */
function addAccounts(by: Bucket): string {
  return `INSERT INTO ${TABLE_OF[by]} (${COLUMNS})
    SELECT start_ms, account_id, '${ALL_KEYS}', model, max(last_at_ms), ${ADDED_UP}
    FROM ${TABLE_OF[by]} WHERE account_id <> '' GROUP BY 1, 2, 4;`
}

/** The last of the next rows of hours, behind a place and before a time. The place is bound: SQLite seeks it then. */
const NEXT_PLACE = `SELECT ${PLACE} FROM (
    SELECT ${PLACE} FROM usage_hours WHERE (${PLACE}) > (?, ?, ?, ?) AND start_ms < ?
    ORDER BY ${PLACE} LIMIT ${MOST_MOVED}
  ) ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`
/** Adds the rows of hours from one place to another to their days. */
const MOVE_HOURS = `INSERT INTO usage_days (${COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, last_at_ms,
    ${COUNTER_COLUMNS.join(', ')}
  FROM usage_hours WHERE (${PLACE}) > (?, ?, ?, ?) AND (${PLACE}) <= (?, ?, ?, ?) ${UPDATES}`

const LAST_HOUR = `SELECT ${PLACE} FROM usage_hours
  ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`

/** Gives a store of version 1 the sums of accounts. Days include all hours then, so that both have the same. */
export const ADD_ACCOUNT_SUMS = `
  INSERT INTO usage_days (${COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, last_at_ms,
    ${COUNTER_COLUMNS.join(', ')}
  FROM usage_hours WHERE (${PLACE}) > ${MARK} ${UPDATES};
  UPDATE days_mark SET (${PLACE}) = (${LAST_HOUR}) WHERE EXISTS (${LAST_HOUR});
  ${addAccounts('hour')}
  ${addAccounts('day')}`

/** The derived tables of one store, on a connection of their own. Every method throws what SQLite reports. */
export class RollUp {
  private readonly db: Connection
  private readonly begin: Statement
  private readonly mark: Statement
  private readonly end: Statement
  private readonly setMark: Statement
  private readonly emptyBatch: Statement
  private readonly sumKeys: Statement
  private readonly sumAccounts: Statement
  private readonly sumAll: Statement
  private readonly indexBatch: Statement
  private readonly addHours: Statement
  private readonly isLate: Statement
  private readonly addLateHours: Statement
  private readonly touchDays: Statement
  private readonly daysMark: Statement
  private readonly nextPlace: Statement
  private readonly moveHours: Statement
  private readonly setDaysMark: Statement

  constructor(db: Connection) {
    this.db = db
    db.exec(BATCH_TABLE)
    this.begin = db.prepare('BEGIN IMMEDIATE')
    this.mark = db.prepare(
      "SELECT CAST(value AS INTEGER) AS seq FROM meta WHERE name = 'counted_seq'",
    )
    this.end = db.prepare('SELECT max(seq) AS seq FROM ledger_entries WHERE seq > ?')
    this.setMark = db.prepare("UPDATE meta SET value = ? WHERE name = 'counted_seq'")
    this.emptyBatch = db.prepare('DELETE FROM batch')
    this.sumKeys = db.prepare(SUM_BATCH[0])
    this.sumAccounts = db.prepare(SUM_BATCH[1])
    this.sumAll = db.prepare(SUM_BATCH[2])
    this.indexBatch = db.prepare(INDEX_BATCH)
    this.addHours = db.prepare(ADD_HOURS)
    this.isLate = db.prepare(
      'SELECT 1 FROM batch WHERE start_ms <= (SELECT start_ms FROM days_mark)',
    )
    this.addLateHours = db.prepare(ADD_LATE_HOURS)
    this.touchDays = db.prepare(
      "INSERT OR REPLACE INTO meta (name, value) VALUES ('days_changed', ?)",
    )
    this.daysMark = db.prepare(`SELECT ${PLACE} FROM days_mark`)
    this.nextPlace = db.prepare(NEXT_PLACE)
    this.moveHours = db.prepare(MOVE_HOURS)
    this.setDaysMark = db.prepare(
      'UPDATE days_mark SET start_ms = ?, account_id = ?, key_id = ?, model = ?',
    )
  }

  /** Counts all that was written before, by any process. */
  catchUp(): void {
    let from = seqIn(this.mark.get())
    // What is written from now on is not waited for: under load there would always be more.
    const last = this.end.get(from)?.['seq']
    if (typeof last !== 'number') return
    while (from < last) {
      const share = Math.floor((last - from) / 4)
      const size = Math.max(LEAST_COUNTED, Math.min(MOST_COUNTED, share))
      this.count(from, Math.min(last, from + size))
      from = seqIn(this.mark.get())
    }
  }

  /** Adds the hours that began before to their days. */
  addToDays(startedBeforeMs: number): void {
    for (let isDone = false; !isDone;) {
      isDone = this.write(() => {
        const mark = placeIn(this.daysMark.get())
        const next = this.nextPlace.get(...mark, startedBeforeMs)
        if (next === undefined) return true
        this.moveHours.run(...mark, ...placeIn(next))
        this.setDaysMark.run(...placeIn(next))
        return false
      })
    }
  }

  /** See `Ledger.putSums`. Days that are put include their hours: no hour is added to them again. */
  put(by: Bucket, sums: readonly UsageSum[], lastUse: ReadonlyMap<string, number>): void {
    this.catchUp()
    this.addToDays(Number.MAX_SAFE_INTEGER)
    const table = TABLE_OF[by]
    const lastHour = this.db.prepare(LAST_HOUR)
    const put = this.db.prepare(
      `INSERT OR REPLACE INTO ${table} (${COLUMNS})
       VALUES (?, ?, ?, ?, ?, ${COUNTER_COLUMNS.map(() => '?').join(', ')})`,
    )
    // What all keys of an account used, and all accounts, is that of its parts.
    const total = (owner: string, condition: string) =>
      this.db.prepare(
        `INSERT OR REPLACE INTO ${table} (${COLUMNS})
         SELECT start_ms, ${owner}, model, max(last_at_ms), ${ADDED_UP}
         FROM ${table} WHERE start_ms = ?1 AND model = ?2 AND ${condition} GROUP BY start_ms, model`,
      )
    const ofAccount = total(
      `account_id, '${ALL_KEYS}'`,
      `account_id = ?3 AND key_id <> '${ALL_KEYS}'`,
    )
    const ofAll = total("'', ''", `account_id <> '' AND key_id = '${ALL_KEYS}'`)
    for (let at = 0; at < sums.length; at += BATCH) {
      this.write(() => {
        for (const sum of sums.slice(at, at + BATCH)) {
          put.run(...putValues(sum, by, lastUse))
          ofAccount.run(sum.startMs, sum.model, sum.accountId)
          ofAll.run(sum.startMs, sum.model)
        }
        this.touchDays.run(randomUUID())
        const last = lastHour.get()
        if (last !== undefined) this.setDaysMark.run(...placeIn(last))
      })
    }
  }

  /**
   * Removes up to `BATCH` entries that arrived before, or buckets that ended before; how many. Entries that are not
   * counted yet, and hours that their day does not include yet, stay.
   */
  prune(what: Pruned, beforeMs: number): number {
    return what === 'entries' ? this.pruneEntries(beforeMs) : this.pruneSums(what, beforeMs)
  }

  private count(from: number, to: number): void {
    this.emptyBatch.run()
    this.sumKeys.run(from, to)
    this.sumAccounts.run()
    this.sumAll.run()
    this.write(() => {
      // Another process may have counted meanwhile.
      if (seqIn(this.mark.get()) !== from) return
      this.addHours.run()
      if (this.isLate.get() !== undefined) {
        this.addLateHours.run()
        this.touchDays.run(randomUUID())
      }
      this.indexBatch.run(from, to)
      this.setMark.run(String(to))
    })
  }

  private pruneEntries(beforeMs: number): number {
    const old = this.db.prepare(
      `SELECT seq, at_ms, account_id, key_id FROM ledger_entries
       WHERE at_ms < ? AND seq <= ? ORDER BY at_ms LIMIT ${BATCH}`,
    )
    const remove = this.db.prepare('DELETE FROM ledger_entries WHERE seq = ?')
    const unplace = this.db.prepare(
      'DELETE FROM entry_places WHERE owner IN (?, ?) AND at_ms = ? AND seq = ?',
    )
    return this.write(() => {
      const rows = old.all(beforeMs, seqIn(this.mark.get()))
      for (const row of rows) {
        const seq = numberIn(row, 'seq')
        const [account, key] = [textIn(row, 'account_id'), textIn(row, 'key_id')]
        unplace.run(account, key, numberIn(row, 'at_ms'), seq)
        remove.run(seq)
      }
      return rows.length
    })
  }

  private pruneSums(by: Bucket, beforeMs: number): number {
    const table = TABLE_OF[by]
    const isIncluded = by === 'hour' ? `AND (${PLACE}) <= ${MARK}` : ''
    const remove = this.db.prepare(
      `DELETE FROM ${table} WHERE (${PLACE}) IN
       (SELECT ${PLACE} FROM ${table} WHERE start_ms <= ? ${isIncluded} LIMIT ${BATCH})`,
    )
    return this.write(() => {
      this.touchDays.run(randomUUID())
      return Number(remove.run(beforeMs - BUCKET_MS[by]).changes)
    })
  }

  private write<T>(job: () => T): T {
    this.begin.run()
    try {
      const result = job()
      this.db.exec('COMMIT')
      return result
    } catch (error) {
      try {
        this.db.exec('ROLLBACK')
      } catch {
        // SQLite has rolled back by itself, as it does when the disk is full.
      }
      throw error
    }
  }
}

function seqIn(row: Row | undefined): number {
  if (row === undefined) throw new Error("the store is damaged: 'counted_seq' is gone")
  return numberIn(row, 'seq')
}

/** The primary key of a row of hours. */
function placeIn(row: Row | undefined): Value[] {
  if (row === undefined) throw new Error("the store is damaged: 'days_mark' is empty")
  return [
    numberIn(row, 'start_ms'),
    ...['account_id', 'key_id', 'model'].map((name) => textIn(row, name)),
  ]
}

function putValues(sum: UsageSum, by: Bucket, lastUse: ReadonlyMap<string, number>): Value[] {
  const { startMs, accountId, keyId, model } = sum
  const lastMs = lastUse.get(keyId) ?? startMs
  const isIn = lastMs >= startMs && lastMs < startMs + BUCKET_MS[by]
  return [
    ...[startMs, accountId, keyId, model, isIn ? lastMs : startMs, sum.requests, sum.errors],
    ...[sum.inputTokens, sum.outputTokens, sum.cacheReadTokens, sum.cacheWriteTokens],
    ...[sum.reasoningTokens, sum.costNanoUsd, sum.unpriced, sum.estimated],
    ...FIRST_CONTENT_COLUMNS.map((_, at) => sum.firstContent[at] ?? 0),
    ...CAUSES.map((cause) => sum.byCause[cause]),
  ]
}
