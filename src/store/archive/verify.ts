/**
 * Compares sums over entries with the cells that were counted when requests ended, hour by hour, and the
 * entries of the store with those of the archive.
 */
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import { arrayOf, type JsonObject } from '../../base/json.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { ArchiveProgress } from '../archive-feed.js'
import type { Store } from '../store.js'
import { Sql, type ArchiveEngine } from './archive-engine.js'
import { numberIn, rowsOfEntries, textIn, type ArchiveRow } from './columns.js'
import { leftOut } from './read-entries.js'
import { isCommitted } from './read-sums.js'

const COMPARED = ['requests', 'tokens', 'cost_nano_usd'] as const
/** More differences are not listed. */
const MOST_LISTED = 1_000
const AT_ONCE = 500

interface Difference extends JsonObject {
  start: string
  account_id: string
  key_id: string
  model: string
  of: (typeof COMPARED)[number]
  entries: string
  sums: string
}

/** The result of a comparison. */
interface Verified {
  readonly hours: number
  readonly accounts: number
  readonly different: readonly Difference[]
}

type Figures = Readonly<Record<(typeof COMPARED)[number], string>>

/** Compares the hours whose sums have moved. */
export async function verifyHours(
  { ledger }: Pick<Store, 'ledger'>,
  engine: ArchiveEngine,
  fromMs: number,
  toMs: number,
): Promise<Verified> {
  const progress = await ledger.archive.progress()
  const different: Difference[] = []
  const accounts = new Set<string>()
  const hours = new Set<number>()
  if (progress === null || progress.sumsToMs === 0) return { hours: 0, accounts: 0, different }
  const first = Math.max(progress.sumsFromMs, Math.floor(fromMs / HOUR_MS) * HOUR_MS)
  const last = Math.min(progress.sumsToMs, Math.ceil(toMs / HOUR_MS) * HOUR_MS)
  for (let day = first; day < last; day += DAY_MS) {
    const range = { fromMs: day, toMs: Math.min(last, day + DAY_MS) }
    const [entries, sums] = [
      await figuresOfEntries(engine, range, progress),
      await figuresOfSums(engine, range, progress),
    ]
    for (const name of new Set([...entries.keys(), ...sums.keys()])) {
      const [startMs, account, key, model] = partsOf(name)
      accounts.add(account)
      hours.add(startMs)
      for (const of of COMPARED) {
        const [counted, summed] = [entries.get(name)?.[of] ?? '0', sums.get(name)?.[of] ?? '0']
        if (counted === summed || different.length >= MOST_LISTED) continue
        const start = new Date(startMs).toISOString()
        different.push({ start, account_id: account, key_id: key, model, of, entries: counted, sums: summed })
      }
    }
  }
  return { hours: hours.size, accounts: accounts.size, different }
}

interface Range {
  readonly fromMs: number
  readonly toMs: number
}

async function figuresOfEntries(engine: ArchiveEngine, { fromMs, toMs }: Range, progress: ArchiveProgress) {
  const { is } = engine
  const sql = new Sql(is)
  const conditions = [
    `at >= ${sql.time(fromMs)}`,
    `at < ${sql.time(toMs)}`,
    `batch <= ${sql.number(progress.confirmed)}`,
  ]
  const rows = await engine.query(
    `SELECT ${is.millis(is.hourOf('at'))} AS start_ms, account_id AS d_account, key_id AS d_key, model AS d_model,
       count(*) AS f_requests, coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0) AS f_tokens,
       coalesce(sum(cost_nano_usd), 0) AS f_cost_nano_usd
     FROM ${is.entries} WHERE ${[...conditions, ...leftOut(sql, progress.erased)].join(' AND ')} GROUP BY 1, 2, 3, 4`,
    sql.parameters,
  )
  return byName(rows)
}

/** Sums of erased accounts stay, and are not compared. */
async function figuresOfSums(engine: ArchiveEngine, { fromMs, toMs }: Range, progress: ArchiveProgress) {
  const { is } = engine
  const sql = new Sql(is)
  const conditions = [
    `start >= ${sql.time(fromMs)}`,
    `start < ${sql.time(toMs)}`,
    ...isCommitted(sql, progress),
    ...progress.erased.map(({ accountId, untilMs }) => {
      return `NOT (account_id = ${sql.text(accountId)} AND start < ${sql.time(untilMs)})`
    }),
  ]
  const rows = await engine.query(
    `SELECT ${is.millis('start')} AS start_ms, account_id AS d_account, key_id AS d_key, model AS d_model,
       sum(requests) AS f_requests, sum(input_tokens + output_tokens) AS f_tokens, sum(cost_nano_usd) AS f_cost_nano_usd
     FROM ${is.hours} WHERE ${conditions.join(' AND ')} GROUP BY 1, 2, 3, 4`,
    sql.parameters,
  )
  return byName(rows)
}

function byName(rows: readonly ArchiveRow[]): Map<string, Figures> {
  return new Map(
    rows.map((row) => {
      const name = JSON.stringify([
        numberIn(row, 'start_ms'),
        ...['account', 'key', 'model'].map((part) => textIn(row, `d_${part}`)),
      ])
      const figure = (of: string) => BigInt(textIn(row, `f_${of}`) || '0').toString()
      return [
        name,
        { requests: figure('requests'), tokens: figure('tokens'), cost_nano_usd: figure('cost_nano_usd') },
      ]
    }),
  )
}

function partsOf(name: string): [startMs: number, account: string, key: string, model: string] {
  const value: unknown = JSON.parse(name)
  const [startMs, account, key, model] = arrayOf(value)
  const text = (part: unknown) => (typeof part === 'string' ? part : '')
  return [Number(startMs), text(account), text(key), text(model)]
}

/** Writes entries again that the store has and the archive lacks; their number. Sums do not change. */
export async function repairEntries(
  { id, ledger }: Pick<Store, 'id' | 'ledger'>,
  engine: ArchiveEngine,
  fromMs: number,
  toMs: number,
): Promise<number> {
  const progress = await ledger.archive.progress()
  if (progress === null) return 0
  const waiting = await ledger.archive.waiting()
  let repaired = 0
  const write = async (entries: readonly LedgerEntry[]): Promise<void> => {
    const missing = await missingOf(engine, entries)
    if (missing.length === 0) return
    const rows = rowsOfEntries(missing, () => ({ version: 1, batch: progress.confirmed }))
    await engine.insert('entries', rows, `${id}/r/${Date.now()}`)
    repaired += rows.length
  }
  for await (const entries of ledger.export(fromMs)) {
    // Those that wait are written by the gateway.
    const untilMs = Math.min(toMs, waiting.oldestAtMs ?? Infinity)
    const own = entries.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs)
    for (let at = 0; at < own.length; at += AT_ONCE) await write(own.slice(at, at + AT_ONCE))
  }
  return repaired
}

async function missingOf(engine: ArchiveEngine, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
  const times = entries.map(({ atMs }) => atMs)
  const sql = new Sql(engine.is)
  const rows = await engine.query(
    `SELECT request_id FROM ${engine.is.entries} WHERE
       at >= ${sql.time(Math.min(...times))} AND at <= ${sql.time(Math.max(...times) + 1)}`,
    sql.parameters,
  )
  const known = new Set(rows.map((row) => textIn(row, 'request_id')))
  return entries.filter(({ requestId }) => !known.has(requestId))
}
