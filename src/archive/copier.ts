/**
 * Moves entries and sums from the store to the archive. One process of all gateways of the store is the
 * leader, by a lease. Each step is declared in the store, written, read back and confirmed, so that a step
 * that is repeated after a crash changes nothing. A statement ends on the server before the lease that it was
 * started with, so no statement of a former leader can take effect.
 */
import type { ArchiveConfig } from '../config/config.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { JsonObject } from '../base/json.js'
import {
  isErased,
  NO_PROGRESS,
  type ArchiveLeader,
  type ArchiveProgress,
  type SealedHours,
} from '../store/archive-feed.js'
import type { Store } from '../store/store.js'
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { numberIn, rowOfEntry, textIn } from './columns.js'
import { inspectArchive, valuesIn } from './inspect-archive.js'
import {
  cellsOfEntries,
  differenceOf,
  figureIn,
  sealedInArchive,
  totalsOf,
  type CellRow,
} from './seal-hours.js'

/** How long the leader leads without renewing. */
export const LEASE_MS = 60_000
const RENEW_MS = 15_000
/** Entries of a batch: each insert is a part that ClickHouse has to merge. */
const BATCH_ENTRIES = 5_000
/** A smaller batch is sent after this time. */
const BATCH_MS = 5_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Hours that one transfer of sums has. */
const MOST_HOURS = 24
/** Entries leave the store in slices of time. */
const LEAST_SLICE_MS = 10_000
/** Names in Redis have the time of an entry about exactly. */
const NEAR_MS = 1_000
/** Sums that differ from the entries are read again, because a request may have ended in between. */
const MOST_READS = 10
const SEAL_MS = 5_000
const BOUND_MS = 3_600_000

/** What a copier has done since its start. */
export interface CopyCounts {
  readonly written: number
  readonly late: number
  readonly dropped: number
  readonly repeated: number
}

interface CopierParts {
  readonly store: Pick<Store, 'id' | 'ledger'>
  readonly engine: ArchiveEngine
  readonly config: Pick<ArchiveConfig, 'hotHours' | 'keepDays'>
  readonly leader: ArchiveLeader
  readonly nowMs?: () => number
  /** An entry that the archive refuses. */
  readonly refused: (entry: LedgerEntry, reason: string) => void
  readonly warn: (message: string) => void
  /** The tables of another store are taken over. */
  readonly accepts?: boolean
}

/** Moves the entries of one store. */
export class ArchiveCopier {
  private readonly parts: CopierParts
  private readonly nowMs: () => number
  private leasedAtMs = Number.NEGATIVE_INFINITY
  private boundAtMs = Number.NEGATIVE_INFINITY
  private copiedAtMs = Number.NEGATIVE_INFINITY
  private sealedAtMs = Number.NEGATIVE_INFINITY
  private reads = 0
  private written = 0
  private late = 0
  private dropped = 0
  private repeated = 0

  constructor(parts: CopierParts) {
    this.parts = parts
    this.nowMs = parts.nowMs ?? Date.now
  }

  get counts(): CopyCounts {
    const { written, late, dropped, repeated } = this
    return { written, late, dropped, repeated }
  }

  /**
   * Does what is due, and returns whether there may be more to do at once; null: another process leads.
   * Rejects with `ArchiveFailure` or as the store.
   */
  async step(): Promise<boolean | null> {
    if (!(await this.leads())) return null
    const progress = await this.bound()
    if (progress === null) return null
    if (progress.late !== null) return this.sealLate(progress, progress.late)
    if (progress.sealing !== null) return this.finishSeal(progress, progress.sealing)
    const copied = await this.copyBatch(progress)
    if (copied !== false) return copied
    if ((await this.sealHours(progress)) === true) return true
    return this.removeCopied(progress)
  }

  /** Ends the lead. */
  async close(): Promise<void> {
    await this.parts.store.ledger.archive.resign(this.parts.leader.id)
  }

