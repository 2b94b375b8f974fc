/**
 * Writes a batch of entries to the archive and reads it back. A batch that is written again has the same rows
 * and the same token, so it changes nothing; a row that the database refuses is left out and kept in a file.
 */
import { DAY_MS } from '../../base/time-units.js'
import type { ArchiveConfig } from '../../config/config.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { isErased, type ArchiveProgress, type DeclaredBatch } from '../archive-feed.js'
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { rowsOfEntries, textIn } from './columns.js'
import { MOST_IDS } from './read-entries.js'

/** Parts at the same time: one is read while the server stores others. */
const LANES = 3

interface WriterParts {
  readonly storeId: string
  readonly engine: ArchiveEngine
  readonly config: Pick<ArchiveConfig, 'keepDays'>
  readonly nowMs: () => number
  /** An entry that the archive refuses. */
  readonly refused: (entry: LedgerEntry, reason: string) => void
}

/** What a batch needs of the process that writes it. */
interface BatchParts {
  readonly number: number
  readonly batch: DeclaredBatch
  readonly progress: ArchiveProgress
  /** Rejects if another process leads. */
  readonly leads: () => Promise<void>
  /** The server drops a repeated insert with the same token. Default: the batch's. */
  readonly token?: string
}

/** A pass over a batch. */
interface Target extends BatchParts {
  readonly token: string
  readonly found: Found
}

/** What a pass has found and written. */
interface Found {
  rows: number
  isLate: boolean
  repeated: number
  /** Entries that the archive has to have and that no reply proved, and their cost. */
  readonly unproved: Pick<LedgerEntry, 'requestId' | 'atMs'>[]
  cost: bigint
}

/** The result of writing a batch. */
export interface WrittenBatch {
  /** The number of its entries that are in the archive now. */
  readonly rows: number
  /** Whether one is of an hour whose sums have moved. */
  readonly isLate: boolean
  /** The number of those that it had from an earlier batch. */
  readonly repeated: number
  /** The number of those that it refused. */
  readonly dropped: number
}

/** Writes the entries of one store. */
export class BatchWriter {
  private readonly parts: WriterParts
  /** Entries of the batch that the archive refused. */
  private dropped = new Set<string>()

  constructor(parts: WriterParts) {
    this.parts = parts
  }

  /** Rejects with `ArchiveFailure`; the batch may have been written in part. */
  async write(own: BatchParts): Promise<WrittenBatch> {
    const { storeId, nowMs } = this.parts
    const token = own.token ?? `${storeId}/e/${own.number}`
    this.dropped = new Set()
    let found = await this.pass(own, token)
    if (!(await this.isThere(own, found))) {
      // The server may have dropped a repeated block whose rows are gone since: a new token writes them.
      found = await this.pass(own, `${token}/${nowMs()}`)
      if (!(await this.isThere(own, found))) {
        throw new ArchiveFailure('refused', `the archive lacks entries of a batch after it was written`)
      }
    }
    const { rows, isLate, repeated } = found
    return { rows, isLate, repeated, dropped: this.dropped.size }
  }

  private async isThere({ number }: BatchParts, { unproved, cost }: Found): Promise<boolean> {
    if (unproved.length === 0) return true
    const there = await this.parts.engine.countBatch(number, unproved)
    return there.count >= unproved.length && there.cost >= cost
  }

  /** Writes all parts of a batch. */
  private async pass(own: BatchParts, token: string): Promise<Found> {
    const found: Found = { rows: 0, isLate: false, repeated: 0, unproved: [], cost: 0n }
    const parts = own.batch.parts()
    let count = 0
    const writeParts = async (): Promise<void> => {
      for (let read = await parts.next(); read.done !== true; read = await parts.next()) {
        await this.writePart({ ...own, found, token: `${token}/${count++}` }, read.value)
      }
    }
    const lane = async (): Promise<void> => {
      try {
        await writeParts()
      } catch (error) {
        // The others read no further part.
        await parts.return(undefined)
        throw error
      }
    }
    const lanes = Array.from({ length: LANES }, lane)
    // After a failure no statement of the batch may still run.
    await Promise.allSettled(lanes)
    await Promise.all(lanes)
    return found
  }

  private async writePart(target: Target, entries: readonly LedgerEntry[]): Promise<void> {
    const { engine } = this.parts
    const { number, batch, progress, found, leads } = target
    const unknown = entries.filter(({ requestId }) => !batch.corrected.has(requestId))
    const repeated = await repeatedIds(engine, number, unknown, progress)
    found.repeated += repeated.size
    const kept = entries.filter((entry) => {
      const { requestId } = entry
      return !isErased(entry, progress) && !repeated.has(requestId) && !this.dropped.has(requestId)
    })
    if (kept.length === 0) return
    await leads()
    await this.insert(target, kept)
  }

  /** Inserts entries: halves are tried until a refused one is alone. */
  private async insert(target: Target, entries: readonly LedgerEntry[]): Promise<void> {
    const { number, batch, token } = target
    const { engine, refused } = this.parts
    try {
      const rows = rowsOfEntries(entries, ({ requestId }) => {
        return { version: batch.corrected.has(requestId) ? 2 : 1, batch: number }
      })
      this.count(target, entries, await engine.insert('entries', rows, token))
    } catch (error) {
      if (!(error instanceof ArchiveFailure) || error.kind !== 'refused') throw error
      const [entry] = entries
      if (entries.length === 1 && entry !== undefined) {
        refused(entry, error.message)
        this.dropped.add(entry.requestId)
        return
      }
      const middle = Math.ceil(entries.length / 2)
      await this.insert({ ...target, token: `${token}/a` }, entries.slice(0, middle))
      await this.insert({ ...target, token: `${token}/b` }, entries.slice(middle))
    }
  }

  /** Counts entries that were inserted. */
  private count({ found, progress }: Target, entries: readonly LedgerEntry[], isProved: boolean): void {
    const { config, nowMs } = this.parts
    const { sumsFromMs, sumsToMs } = progress
    const keptFromMs = nowMs() - config.keepDays * DAY_MS
    found.rows += entries.length
    found.isLate ||= entries.some(({ atMs }) => atMs >= sumsFromMs && atMs < sumsToMs)
    if (isProved) return
    for (const { requestId, atMs, costNanoUsd } of entries) {
      if (atMs <= keptFromMs) continue
      found.unproved.push({ requestId, atMs })
      found.cost += BigInt(Math.round(costNanoUsd ?? 0))
    }
  }
}

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
