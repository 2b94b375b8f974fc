/**
 * Sums of hours and days, maintained by SQL. Entries behind the last counted one (`counted_seq`) are added to their
 * hour a batch at a time, in the transaction that moves the mark; any process counts the entries of all. Hours that
 * are over are added to their day in the same way (`days_mark`), so that a request changes one table and not two.
 */
import type { UsageSum } from '../../ledger.js'
import { numberIn, textIn, type Row, type Statement, type Value } from '../driver.js'
import type { Engine } from '../engine.js'
import { BUCKET_MS, COUNTER_COLUMNS, COUNTERS, MOST, TABLE_OF, type Bucket } from './sums.js'

const KEY_COLUMNS = 'start_ms, account_id, key_id, model, last_at_ms'

/** Entries counted in one step: an eighth of those that wait, within these bounds. The largest step takes about 1 ms. */
const LEAST_COUNTED = 50
const MOST_COUNTED = 250
/** Rows of hours added to their days in one step. */
const MOST_MOVED = 200
/** Rows removed in one step. */
const BATCH = 200
/** How long entries may wait to be counted when nobody asks for sums. */
const EVERY_MS = 1_000
const UPDATES = `ON CONFLICT DO UPDATE SET last_at_ms = max(last_at_ms, excluded.last_at_ms), ${COUNTER_COLUMNS.map(
  (column) => `${column} = min(${MOST}, ${column} + excluded.${column})`,
).join(', ')}`

/**
 * Adds the entries of a range of `seq` to a table: by key and model, or by model for all accounts. Days get only
 * those whose hour they include already.
 */
function countInto(by: Bucket, whose: 'key' | 'all'): string {
  const owner = whose === 'key' ? ['account_id', 'key_id'] : ["''", "''"]
  const added = COUNTERS.map(([, expression]) => expression).join(', ')
  const hour = `at_ms / ${BUCKET_MS.hour} * ${BUCKET_MS.hour}`
  const isLate = by === 'hour' ? '' : `AND (${hour}, ${owner.join(', ')}, model) <= ${MARK}`
  return `INSERT INTO ${TABLE_OF[by]} (${KEY_COLUMNS}, ${COUNTER_COLUMNS.join(', ')})
    SELECT at_ms / ${BUCKET_MS[by]} * ${BUCKET_MS[by]} AS s, ${owner[0]} AS a, ${owner[1]} AS k, model,
      max(at_ms), ${added}
    FROM ledger_entries WHERE seq > ? AND seq <= ? ${isLate} GROUP BY s, a, k, model ${UPDATES}`
}

const PLACE = 'start_ms, account_id, key_id, model'
const MARK = `(SELECT ${PLACE} FROM days_mark)`
/** The last of the next rows of hours, behind a place and before a time. The place is bound: SQLite seeks it then. */
const NEXT_PLACE = `SELECT ${PLACE} FROM (
    SELECT ${PLACE} FROM usage_hours WHERE (${PLACE}) > (?, ?, ?, ?) AND start_ms < ?
    ORDER BY ${PLACE} LIMIT ${MOST_MOVED}
  ) ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`
/** Adds the rows of hours from one place to another to their days. */
const MOVE_HOURS = `INSERT INTO usage_days (${KEY_COLUMNS}, ${COUNTER_COLUMNS.join(', ')})
  SELECT start_ms / ${BUCKET_MS.day} * ${BUCKET_MS.day}, account_id, key_id, model, last_at_ms,
    ${COUNTER_COLUMNS.join(', ')}
  FROM usage_hours WHERE (${PLACE}) > (?, ?, ?, ?) AND (${PLACE}) <= (?, ?, ?, ?) ${UPDATES}`

/** The sums of one store, as one process keeps them up. */
export class RollUp {
  private readonly engine: Engine
  private readonly counts: readonly Statement[]
  private readonly mark: Statement
  private readonly end: Statement
  private readonly move: Statement
  private readonly daysMark: Statement
  private readonly nextPlace: Statement
  private readonly moveHours: Statement
  private readonly setMark: Statement
  private readonly nowMs: () => number
  private timer: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(engine: Engine, nowMs: () => number) {
    this.engine = engine
    this.nowMs = nowMs
    this.daysMark = engine.prepare(`SELECT ${PLACE} FROM days_mark`)
    this.nextPlace = engine.prepare(NEXT_PLACE)
    this.moveHours = engine.prepare(MOVE_HOURS)
    this.setMark = engine.prepare(
      'UPDATE days_mark SET start_ms = ?, account_id = ?, key_id = ?, model = ?',
    )
    this.counts = (['hour', 'day'] as const).flatMap((by) => [
      engine.prepare(countInto(by, 'key')),
      engine.prepare(countInto(by, 'all')),
    ])
    this.mark = engine.prepare(
      "SELECT CAST(value AS INTEGER) AS seq FROM meta WHERE name = 'counted_seq'",
    )
    this.end = engine.prepare('SELECT max(seq) AS seq FROM ledger_entries WHERE seq > ?')
    this.move = engine.prepare("UPDATE meta SET value = ? WHERE name = 'counted_seq'")
  }

