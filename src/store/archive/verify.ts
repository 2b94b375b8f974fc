/**
 * Compares sums over entries with the cells that were counted when requests ended, hour by hour, and the
 * entries of the store with those of the archive.
 */
import { randomUUID } from 'node:crypto'
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import type { JsonObject } from '../../base/json.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { batchOf, isErased, oldestOnDisk, type ArchiveProgress } from '../archive-feed.js'
import type { Store } from '../store.js'
import { Sql, type ArchiveEngine } from './archive-engine.js'
import { DIMENSIONS, FIGURES, numberIn, textIn } from './columns.js'
import { leftOut } from './read-entries.js'
import { isCommitted } from './read-sums.js'
import { dimensionsOf, figureExpressions } from './seal-hours.js'
import { BatchWriter } from './write-batch.js'

const COMPARED = ['requests', 'tokens', 'cost_nano_usd'] as const
/** The dimensions that are named besides, if the figures differ in them alone. */
const MORE = DIMENSIONS.filter((name) => !['account_id', 'key_id', 'model'].includes(name))
/** More differences are not listed. */
const MOST_LISTED = 1_000
const AT_ONCE = 500

interface Difference extends JsonObject {
  start: string
  account_id: string
  key_id: string
  model: string
  /** `requests`, `tokens` or `cost_nano_usd`; another figure if these are equal. */
  of: string
  entries: string
  sums: string
}

/** What writes entries again. */
interface RepairParts {
  readonly writer?: BatchWriter
  /** An entry that the archive refuses. */
  readonly refused?: (entry: LedgerEntry, reason: string) => void
  /** Rejects if another process leads. */
  readonly leads?: () => Promise<void>
}

/** The result of a comparison. */
interface Verified {
  readonly hours: number
  readonly accounts: number
  readonly different: readonly Difference[]
}

/** A cell: the figures in the order of `FIGURES`. */
interface Cell {
  readonly startMs: number
  /** By the names of `DIMENSIONS`. */
  readonly of: ReadonlyMap<string, string>
  readonly entries: bigint[]
  readonly sums: bigint[]
}

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
  // Before the first transfer there is no hour, though empty ones up to `sumsToMs` count as moved.
  if (progress === null || progress.sumsFromMs === 0) return { hours: 0, accounts: 0, different }
  const first = Math.max(progress.sumsFromMs, Math.floor(fromMs / HOUR_MS) * HOUR_MS)
  const last = Math.min(progress.sumsToMs, Math.ceil(toMs / HOUR_MS) * HOUR_MS)
  for (let day = first; day < last; day += DAY_MS) {
    const range = { fromMs: day, toMs: Math.min(last, day + DAY_MS) }
    for (const cells of byKeyAndModel(await cellsOf(engine, range, progress))) {
      const [first] = cells
      if (first === undefined) continue
      const { startMs, of } = first
      accounts.add(textOf(of, 'account_id'))
      hours.add(startMs)
      different.push(...differencesIn(cells))
    }
  }
  different.splice(MOST_LISTED)
  return { hours: hours.size, accounts: accounts.size, different }
}

interface Range {
  readonly fromMs: number
  readonly toMs: number
}

/** The cells of a range, with what the entries and the sums have. */
async function cellsOf(engine: ArchiveEngine, range: Range, progress: ArchiveProgress): Promise<Cell[]> {
  const cells = new Map<string, Cell>()
  for (const of of ['entries', 'sums'] as const) {
    const read = of === 'entries' ? readEntries : readSums
    for (const row of await read(engine, range, progress)) {
      const values = DIMENSIONS.map((name) => textIn(row, `d_${name}`))
      const startMs = numberIn(row, 'start_ms')
      const name = JSON.stringify([startMs, ...values])
      const known: Cell = cells.get(name) ?? {
        ...{ startMs, of: new Map(DIMENSIONS.map((dimension, at) => [dimension, values[at] ?? ''])) },
        ...{ entries: [], sums: [] },
      }
      known[of].push(...textIn(row, 'figures').split(',').map(BigInt))
      cells.set(name, known)
    }
  }
  return [...cells.values()]
}

function readEntries(engine: ArchiveEngine, { fromMs, toMs }: Range, progress: ArchiveProgress) {
  const { is } = engine
  const sql = new Sql(is)
  const conditions = [
    `at >= ${sql.time(fromMs)}`,
    `at < ${sql.time(toMs)}`,
    `batch <= ${sql.number(progress.confirmed)}`,
    ...leftOut(sql, progress.erased),
  ]
  return engine.query(
    `SELECT ${is.millis(is.hourOf('at'))} AS start_ms, ${dimensionsOf(is)},
       ${is.numbersText(figureExpressions(is))} AS figures
     FROM ${is.entries} WHERE ${conditions.join(' AND ')} GROUP BY 1, ${DIMENSIONS.map((_, at) => at + 2).join(', ')}`,
    sql.parameters,
  )
}