  /** Whether this process leads; renews its lease. */
  private async leads(): Promise<boolean> {
    const { store, leader } = this.parts
    const atMs = performance.now()
    if (atMs - this.leasedAtMs < RENEW_MS) return true
    const holder = await store.ledger.archive.lead(leader, LEASE_MS)
    if (holder.id !== leader.id) {
      this.leasedAtMs = Number.NEGATIVE_INFINITY
      this.boundAtMs = Number.NEGATIVE_INFINITY
      return false
    }
    this.leasedAtMs = atMs
    return true
  }

  /** The progress of the store, after the tables were found to be its own. */
  private async bound(): Promise<ArchiveProgress | null> {
    const { store, engine, accepts = false } = this.parts
    const feed = store.ledger.archive
    const known = await feed.progress()
    if (known !== null && performance.now() - this.boundAtMs < BOUND_MS) return known
    const { findings } = await inspectArchive(engine, accepts ? null : store.id)
    const finding = findings.find(({ kind }) => kind !== 'columns')
    if (finding !== undefined) {
      throw new ArchiveFailure(finding.kind === 'away' ? 'away' : 'missing', finding.message)
    }
    await engine.prepare([])
    const values = await valuesIn(engine)
    if (values.get('store') !== store.id) await engine.put({ store: store.id }, this.nowMs())
    await feed.begin()
    const progress = known ?? progressOf(values)
    if (known === null && !(await this.save(progress))) return null
    this.boundAtMs = performance.now()
    return progress
  }

  /** Copies the next batch; false if there is none yet. */
  private async copyBatch(progress: ArchiveProgress): Promise<boolean | null> {
    const { store, engine } = this.parts
    const batch = progress.confirmed + 1
    const entries = await this.nextEntries(batch)
    if (entries === null) return false
    const repeated = await repeatedIds(engine, batch, entries, progress)
    const kept = entries.filter((entry) => !isErased(entry, progress) && !repeated.has(entry.requestId))
    const rows = kept.map((entry) => ({ ...rowOfEntry(entry), version: 1, batch }))
    if (rows.length > 0) await this.write(rows, kept, `${store.id}/e/${batch}`)
    const isLate = kept.some(({ atMs }) => atMs >= progress.sumsFromMs && atMs < progress.sumsToMs)
    const repeatedRows = progress.repeatedRows + repeated.size
    const next = { ...progress, confirmed: batch, late: isLate ? batch : null, repeatedRows }
    if (!(await this.saveNext(next))) return null
    this.written += rows.length
    this.repeated += repeated.size
    await engine.put({ confirmed: String(batch) }, batch)
    this.copiedAtMs = this.nowMs()
    return true
  }

  /** The entries of a batch that is full, or was declared or not sent for long; null if there are none. */
  private async nextEntries(batch: number): Promise<readonly LedgerEntry[] | null> {
    const feed = this.parts.store.ledger.archive
    if (this.nowMs() - this.copiedAtMs < BATCH_MS && (await feed.waiting()).rows < BATCH_ENTRIES) return null
    const entries = await feed.declare(batch, BATCH_ENTRIES)
    if (entries.length === 0) {
      this.copiedAtMs = this.nowMs()
      return null
    }
    return entries
  }

  /** Writes rows and reads them back; a row that the archive refuses is left out. */
  private async write(
    rows: readonly JsonObject[],
    entries: readonly LedgerEntry[],
    token: string,
  ): Promise<void> {
    const { engine } = this.parts
    const accepted = await this.insert(rows, entries, token)
    const kept = accepted.filter(
      ({ at }) => this.nowMs() - Date.parse(`${typeof at === 'string' ? at : ''}Z`) < this.keepMs,
    )
    const costs = kept.map(({ cost_nano_usd: cost }) =>
      BigInt(typeof cost === 'number' ? Math.round(cost) : 0),
    )
    const batch = Number(rows[0]?.['batch'])
    const wanted = { count: kept.length, cost: costs.reduce((sum, cost) => sum + cost, 0n) }
    const found = kept.length === 0 ? wanted : await engine.countBatch(batch, kept)
    if (found.count >= wanted.count && found.cost >= wanted.cost) return
    // The server may have dropped a repeated block whose rows are gone since: a new token writes them again.
    await this.insert(accepted, entries, `${token}/${this.nowMs()}`)
    const again = await engine.countBatch(batch, kept)
    if (again.count >= wanted.count && again.cost >= wanted.cost) return
    throw new ArchiveFailure(
      'refused',
      `the archive has ${again.count} of ${wanted.count} entries of a batch after it was written`,
    )
  }

