/**
 * Adds ledger entries to the tables that are derived from them: the index by account and key (`entry_places`)
 * and the sums of hours and days.
 *
 * `counted_seq` is the last entry that the tables include; a batch of the next entries is added in the
 * transaction that moves it. Any process adds the entries of all processes. Hours that are over are added to
 * their day in the same way, up to the row of hours in `days_mark`. The code runs in the background thread
 * and waits there for the write lock.
 */
import { randomUUID } from 'node:crypto'
import { UNIT_NAMES } from '../../../base/unit-counts.js'
import { CAUSES } from '../../../errors.js'
import { monthOf } from '../../limit-arithmetic.js'
import { countersOfParts, FORMER_COUNTERS } from '../../first-content.js'
import { PROPERTY_MARK, type UsageSum } from '../../usage-queries.js'
import { numberIn, textIn, type Connection, type Row, type Statement, type Value } from '../driver.js'
import { KEEP_USE } from './account-use.js'
import { dropMonths } from './entry-row.js'
import { entryTables } from './former-entries.js'
import { ADD_PROPERTY_DAYS, ONE_KEY, ONE_PROPERTY, SUM_PROPERTIES } from './property-sums.js'
import {
  ALL_KEYS,
  BUCKET_MS,
  COUNTER_COLUMNS,
  COUNTERS,
  SUM_COLUMNS,
  SUM_KEY,
  TABLE_OF,
  TOTALS,
  type Bucket,
} from './sum-columns.js'
import { CONFIRMED_ENTRY } from './waiting-entries.js'

/**
 * Entries added up at once; the number adapts to the rows of sums that they make, about ten for each at most.
 */
const LEAST_IN_BATCH = 2_000
const MOST_IN_BATCH = 50_000
/** Rows of sums that one batch may make: adding them holds the write lock for about 40 ms. */
const MOST_SUMS = 20_000
/** Rows of the index added in one transaction. */
const MOST_PLACES = 10_000
/** Rows of hours added to their days in one transaction. */
const MOST_MOVED = 200

/** The last row of hours that days include. */
const DAYS_MARK = `(SELECT ${SUM_KEY} FROM days_mark)`
const UPDATES = `ON CONFLICT DO UPDATE SET last_at_ms = max(last_at_ms, excluded.last_at_ms), ${COUNTER_COLUMNS.map(
  (column) => `${column} = ${column} + excluded.${column}`,
).join(', ')}`

/** What the entries of one group have in common besides their hour: every value by which sums are made. */
const GROUP_BY = 'account_id, key_id, model, upstream, ingress, labels, is_shadow, account_path'
/**
 * The tables of one batch. `batch_groups` counts each entry once. `batch` has the sums, which add up groups:
 * of each key, then of all keys of an account, then of all accounts, then by property. `batch_places` is the
 * index of the entries, in order. They are in memory: the write lock is not held while they are filled.
 */
const BATCH_TABLES = `
  CREATE TEMP TABLE batch_groups (start_ms, ${GROUP_BY}, last_at_ms, ${COUNTER_COLUMNS.join(', ')});
  CREATE TEMP TABLE batch (${SUM_COLUMNS});
  CREATE TEMP TABLE batch_places (owner, at_ms, seq)`
const CLEAR_BATCH = 'DELETE FROM batch_groups; DELETE FROM batch; DELETE FROM batch_places'
const DROP_BATCH = 'DROP TABLE batch_groups; DROP TABLE batch; DROP TABLE batch_places'
/** Groups the entries from ?1 (exclusive) to ?2. */
const GROUP_ENTRIES = `INSERT INTO batch_groups
  SELECT at_ms / ${BUCKET_MS.hour} * ${BUCKET_MS.hour} AS start_ms, account_id, key_id, model, upstream, ingress,
    labels, shadow_of IS NOT NULL AS is_shadow, account_path, max(at_ms),
    ${COUNTERS.map(([, expression]) => expression).join(', ')}
  FROM ledger_entries WHERE seq > ?1 AND seq <= ?2 GROUP BY start_ms, ${GROUP_BY}`
