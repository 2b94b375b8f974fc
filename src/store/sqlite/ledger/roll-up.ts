/**
 * Sums of hours and days, kept up by SQL: entries behind the last counted one (`counted_seq`) are added a
 * batch at a time, in the transaction that moves the mark. Any process counts what all have written.
 */
import type { UsageSum } from '../../ledger.js'
import { numberIn, type Row, type Statement, type Value } from '../driver.js'
import type { Engine } from '../engine.js'
import { BUCKET_MS, COUNTER_COLUMNS, COUNTERS, MOST, TABLE_OF, type Bucket } from './sums.js'

const KEY_COLUMNS = 'start_ms, account_id, key_id, model, last_at_ms'

/** Entries counted in one step, of an eighth of those that wait: half a millisecond, and under load 5 ms. */
const LEAST_COUNTED = 50
const MOST_COUNTED = 500
/** Rows removed in one step. */
const BATCH = 200
/** How long entries may wait to be counted when nobody asks for sums. */
const EVERY_MS = 1_000
/** Adds the entries of a range of `seq` to a table: by key and model, or by model for all accounts. */
function countInto(by: Bucket, whose: 'key' | 'all'): string {
  const owner = whose === 'key' ? 'account_id AS a, key_id AS k' : "'' AS a, '' AS k"
  const added = COUNTERS.map(([, expression]) => expression).join(', ')
  const updates = COUNTER_COLUMNS.map(
    (column) => `${column} = min(${MOST}, ${column} + excluded.${column})`,
  )
  return `INSERT INTO ${TABLE_OF[by]} (${KEY_COLUMNS}, ${COUNTER_COLUMNS.join(', ')})
    SELECT at_ms / ${BUCKET_MS[by]} * ${BUCKET_MS[by]} AS s, ${owner}, model, max(at_ms), ${added}
    FROM ledger_entries WHERE seq > ? AND seq <= ? GROUP BY s, a, k, model
    ON CONFLICT DO UPDATE SET last_at_ms = max(last_at_ms, excluded.last_at_ms), ${updates.join(', ')}`
}

/** The sums of one store, as one process keeps them up. */
export class RollUp {
  private readonly engine: Engine
  private readonly counts: readonly Statement[]
  private readonly mark: Statement
  private readonly end: Statement
  private readonly move: Statement
  private timer: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(engine: Engine) {
    this.engine = engine
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
      // What fails now is counted with the next entry, or when somebody asks.
      this.catchUp().catch(() => undefined)
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

  /** See `Ledger.putSums`. */
  async put(
    by: Bucket,
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    const table = TABLE_OF[by]
    const columns = COUNTER_COLUMNS.join(', ')
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

  /** Removes the buckets of which all is earlier; how many rows. */
  pruneSums(by: Bucket, beforeMs: number): Promise<number> {
    const table = TABLE_OF[by]
    const remove = this.engine.prepare(
      `DELETE FROM ${table} WHERE (start_ms, account_id, key_id, model) IN
       (SELECT start_ms, account_id, key_id, model FROM ${table} WHERE start_ms <= ? LIMIT ${BATCH})`,
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
