/**
 * Writes a batch of entries to the archive and reads it back. A batch that is written again has the same rows
 * and the same token, so it changes nothing; a row that the database refuses is left out and kept in a file.
 */
import { DAY_MS } from '../../base/time-units.js'
import type { ArchiveConfig } from '../../config/config.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { isErased, type ArchiveProgress, type FedEntries } from '../archive-feed.js'
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { rowOfEntry, textIn } from './columns.js'
import { MOST_IDS } from './read-entries.js'

/** Rows of a statement: each is a part that ClickHouse has to merge. */
const PART = 5_000
/** Statements at the same time: rows are made while the server stores others. */
const LANES = 2

interface WriterParts {
  readonly storeId: string
  readonly engine: ArchiveEngine
  readonly config: Pick<ArchiveConfig, 'keepDays'>
  readonly nowMs: () => number
  /** An entry that the archive refuses. */
  readonly refused: (entry: LedgerEntry, reason: string) => void
}

/** The batch of entries that are written. */
interface Target {
  readonly batch: number
  /** Ids of those that replace an entry. */
  readonly corrected: ReadonlySet<string>
  readonly token: string
}

/** The result of writing a batch. */
export interface WrittenBatch {
  /** The entries that are in the archive now. */
  readonly entries: readonly LedgerEntry[]
  /** The number of those that it had from an earlier batch. */
  readonly repeated: number
  /** The number of those that it refused. */
  readonly dropped: number
}

/** Writes the entries of one store. */
export class BatchWriter {
  private readonly parts: WriterParts
  private dropped = 0

  constructor(parts: WriterParts) {
    this.parts = parts
  }

  /** Rejects with `ArchiveFailure`; the batch may have been written in part. */
  async write(
    batch: number,
    { entries, corrected }: FedEntries,
    progress: ArchiveProgress,
  ): Promise<WrittenBatch> {
    const { engine, storeId } = this.parts
    this.dropped = 0
    const unknown = entries.filter(({ requestId }) => !corrected.has(requestId))
    const repeated = await repeatedIds(engine, batch, unknown, progress)
    const kept = entries.filter((entry) => !isErased(entry, progress) && !repeated.has(entry.requestId))
    if (kept.length > 0) await this.writeEntries({ batch, corrected, token: `${storeId}/e/${batch}` }, kept)
    return { entries: kept, repeated: repeated.size, dropped: this.dropped }
  }

  private async writeEntries(target: Target, entries: readonly LedgerEntry[]): Promise<void> {
    const { engine, nowMs } = this.parts
    const { batch, token } = target
    const accepted = await this.insert(target, entries)
    const kept = accepted.filter(({ atMs }) => nowMs() - atMs < this.keepMs)
    const cost = kept.reduce((sum, { costNanoUsd }) => sum + BigInt(Math.round(costNanoUsd ?? 0)), 0n)
    const isThere = async (): Promise<boolean> => {
      const found = await engine.countBatch(batch, kept)
      return found.count >= kept.length && found.cost >= cost
    }
    if (kept.length === 0 || (await isThere())) return
    // The server may have dropped a repeated block whose rows are gone since: a new token writes them again.
    await this.insert({ ...target, token: `${token}/${nowMs()}` }, accepted)
    if (await isThere()) return
    throw new ArchiveFailure('refused', `the archive lacks entries of a batch after it was written`)
  }

  private get keepMs(): number {
    return this.parts.config.keepDays * DAY_MS
  }

  /** The entries that were inserted, a part of them by each statement. */
  private async insert(target: Target, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
    const inserted: LedgerEntry[][] = []
    let at = 0
    const insertParts = async (): Promise<void> => {
      while (at < entries.length) {
        const from = at
        at += PART
        const part = entries.slice(from, at)
        inserted.push(await this.insertPart({ ...target, token: `${target.token}/${from}` }, part))
      }
    }
    const lanes = Array.from({ length: LANES }, insertParts)
    // After a failure no statement of the batch may still run.
    await Promise.allSettled(lanes)
    await Promise.all(lanes)
    return inserted.flat()
  }

  /** The entries of a part that were inserted: halves are tried until a refused one is alone. */
  private async insertPart(target: Target, entries: readonly LedgerEntry[]): Promise<LedgerEntry[]> {
    const { batch, corrected, token } = target
    const { engine, refused } = this.parts
    try {
      const rows = entries.map((entry) => {
        return rowOfEntry(entry, { version: corrected.has(entry.requestId) ? 2 : 1, batch })
      })
      await engine.insert('entries', rows, token)
      return [...entries]
    } catch (error) {
      if (!(error instanceof ArchiveFailure) || error.kind !== 'refused') throw error
      const [entry] = entries
      if (entries.length === 1 && entry !== undefined) {
        refused(entry, error.message)
        this.dropped += 1
        return []
      }
      const middle = Math.ceil(entries.length / 2)
      const first = await this.insertPart({ ...target, token: `${token}/a` }, entries.slice(0, middle))
      const second = await this.insertPart({ ...target, token: `${token}/b` }, entries.slice(middle))
      return [...first, ...second]
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