  private get keepMs(): number {
    return this.parts.config.keepDays * DAY_MS
  }

  /** The rows that were inserted: halves are tried until a refused row is alone. */
  private async insert(
    rows: readonly JsonObject[],
    entries: readonly LedgerEntry[],
    token: string,
  ): Promise<readonly JsonObject[]> {
    try {
      await this.parts.engine.insert('entries', rows, token)
      return rows
    } catch (error) {
      if (!(error instanceof ArchiveFailure) || error.kind !== 'refused') throw error
      if (rows.length === 1) {
        const [entry] = entries
        if (entry !== undefined) this.parts.refused(entry, error.message)
        this.dropped += 1
        return []
      }
      const middle = Math.ceil(rows.length / 2)
      const first = await this.insert(rows.slice(0, middle), entries.slice(0, middle), `${token}/a`)
      return [...first, ...(await this.insert(rows.slice(middle), entries.slice(middle), `${token}/b`))]
    }
  }

  /** Begins a transfer of the sums of hours that are due; false if there are none. */
  private async sealHours(progress: ArchiveProgress): Promise<boolean | null> {
    const nowMs = this.nowMs()
    if (nowMs - this.sealedAtMs < SEAL_MS) return false
    const dueMs = Math.floor((nowMs - this.hotMs) / HOUR_MS) * HOUR_MS
    if (progress.sumsToMs >= dueMs) return false
    const { oldestAtMs } = await this.parts.store.ledger.archive.waiting()
    const { engine } = this.parts
    const known = progress.sumsToMs > 0 ? progress.sumsToMs : await firstHour(engine)
    const fromMs = await this.nextHour(known)
    if (fromMs === null || fromMs >= dueMs) {
      this.sealedAtMs = nowMs
      // Without entries in between, these hours have no sums.
      const isEmpty = fromMs !== null || progress.sumsToMs > 0
      if (!isEmpty || (oldestAtMs ?? dueMs) < dueMs) return false
      return this.saveNext({ ...progress, sumsToMs: dueMs })
    }
    const toMs = Math.min(dueMs, fromMs + MOST_HOURS * HOUR_MS, nextMonth(fromMs))
    if (oldestAtMs !== null && oldestAtMs < toMs) {
      this.sealedAtMs = nowMs
      return false
    }
    const sealing = { seal: progress.round + 1, fromMs, toMs, confirmed: progress.confirmed }
    const sumsFromMs = progress.sumsFromMs === 0 ? fromMs : progress.sumsFromMs
    return this.saveNext({ ...progress, sumsFromMs, sumsToMs: Math.max(progress.sumsToMs, fromMs), sealing })
  }

  /** The first hour from a time on that has entries in the archive. */
  private async nextHour(fromMs: number | null): Promise<number | null> {
    return fromMs === null ? null : firstHour(this.parts.engine, fromMs)
  }

  private async finishSeal(progress: ArchiveProgress, sealing: SealedHours): Promise<boolean | null> {
    const { store, engine } = this.parts
    const { fromMs, toMs, confirmed } = sealing
    const cells = await cellsOfEntries(engine, { fromMs, toMs, batch: { upTo: confirmed } })
    const sums = await store.ledger.sums({ accountId: null, by: 'hour', fromMs, toMs: toMs - 1 })
    const rest = differenceOf(sums, cells)
    if (rest.length > 0 && this.reads < MOST_READS) {
      this.reads += 1
      // A request of these hours may have ended since; it is in a later batch, and then late.
      const { rows } = await store.ledger.archive.waiting()
      if (rows > 0) return this.copyDuringSeal(progress)
    }
    this.reads = 0
    const missing = rest.filter((cell) => figureIn(cell, 'requests') >= 0n)
    if (missing.length > 0) {
      this.parts.warn(
        `sums of ${missing.length} keys and models in the archive are of the store: entries are missing`,
      )
    }
    const written = await this.writeCells(progress, [...cells, ...missing])
    if (written !== true) return written
    const after = await store.ledger.archive.progress()
    if (after?.sealing?.seal !== sealing.seal) return true
    return this.endRound({ ...after, sumsToMs: toMs, sealing: null, round: sealing.seal })
  }