  /** An entry was written: it is counted soon. */
  note(): void {
    if (this.timer !== null || this.isClosed) return
    this.timer = setTimeout(() => {
      this.timer = null
      // Entries that are not counted now are counted with the next entry, or with the next query.
      this.catchUp()
        .then(() => this.addToDays(this.nowMs() - BUCKET_MS.hour))
        .catch(() => undefined)
    }, EVERY_MS).unref()
  }

  /** Counts all that was written before, by any process. Rejects with `GatewayError(store_unavailable)`. */
  async catchUp(): Promise<void> {
    const what = 'counting usage'
    const counted = () => this.engine.readNow(what, () => seqIn(this.mark.get()))
    const from = counted()
    // What is written from now on is not waited for: under load there would always be more.
    const last = this.engine.readNow(what, () => this.end.get(from)?.['seq'])
    if (typeof last !== 'number') return
    while (counted() < last) await this.engine.write(what, () => this.step())
  }

  /** Adds the hours that began before to their days. Rejects with `GatewayError(store_unavailable)`. */
  async addToDays(startedBeforeMs: number): Promise<void> {
    const what = 'adding hours to days'
    for (let isDone = false; !isDone;) {
      isDone = await this.engine.write(what, () => {
        const mark = placeIn(this.daysMark.get())
        const next = this.nextPlace.get(...mark, startedBeforeMs)
        if (next === undefined) return true
        this.moveHours.run(...mark, ...placeIn(next))
        this.setMark.run(...placeIn(next))
        return false
      })
    }
  }

  /** See `Ledger.putSums`. Days that are put include their hours: no hour is added to them again. */
  async put(
    by: Bucket,
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    await this.addToDays(Number.MAX_SAFE_INTEGER)
    const table = TABLE_OF[by]
    const columns = COUNTER_COLUMNS.join(', ')
    const lastHour = this.engine.prepare(
      `SELECT start_ms, account_id, key_id, model FROM usage_hours
       ORDER BY start_ms DESC, account_id DESC, key_id DESC, model DESC LIMIT 1`,
    )
    const put = this.engine.prepare(
      `INSERT OR REPLACE INTO ${table} (${KEY_COLUMNS}, ${columns})
       VALUES (?, ?, ?, ?, ?, ${COUNTER_COLUMNS.map(() => '?').join(', ')})`,
    )
    // What all accounts used is that of its parts.
    const total = this.engine.prepare(
      `INSERT OR REPLACE INTO ${table} (${KEY_COLUMNS}, ${columns})
       SELECT start_ms, '', '', model, max(last_at_ms),
         ${COUNTER_COLUMNS.map((column) => `CAST(min(${MOST}, total(${column})) AS INTEGER)`).join(', ')}
       FROM ${table} WHERE start_ms = ? AND model = ? AND account_id <> '' GROUP BY start_ms, model`,
    )
    for (let at = 0; at < sums.length; at += BATCH) {
      await this.engine.write('putting sums', () => {
        for (const sum of sums.slice(at, at + BATCH)) {
          put.run(...putValues(sum, by, lastUse))
          total.run(sum.startMs, sum.model)
        }
        const last = lastHour.get()
        if (last !== undefined) this.setMark.run(...placeIn(last))
      })
    }
  }

  /** Removes entries that arrived earlier, except those that are not counted yet; how many. */
  pruneEntries(beforeMs: number): Promise<number> {
    const remove = this.engine.prepare(
      `DELETE FROM ledger_entries WHERE seq IN
       (SELECT seq FROM ledger_entries WHERE at_ms < ? AND seq <= ? ORDER BY at_ms LIMIT ${BATCH})`,
    )
    return this.inSteps(() => Number(remove.run(beforeMs, seqIn(this.mark.get())).changes))
  }

  /** Removes the buckets that ended before, except hours that their day does not include yet; how many rows. */
  pruneSums(by: Bucket, beforeMs: number): Promise<number> {
    const table = TABLE_OF[by]
    const isIncluded = by === 'hour' ? `AND (start_ms, account_id, key_id, model) <= ${MARK}` : ''
    const remove = this.engine.prepare(
      `DELETE FROM ${table} WHERE (start_ms, account_id, key_id, model) IN
       (SELECT start_ms, account_id, key_id, model FROM ${table}
        WHERE start_ms <= ? ${isIncluded} LIMIT ${BATCH})`,
    )
    return this.inSteps(() => Number(remove.run(beforeMs - BUCKET_MS[by]).changes))
  }

  /** Stops the timer. */
  close(): void {
    this.isClosed = true
    if (this.timer !== null) clearTimeout(this.timer)
  }

  /** Only inside a transaction: another process may have counted meanwhile. */
  private step(): void {
    const from = seqIn(this.mark.get())
    const last = this.end.get(from)?.['seq']
    if (typeof last !== 'number') return
    const share = Math.floor((last - from) / 8)
    const to = Math.min(last, from + Math.max(LEAST_COUNTED, Math.min(MOST_COUNTED, share)))
    for (const count of this.counts) count.run(from, to)
    this.move.run(String(to))
  }

  private async inSteps(step: () => number): Promise<number> {
    for (let count = 0; ;) {
      const done = await this.engine.write('pruning', step)
      count += done
      if (done < BATCH) return count
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
    ...COUNTER_COLUMNS.slice(10).map((_, at) => sum.firstContent[at] ?? 0),
  ]
}