const SUM_OWNERS = [
  `INSERT INTO batch SELECT ${SUM_KEY}, max(last_at_ms), ${TOTALS} FROM batch_groups GROUP BY ${SUM_KEY}`,
  `INSERT INTO batch SELECT start_ms, account_id, '${ALL_KEYS}', model, max(last_at_ms), ${TOTALS}
  FROM batch GROUP BY 1, 2, 4`,
  `INSERT INTO batch SELECT start_ms, '', '', model, max(last_at_ms), ${TOTALS}
  FROM batch WHERE key_id = '${ALL_KEYS}' GROUP BY 1, 4`,
]
const INDEX_BATCH = `INSERT INTO batch_places SELECT owner, at_ms, seq FROM (
    SELECT account_id AS owner, at_ms, seq FROM ledger_entries WHERE seq > ?1 AND seq <= ?2
    UNION ALL SELECT key_id, at_ms, seq FROM ledger_entries WHERE seq > ?1 AND seq <= ?2
  ) ORDER BY owner, at_ms, seq`
const ADD_PLACES = `INSERT OR IGNORE INTO entry_places SELECT owner, at_ms, seq FROM batch_places WHERE
  rowid > ?1 AND rowid <= ?1 + ${MOST_PLACES}`
const ADD_HOURS = `INSERT INTO usage_hours (${SUM_COLUMNS}) SELECT ${SUM_COLUMNS} FROM batch WHERE true ${UPDATES}`
/** Turns the sums of a batch into what takes it off. */
const NEGATE_BATCH = `UPDATE batch SET ${COUNTER_COLUMNS.map((column) => `${column} = -${column}`).join(', ')}`
/** Rows of a batch that was taken off, of which nothing is left. */
const DROP_EMPTY = Object.values(TABLE_OF).map((table) => {
  const start = table === TABLE_OF.day ? `start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}` : 'start_ms'
  return `DELETE FROM ${table} WHERE requests = 0 AND (${SUM_KEY}) IN
    (SELECT ${SUM_KEY.replace('start_ms', start)} FROM batch)`
})
/** Adds entries of hours that their day includes already. */
const ADD_LATE_HOURS = `INSERT INTO usage_days (${SUM_COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, max(last_at_ms), ${TOTALS}
  FROM batch WHERE (${SUM_KEY}) <= ${DAYS_MARK} GROUP BY 1, 2, 3, 4 ${UPDATES}`

/**
 * The last of the next rows of hours after a key and before a time. SQLite seeks the key because it is bound.
 */
const NEXT_HOUR = `SELECT ${SUM_KEY} FROM (
    SELECT ${SUM_KEY} FROM usage_hours WHERE (${SUM_KEY}) > (?, ?, ?, ?) AND start_ms < ?
    ORDER BY ${SUM_KEY} LIMIT ${MOST_MOVED}
  ) ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`
/** Adds the rows of hours from one key to another to their days. */
const MOVE_HOURS = `INSERT INTO usage_days (${SUM_COLUMNS})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, last_at_ms,
    ${COUNTER_COLUMNS.join(', ')}
  FROM usage_hours WHERE (${SUM_KEY}) > (?, ?, ?, ?) AND (${SUM_KEY}) <= (?, ?, ?, ?) ${UPDATES}`

/** The last row of hours. */
const LAST_HOUR = `SELECT ${SUM_KEY} FROM usage_hours
  ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`

/** Gives a store of an earlier version the sums by property of the entries that it has kept. */
export function addPropertySums(db: Connection): void {
  const counted = seqIn(
    db.prepare("SELECT CAST(value AS INTEGER) AS seq FROM meta WHERE name = 'counted_seq'").get(),
  )
  for (const table of Object.values(TABLE_OF)) db.exec(`DELETE FROM ${table} WHERE ${ONE_PROPERTY}`)
  db.exec(BATCH_TABLES)
  const [groupEntries, addHours] = [db.prepare(GROUP_ENTRIES), db.prepare(ADD_HOURS)]
  const sums = SUM_PROPERTIES.map((sql) => db.prepare(sql))
  for (let from = 0; from < counted; from += MOST_IN_BATCH) {
    db.exec(CLEAR_BATCH)
    groupEntries.run(from, Math.min(counted, from + MOST_IN_BATCH))
    for (const sum of sums) sum.run()
    addHours.run()
  }
  db.exec(DROP_BATCH)
  db.exec(ADD_PROPERTY_DAYS)
}