  /** Unconfirmed entries of the hours in transfer are late: they follow in a transfer of their own. */
  private async copyDuringSeal(progress: ArchiveProgress): Promise<boolean | null> {
    const { sealing } = progress
    if (sealing === null) return true
    const next = { ...progress, sealing: null }
    return this.saveNext(next)
  }

  private async sealLate(progress: ArchiveProgress, batch: number): Promise<boolean | null> {
    const { sumsFromMs, sumsToMs, round } = progress
    const cells = await cellsOfEntries(this.parts.engine, {
      ...{ fromMs: sumsFromMs, toMs: sumsToMs },
      batch: { only: batch },
    })
    for (const months of byMonth(cells)) {
      const seal = round + 1 + months.at
      const written = await this.writeSeal(seal, months.cells)
      if (!written) return this.abandon(progress, seal)
    }
    const rows = cells.reduce((sum, cell) => sum + Number(cell['requests']), 0)
    this.late += rows
    return this.endRound({
      ...progress,
      late: null,
      lateRows: progress.lateRows + rows,
      round: round + byMonth(cells).length,
    })
  }

  private async writeCells(progress: ArchiveProgress, cells: readonly CellRow[]): Promise<boolean | null> {
    const seal = progress.round + 1
    return (await this.writeSeal(seal, cells)) ? true : this.abandon(progress, seal)
  }

  /** Writes a transfer that is not in the archive yet; false if the archive has another content of it. */
  private async writeSeal(seal: number, cells: readonly CellRow[]): Promise<boolean> {
    const { engine, store } = this.parts
    const wanted = totalsOf(cells)
    const isSame = (found: typeof wanted) =>
      found.cells === wanted.cells && found.requests === wanted.requests && found.cost === wanted.cost
    const before = await sealedInArchive(engine, seal)
    if (isSame(before)) return true
    if (before.cells > 0) return false
    const rows = cells.map((cell) => ({ ...cell, seal }))
    await engine.insert('hours', rows, `${store.id}/s/${seal}`)
    if (isSame(await sealedInArchive(engine, seal))) return true
    await engine.insert('hours', rows, `${store.id}/s/${seal}/${this.nowMs()}`)
    return isSame(await sealedInArchive(engine, seal))
  }

  /** A number whose content is wrong does not count; the next one is used. */
  private async abandon(progress: ArchiveProgress, seal: number): Promise<boolean | null> {
    const { sealing } = progress
    const next = sealing === null ? null : { ...sealing, seal: seal + 1 }
    return this.endRound({
      ...progress,
      abandoned: [...progress.abandoned, seal],
      round: seal,
      sealing: next,
    })
  }

  private async endRound(next: ArchiveProgress): Promise<boolean | null> {
    const saved = await this.saveNext(next)
    if (saved !== true) return saved
    await this.parts.engine.put(
      {
        round: String(next.round),
        abandoned: next.abandoned.join(','),
        sums_from: String(next.sumsFromMs),
        sums_to: String(next.sumsToMs),
      },
      next.version + 1,
    )
    return true
  }

  /** Removes entries that the archive has and that are older than `hot_hours`. */
  private async removeCopied(progress: ArchiveProgress): Promise<boolean | null> {
    const feed = this.parts.store.ledger.archive
    const sliceMs = Math.max(LEAST_SLICE_MS, Math.min(HOUR_MS, this.hotMs / 4))
    const { oldestAtMs } = await feed.waiting()
    const untilMs = Math.min(this.nowMs() - this.hotMs, oldestAtMs ?? Infinity)
    const hotFromMs = Math.floor(untilMs / sliceMs) * sliceMs
    if (hotFromMs <= progress.hotFromMs) return false
    if (!(await this.save({ ...progress, hotFromMs, version: progress.version + 1 }))) return null
    await this.parts.engine.put({ hot_from: String(hotFromMs) }, progress.version + 1)
    await feed.remove(hotFromMs - NEAR_MS)
    return false
  }

