/**
 * Sums of hours and days, kept up by SQL: entries behind the last counted one (`counted_seq`) are added a
 * batch at a time, in the transaction that moves the mark. Any process counts what all have written.
 */
import { FIRST_CONTENT_BOUNDS_MS, type UsageSum } from '../../ledger.js'
import { numberIn, textIn, type Row, type Statement, type Value } from '../driver.js'
import type { Engine } from '../engine.js'

/** Entries counted in one step, of an eighth of those that wait: half a millisecond, and under load 5 ms. */
const LEAST_COUNTED = 50
const MOST_COUNTED = 500
/** Rows removed in one step. */
const BATCH = 200
/** How long entries may wait to be counted when nobody asks for sums. */
const EVERY_MS = 1_000
const DAY_MS = 86_400_000
/** The length of each kind of bucket, in ms. */
export const BUCKET_MS = { hour: 3_600_000, day: DAY_MS } as const
/** The table of each kind of bucket. */
export const TABLE_OF = { hour: 'usage_hours', day: 'usage_days' } as const
type Bucket = keyof typeof BUCKET_MS

/** Counters and what an entry adds to each; `sum`s of whole numbers, at most 2^53 - 1. */
const COUNTERS: readonly (readonly [column: string, added: string])[] = [
  ['requests', 'count(*)'],
  ['errors', "sum(outcome <> 'ok')"],
  ['input_tokens', tokens('input_tokens')],
  ['output_tokens', tokens('output_tokens')],
  ['cache_read_tokens', tokens('cache_read_tokens')],
  ['cache_write_tokens', tokens('cache_write_tokens')],
  ['reasoning_tokens', tokens('reasoning_tokens')],
  ['cost_nano_usd', tokens('cost_nano_usd')],
  ['unpriced', "sum(cost_nano_usd IS NULL AND source <> 'none')"],
  ['estimated', "sum(source = 'estimated')"],
  ...histogram(),
]
/** The columns of `COUNTERS`. */
export const COUNTER_COLUMNS = COUNTERS.map(([column]) => column)
const MOST = Number.MAX_SAFE_INTEGER
const KEY_COLUMNS = 'start_ms, account_id, key_id, model, last_at_ms'

function tokens(column: string): string {
  return `coalesce(sum(CAST(${column} AS INTEGER)), 0)`
}

/** One counter for each bound, and one above the last. */
function histogram(): [string, string][] {
  const above = (bound: number | undefined) => (bound === undefined ? '' : ` > ${bound}`)
  return [...FIRST_CONTENT_BOUNDS_MS, Number.POSITIVE_INFINITY].map((bound, at) => {
    const from = above(FIRST_CONTENT_BOUNDS_MS[at - 1])
    const parts = [
      'first_content_ms IS NOT NULL',
      ...(from === '' ? [] : [`first_content_ms${from}`]),
      ...(bound === Number.POSITIVE_INFINITY ? [] : [`first_content_ms <= ${bound}`]),
    ]
    return [`first_content_${at}`, `sum(${parts.join(' AND ')})`]
  })
}

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
    for (;;) {
      const from = this.engine.readNow('reading sums', () => seqIn(this.mark.get()))
      const to = this.engine.readNow('reading sums', () => this.end.get(from)?.['seq'])
      if (to === null || to === undefined) return
      await this.engine.write('counting usage', () => this.step())
    }
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

/** The sum in a row with all columns. */
export function sumIn(row: Row): UsageSum {
  return {
    startMs: numberIn(row, 'start_ms'),
    accountId: textIn(row, 'account_id'),
    keyId: textIn(row, 'key_id'),
    model: textIn(row, 'model'),
    requests: numberIn(row, 'requests'),
    errors: numberIn(row, 'errors'),
    inputTokens: numberIn(row, 'input_tokens'),
    outputTokens: numberIn(row, 'output_tokens'),
    cacheReadTokens: numberIn(row, 'cache_read_tokens'),
    cacheWriteTokens: numberIn(row, 'cache_write_tokens'),
    reasoningTokens: numberIn(row, 'reasoning_tokens'),
    costNanoUsd: numberIn(row, 'cost_nano_usd'),
    unpriced: numberIn(row, 'unpriced'),
    estimated: numberIn(row, 'estimated'),
    firstContent: COUNTER_COLUMNS.slice(10).map((column) => numberIn(row, column)),
  }
}