/**
 * The derived tables of one store, over a connection of the thread. Every method throws the error of SQLite.
 */
export class RollUp {
  /** The connection of the background thread. */
  readonly db: Connection
  private readonly written: () => void
  private readonly begin: Statement
  private readonly mark: Statement
  private readonly end: Statement
  private readonly setMark: Statement
  private readonly groupEntries: Statement
  private readonly sums: readonly Statement[]
  private readonly indexBatch: Statement
  private readonly addPlaces: Statement
  private readonly addHours: Statement
  private readonly isLate: Statement
  private readonly addLateHours: Statement
  private readonly touchDays: Statement
  private readonly daysMark: Statement
  private readonly nextHour: Statement
  private readonly moveHours: Statement
  private readonly setDaysMark: Statement
  private batchSize = LEAST_IN_BATCH

  /** `written` is called after each transaction. */
  constructor(db: Connection, written: () => void) {
    this.db = db
    this.written = written
    db.exec(BATCH_TABLES)
    this.begin = db.prepare('BEGIN IMMEDIATE')
    this.mark = db.prepare("SELECT CAST(value AS INTEGER) AS seq FROM meta WHERE name = 'counted_seq'")
    this.end = db.prepare('SELECT max(seq) AS seq FROM entry_ids WHERE seq > ?')
    this.setMark = db.prepare("UPDATE meta SET value = ? WHERE name = 'counted_seq'")
    this.groupEntries = db.prepare(GROUP_ENTRIES)
    this.sums = [...SUM_OWNERS, ...SUM_PROPERTIES].map((sql) => db.prepare(sql))
    this.indexBatch = db.prepare(INDEX_BATCH)
    this.addPlaces = db.prepare(ADD_PLACES)
    this.addHours = db.prepare(ADD_HOURS)
    this.isLate = db.prepare('SELECT 1 FROM batch WHERE start_ms <= (SELECT start_ms FROM days_mark)')
    this.addLateHours = db.prepare(ADD_LATE_HOURS)
    this.touchDays = db.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('days_changed', ?)")
    this.daysMark = db.prepare(`SELECT ${SUM_KEY} FROM days_mark`)
    this.nextHour = db.prepare(NEXT_HOUR)
    this.moveHours = db.prepare(MOVE_HOURS)
    this.setDaysMark = db.prepare('UPDATE days_mark SET start_ms = ?, account_id = ?, key_id = ?, model = ?')
  }

  /** Adds all entries that any process has written before the call. */
  catchUp(): void {
    let from = this.counted()
    // Entries written from now on are left for the next call: under load there are always more.
    const last = this.end.get(from)?.['seq']
    if (typeof last !== 'number') return
    for (; from < last; from = this.counted()) {
      this.count(from, Math.min(last, from + this.batchSize))
    }
  }

  /** Adds the hours that began before a time to their days. */
  addToDays(startedBeforeMs: number): void {
    for (let isDone = false; !isDone;) {
      isDone = this.write(() => {
        const mark = keyIn(this.daysMark.get())
        const next = this.nextHour.get(...mark, startedBeforeMs)
        if (next === undefined) return true
        this.moveHours.run(...mark, ...keyIn(next))
        this.setDaysMark.run(...keyIn(next))
        return false
      })
    }
  }

  /** The last entry that the tables include. Throws an Error if it is missing. */
  counted(): number {
    return seqIn(this.mark.get())
  }

  /** Records that sums of days have changed that are over; `GroupUses` keeps such days in memory. */
  daysChanged(): void {
    this.touchDays.run(randomUUID())
  }

  /** Takes an entry off that the tables include, before it is removed. Only inside `write`. */
  uncount(seq: number): void {
    const { db } = this
    db.exec(CLEAR_BATCH)
    this.groupEntries.run(seq - 1, seq)
    for (const sum of this.sums) sum.run()
    db.exec(NEGATE_BATCH)
    this.addSums()
    this.daysChanged()
    for (const sql of DROP_EMPTY) db.exec(sql)
  }

  private addSums(): void {
    this.addHours.run()
    if (this.isLate.get() === undefined) return
    this.addLateHours.run()
    this.daysChanged()
  }