  private get hotMs(): number {
    return this.parts.config.hotHours * HOUR_MS
  }

  private async saveNext(next: ArchiveProgress): Promise<true | null> {
    return (await this.save({ ...next, version: next.version + 1 })) ? true : null
  }

  /** False if this process does not lead any more. */
  private async save(next: ArchiveProgress): Promise<boolean> {
    const isSaved = await this.parts.store.ledger.archive.save(this.parts.leader.id, next)
    if (!isSaved) this.leasedAtMs = Number.NEGATIVE_INFINITY
    return isSaved
  }
}

/** Ids that a parameter of a statement has at most: ClickHouse takes them in the address of a request. */
const MOST_IDS = 200

/**
 * The entries of a batch that the archive has from an earlier one: an id leaves the store with its entry, so
 * the store takes an entry again that a gateway had on its disk.
 */
async function repeatedIds(
  engine: ArchiveEngine,
  batch: number,
  entries: readonly LedgerEntry[],
  { hotFromMs }: ArchiveProgress,
): Promise<ReadonlySet<string>> {
  const old = entries.filter(({ atMs }) => atMs < hotFromMs)
  const found = new Set<string>()
  for (let from = 0; from < old.length; from += MOST_IDS) {
    const some = old.slice(from, from + MOST_IDS)
    const times = some.map(({ atMs }) => atMs)
    const sql = new Sql(engine.is)
    const ids = sql.texts(some.map(({ requestId }) => requestId))
    const rows = await engine.query(
      `SELECT request_id FROM ${engine.is.entries} WHERE
         at >= ${sql.time(Math.min(...times))} AND at <= ${sql.time(Math.max(...times) + 1)}
         AND batch < ${sql.number(batch)} AND ${engine.is.isOneOf('request_id', ids)}`,
      sql.parameters,
    )
    for (const row of rows) found.add(textIn(row, 'request_id'))
  }
  return found
}

/** The progress of a store that takes over the tables: what has moved before counts. */
function progressOf(values: ReadonlyMap<string, string>): ArchiveProgress {
  const number = (name: string) => Number(values.get(name) ?? '0')
  const abandoned = (values.get('abandoned') ?? '').split(',').filter(Boolean).map(Number)
  return {
    ...NO_PROGRESS,
    ...{ version: 1, confirmed: number('confirmed'), round: number('round'), abandoned },
    ...{ hotFromMs: number('hot_from'), sumsFromMs: number('sums_from'), sumsToMs: number('sums_to') },
  }
}

/** The hour of the oldest entry in the archive from a time on; null if there is none. */
async function firstHour(engine: ArchiveEngine, fromMs = 0): Promise<number | null> {
  const { is } = engine
  const sql = new Sql(is)
  const [row] = await engine.query(
    `SELECT ${is.millis('min(at)')} AS first FROM ${is.entries.split(' ')[0] ?? ''} WHERE
       batch > 0 AND at >= ${sql.time(fromMs)}`,
    sql.parameters,
  )
  // Without rows it is NULL, or in ClickHouse 1970.
  const first = numberIn(row, 'first')
  return first === 0 ? null : Math.floor(first / HOUR_MS) * HOUR_MS
}

function nextMonth(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/** Cells by the month of their hours: an insert of one month is added whole or not at all. */
function byMonth(cells: readonly CellRow[]): { readonly at: number; readonly cells: readonly CellRow[] }[] {
  const months = new Map<string, CellRow[]>()
  for (const cell of cells) {
    const month = cell.start.slice(0, 7)
    const known = months.get(month)
    if (known === undefined) months.set(month, [cell])
    else known.push(cell)
  }
  return Array.from(months.values(), (own, at) => ({ at, cells: own }))
}