/** Sums of erased accounts stay, and are not compared. */
function readSums(engine: ArchiveEngine, { fromMs, toMs }: Range, progress: ArchiveProgress) {
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
  return engine.query(
    `SELECT ${is.millis('start')} AS start_ms, ${DIMENSIONS.map((name) => `${name} AS d_${name}`).join(', ')},
       ${is.numbersText(FIGURES.map((name) => `sum(${name})`))} AS figures
     FROM ${is.hours} WHERE ${conditions.join(' AND ')} GROUP BY 1, ${DIMENSIONS.map((_, at) => at + 2).join(', ')}`,
    sql.parameters,
  )
}

function byKeyAndModel(cells: readonly Cell[]): Iterable<readonly Cell[]> {
  const groups = new Map<string, Cell[]>()
  for (const cell of cells) {
    const { startMs, of } = cell
    const name = JSON.stringify([startMs, of.get('account_id'), of.get('key_id'), of.get('model')])
    const known = groups.get(name)
    if (known === undefined) groups.set(name, [cell])
    else known.push(cell)
  }
  return groups.values()
}

/** The differences of an hour, a key and a model: of the totals, else of each cell, else of more figures. */
function differencesIn(cells: readonly Cell[]): Difference[] {
  const all = differencesOf(cells, COMPARED, [])
  if (all.length > 0) return all
  const each = cells.flatMap((cell) => differencesOf([cell], COMPARED, MORE))
  return each.length > 0 ? each : differencesOf(cells, FIGURES, [])
}

function differencesOf(
  cells: readonly Cell[],
  figures: readonly Compared[],
  named: readonly string[],
): Difference[] {
  const [first] = cells
  if (first === undefined) return []
  const { startMs, of } = first
  return figures.flatMap((figure): Difference[] => {
    const [entries, sums] = [totalOf(cells, 'entries', figure), totalOf(cells, 'sums', figure)]
    if (entries === sums) return []
    const difference = {
      ...{ start: new Date(startMs).toISOString(), account_id: textOf(of, 'account_id') },
      ...{ key_id: textOf(of, 'key_id'), model: textOf(of, 'model'), of: figure },
      ...{ entries: String(entries), sums: String(sums) },
    }
    return [{ ...difference, ...Object.fromEntries(named.map((name) => [name, textOf(of, name)])) }]
  })
}

type Compared = (typeof COMPARED)[number] | (typeof FIGURES)[number]

function totalOf(cells: readonly Cell[], of: 'entries' | 'sums', figure: Compared): bigint {
  const parts = figure === 'tokens' ? (['input_tokens', 'output_tokens'] as const) : [figure]
  let total = 0n
  for (const cell of cells) for (const part of parts) total += cell[of][FIGURES.indexOf(part)] ?? 0n
  return total
}

function textOf(of: Cell['of'], name: string): string {
  return of.get(name) ?? ''
}

/** Writes entries again that the store has and the archive lacks; their number. Sums do not change. */
export async function repairEntries(
  { id, ledger }: Pick<Store, 'id' | 'ledger'>,
  engine: ArchiveEngine,
  fromMs: number,
  toMs: number,
  by: RepairParts = {},
): Promise<number> {
  const progress = await ledger.archive.progress()
  if (progress === null) return 0
  const { refused = () => undefined, leads = () => Promise.resolve() } = by
  const config = { keepDays: Infinity }
  const writer = by.writer ?? new BatchWriter({ storeId: id, engine, config, nowMs: Date.now, refused })
  let repaired = 0
  for await (const entries of missingEntries({ ledger }, engine, fromMs, toMs)) {
    await leads()
    if (entries.length === 0) continue
    const batch = batchOf({ entries, corrected: new Set() })
    const token = `${id}/r/${randomUUID()}`
    repaired += (await writer.write({ number: progress.confirmed, batch, progress, leads, token })).rows
  }
  return repaired
}

/** Entries that the store has, that do not wait and that the archive lacks; parts may be empty. */
export async function* missingEntries(
  { ledger }: Pick<Store, 'ledger'>,
  engine: ArchiveEngine,
  fromMs: number,
  toMs: number,
): AsyncGenerator<readonly LedgerEntry[]> {
  const progress = await ledger.archive.progress()
  if (progress === null) return
  const waiting = await ledger.archive.waiting()
  // Those that wait, or are in files, are written by the gateway.
  const untilMs = Math.min(toMs, waiting.oldestAtMs ?? Infinity, oldestOnDisk(progress) ?? Infinity)
  for await (const entries of ledger.export(fromMs)) {
    const own = entries.filter(
      (entry) => entry.atMs >= fromMs && entry.atMs < untilMs && !isErased(entry, progress),
    )
    for (let at = 0; at < own.length; at += AT_ONCE) {
      const missing = await missingOf(engine, own.slice(at, at + AT_ONCE))
      yield missing.length === 0 ? missing : await confirmedOf(ledger, engine, missing)
    }
  }
}

/** Missing entries without those that arrived in the meantime. */
async function confirmedOf(
  { archive }: Store['ledger'],
  engine: ArchiveEngine,
  missing: readonly LedgerEntry[],
): Promise<readonly LedgerEntry[]> {
  const { entries } = await archive.unconfirmed(Math.max(...missing.map(({ atMs }) => atMs)) + 1)
  const waiting = new Set(entries.map(({ requestId }) => requestId))
  const confirmed = missing.filter(({ requestId }) => !waiting.has(requestId))
  return confirmed.length === 0 ? confirmed : missingOf(engine, confirmed)
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
