/**
 * Writes a batch of entries to the archive and reads it back. A batch that is written again has the same rows
 * and the same token, so it changes nothing; a row that the database refuses is left out and kept in a file.
 */
import type { JsonObject } from '../base/json.js'
import type { ArchiveConfig } from '../config/config.js'
import type { LedgerEntry } from '../ledger/entry.js'
import { isErased, type ArchiveProgress, type FedEntries } from '../store/archive-feed.js'
import { ArchiveFailure, Sql, type ArchiveEngine } from './archive-engine.js'
import { rowOfEntry, textIn } from './columns.js'
import { MOST_IDS } from './read-entries.js'

const DAY_MS = 86_400_000

interface WriterParts {
  readonly storeId: string
  readonly engine: ArchiveEngine
  readonly config: Pick<ArchiveConfig, 'keepDays'>
  readonly nowMs: () => number
  /** An entry that the archive refuses. */
  readonly refused: (entry: LedgerEntry, reason: string) => void
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
    const rows = kept.map((entry) => {
      return { ...rowOfEntry(entry), version: corrected.has(entry.requestId) ? 2 : 1, batch }
    })
    if (rows.length > 0) await this.writeRows(rows, kept, `${storeId}/e/${batch}`)
    return { entries: kept, repeated: repeated.size, dropped: this.dropped }
  }

  private async writeRows(
    rows: readonly JsonObject[],
    entries: readonly LedgerEntry[],
    token: string,
  ): Promise<void> {
    const { engine, nowMs } = this.parts
    const accepted = await this.insert(rows, entries, token)
    const kept = accepted.filter(
      ({ at }) => nowMs() - Date.parse(`${typeof at === 'string' ? at : ''}Z`) < this.keepMs,
    )
    const costs = kept.map(({ cost_nano_usd: cost }) =>
      BigInt(typeof cost === 'number' ? Math.round(cost) : 0),
    )
    const batch = Number(rows[0]?.['batch'])
    const wanted = { count: kept.length, cost: costs.reduce((sum, cost) => sum + cost, 0n) }
    const found = kept.length === 0 ? wanted : await engine.countBatch(batch, kept)
    if (found.count >= wanted.count && found.cost >= wanted.cost) return
    // The server may have dropped a repeated block whose rows are gone since: a new token writes them again.
    const ids = new Set(accepted.map(({ request_id: id }) => id))
    const own = entries.filter(({ requestId }) => ids.has(requestId))
    await this.insert(accepted, own, `${token}/${nowMs()}`)
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