  private count(from: number, to: number): void {
    this.db.exec(CLEAR_BATCH)
    this.groupEntries.run(from, to)
    const rows = this.sums.reduce((made, sum) => made + Number(sum.run().changes), 0)
    const isFull = to - from === this.batchSize
    if (rows > MOST_SUMS) this.batchSize = Math.max(LEAST_IN_BATCH, this.batchSize / 2)
    else if (isFull) this.batchSize = Math.min(MOST_IN_BATCH, this.batchSize * 2)
    const places = Number(this.indexBatch.run(from, to).changes)
    for (let at = 0; at < places; at += MOST_PLACES) {
      // A process that was killed before it counted the entries has left rows.
      this.writeUnlessCounted(from, () => this.addPlaces.run(at))
    }
    this.writeUnlessCounted(from, () => {
      this.addSums()
      this.setMark.run(String(to))
    })
  }

  /** Runs the job in a transaction, unless another process has counted the entries after `from` meanwhile. */
  private writeUnlessCounted(from: number, job: () => void): void {
    this.write(() => {
      if (this.counted() === from) job()
    })
  }

  /** Runs the job in a transaction. */
  write<T>(job: () => T): T {
    const result = this.committed(job)
    this.written()
    return result
  }

  private committed<T>(job: () => T): T {
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

/** The values of `SUM_KEY` in a row. Throws an Error if there is no row. */
function keyIn(row: Row | undefined): Value[] {
  if (row === undefined) throw new Error("the store is damaged: 'days_mark' is empty")
  return [numberIn(row, 'start_ms'), ...['account_id', 'key_id', 'model'].map((name) => textIn(row, name))]
}

/** Sums put in one transaction. */
const BATCH = 200

/** The sums of hours or days, and when each key was last used (ms since 1970). */
export interface SumsToPut {
  readonly by: Bucket
  readonly sums: readonly UsageSum[]
  readonly lastUse: ReadonlyMap<string, number>
}

/** See `Ledger.putSums`. Days that are put include their hours, which are not added to them again. */
export function putSums(rollUp: RollUp, { by, sums, lastUse }: SumsToPut): void {
  const { db } = rollUp
  rollUp.catchUp()
  rollUp.addToDays(Number.MAX_SAFE_INTEGER)
  const table = TABLE_OF[by]
  const lastHour = db.prepare(LAST_HOUR)
  const setMark = db.prepare(`UPDATE days_mark SET (${SUM_KEY}) = (?, ?, ?, ?)`)
  const put = db.prepare(
    `INSERT OR REPLACE INTO ${table} (${SUM_COLUMNS})
       VALUES (?, ?, ?, ?, ?, ${COUNTER_COLUMNS.map(() => '?').join(', ')})`,
  )
  // The sums of an account are those of its keys, and the sums of all accounts are those of each.
  const total = (owner: string, condition: string) =>
    db.prepare(
      `INSERT OR REPLACE INTO ${table} (${SUM_COLUMNS})
         SELECT start_ms, ${owner}, model, max(last_at_ms), ${TOTALS}
         FROM ${table} WHERE start_ms = ?1 AND model = ?2 AND ${condition} GROUP BY start_ms, model`,
    )
  const ofAccount = total(`account_id, '${ALL_KEYS}'`, `account_id = ?3 AND ${ONE_KEY}`)
  const ofProperty = total("'', key_id", "account_id <> '' AND key_id = ?3")
  const ofAll = total("'', ''", `account_id <> '' AND key_id = '${ALL_KEYS}'`)
  for (let at = 0; at < sums.length; at += BATCH) {
    rollUp.write(() => {
      for (const sum of sums.slice(at, at + BATCH)) {
        const { startMs, model, keyId, accountId } = sum
        put.run(...putValues(sum, by, lastUse))
        if (!keyId.startsWith(PROPERTY_MARK)) {
          ofAccount.run(startMs, model, accountId)
          ofAll.run(startMs, model)
        } else if (!isByAccount(keyId)) ofProperty.run(startMs, model, keyId)
      }
      rollUp.daysChanged()
      const last = lastHour.get()
      if (last !== undefined) setMark.run(...keyIn(last))
    })
  }
}

/** The values of `SUM_COLUMNS` for a sum. */
function putValues(sum: UsageSum, by: Bucket, lastUse: ReadonlyMap<string, number>): Value[] {
  const { startMs, keyId, model } = sum
  // Sums by account are rows of all accounts.
  const accountId = isByAccount(keyId) ? '' : sum.accountId
  const lastMs = lastUse.get(keyId) ?? startMs
  const isIn = lastMs >= startMs && lastMs < startMs + BUCKET_MS[by]
  const firstContent = countersOfParts(sum.firstContent)
  return [
    ...[startMs, accountId, keyId, model, isIn ? lastMs : startMs, sum.requests, sum.failed],
    ...[sum.inputTokens, sum.outputTokens, sum.cacheReadTokens, sum.cacheWriteTokens],
    ...[sum.reasoningTokens, sum.costNanoUsd, sum.unpriced, sum.estimated],
    ...firstContent.slice(0, FORMER_COUNTERS),
    ...CAUSES.map((cause) => sum.byCause[cause]),
    sum.assumed,
    ...firstContent.slice(FORMER_COUNTERS),
    ...[sum.cacheHits, sum.savedNanoUsd],
    ...UNIT_NAMES.map((figure) => sum[figure]),
  ]
}

function isByAccount(keyId: string): boolean {
  return keyId.startsWith(`${PROPERTY_MARK}account=`)
}

/** The records to remove: entries, those that the archive has, or sums of hours or days. */
export type Pruned = 'entries' | 'archived' | Bucket

/**
 * Removes up to 200 entries that arrived before a time, or buckets that ended before it; the number removed.
 * Entries that sums do not include yet stay, and so do hours that their day does not include yet.
 */
export function pruneUsage(rollUp: RollUp, what: Pruned, beforeMs: number, nowMs: number): number {
  if (what === 'hour' || what === 'day') return pruneSums(rollUp, what, beforeMs)
  return pruneEntries(rollUp, what, beforeMs, nowMs)
}

/** Removes an entry, whose row is given, and its places. */
export function entryRemover(db: Connection): (row: Row) => void {
  const remove = entryTables(db).map((table) => db.prepare(`DELETE FROM ${table} WHERE seq = ?`))
  const removePlaces = db.prepare('DELETE FROM entry_places WHERE owner IN (?, ?) AND at_ms = ? AND seq = ?')
  return (row) => {
    const seq = numberIn(row, 'seq')
    removePlaces.run(textIn(row, 'account_id'), textIn(row, 'key_id'), numberIn(row, 'at_ms'), seq)
    for (const each of remove) each.run(seq)
  }
}

function pruneEntries(rollUp: RollUp, what: 'entries' | 'archived', beforeMs: number, nowMs: number): number {
  const { db } = rollUp
  const old = db.prepare(
    `SELECT seq, at_ms, account_id, key_id FROM ledger_entries WHERE
       at_ms < ? AND seq <= ? ${what === 'archived' ? `AND seq <= ${CONFIRMED_ENTRY}` : ''} ORDER BY at_ms LIMIT ${BATCH}`,
  )
  const remove = entryRemover(db)
  const keepUse = db.prepare(KEEP_USE)
  return rollUp.write(() => {
    const rows = old.all(beforeMs, rollUp.counted())
    keepUse.run(JSON.stringify(rows.map((row) => numberIn(row, 'seq'))))
    for (const row of rows) remove(row)
    if (rows.length < BATCH) dropMonths(db, Math.min(beforeMs, nowMs))
    return rows.length
  })
}

function pruneSums(rollUp: RollUp, by: Bucket, beforeMs: number): number {
  const table = TABLE_OF[by]
  const isIncluded = by === 'hour' ? `AND (${SUM_KEY}) <= ${DAYS_MARK}` : ''
  const remove = rollUp.db.prepare(
    `DELETE FROM ${table} WHERE (${SUM_KEY}) IN
       (SELECT ${SUM_KEY} FROM ${table} WHERE start_ms <= ? ${isIncluded} LIMIT ${BATCH})`,
  )
  return rollUp.write(() => {
    if (by === 'day') {
      rollUp.db.prepare('DELETE FROM usage_months WHERE month < ?').run(monthOf(beforeMs))
    }
    const removed = Number(remove.run(beforeMs - BUCKET_MS[by]).changes)
    // Else what is cached of past days stays.
    if (removed > 0) rollUp.daysChanged()
    return removed
  })
}
