/**
 * What SQLite does for the archive. Entries have numbers in the order in which they were settled; the first
 * ones, up to a number, are confirmed, and the next ones, up to another, are the declared batch.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { readSpoolLine, writeSpoolLine } from '../../../ledger/spool.js'
import {
  leaderIn,
  PART_ENTRIES,
  progressIn,
  type ArchiveFeed,
  type ArchiveLeader,
  type ArchiveProgress,
  type DeclaredBatch,
  type FedEntries,
  type WaitingEntries,
} from '../../archive-feed.js'
import type { Reservation, SettleOutcome } from '../../ledger.js'
import { unavailable } from '../../store-errors.js'
import { textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { CONFIRMED, correctedIds, entriesInTexts, fedEntries } from './waiting-entries.js'

/** The names in `meta`. `BATCH` has `NUMBER LAST`, the number of a batch and that of its last entry. */
const [PROGRESS, BATCH, LEASE] = ['archive_progress', 'archive_batch', 'archive_lease'] as const

/** The name in `meta` of the time up to which entries have left, ms since 1970. */
const REMOVED = 'archive_removed'
/** Names in `meta` of late entries, `late ID`, each with its line as the spool has it. */
const LATE = 'late '

/** Settles an entry of a request; the last argument is what the archive has of it. */
type Settle = (
  entry: LedgerEntry,
  reservation: Reservation | undefined,
  known: LedgerEntry | null,
) => Promise<SettleOutcome>

/** The feed of one store. */
export class SqliteArchiveFeed implements ArchiveFeed {
  private readonly engine: Engine
  private readonly clock: () => number
  private readonly get: Statement
  private readonly put: Statement
  private readonly last: Statement
  private readonly lateOnes: Statement
  private readonly delete: Statement
  private readonly settle: Settle

  constructor(engine: Engine, clock: () => number, settle: Settle) {
    this.engine = engine
    this.clock = clock
    this.settle = settle
    this.delete = engine.prepare('DELETE FROM meta WHERE name = ?')
    this.lateOnes = engine.prepare(
      `SELECT value FROM meta WHERE name > '${LATE}' AND name < '${LATE}~' LIMIT ?`,
    )
    this.get = engine.prepare('SELECT value FROM meta WHERE name = ?')
    this.put = engine.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)')
    this.last = engine.prepare(
      'SELECT max(seq) AS seq FROM (SELECT seq FROM ledger_entries WHERE seq > ? ORDER BY seq LIMIT ?)',
    )
  }

  async progress(): Promise<ArchiveProgress | null> {
    return this.engine.read('reading the progress of the archive', () => progressIn(this.value(PROGRESS)))
  }

  lead(leader: ArchiveLeader, ttlMs: number): Promise<ArchiveLeader> {
    return this.engine.write('leading the archive', () => {
      const known = this.holder()
      if (known !== null && known.id !== leader.id) return known
      this.put.run(LEASE, `${this.clock() + ttlMs} ${JSON.stringify(leader)}`)
      return leader
    })
  }

  async leader(): Promise<ArchiveLeader | null> {
    return this.engine.read('reading the leader of the archive', () => this.holder())
  }

  async resign(id: string): Promise<void> {
    await this.engine.write('ending the lead of the archive', () => {
      if (this.holder()?.id === id) this.put.run(LEASE, '')
    })
  }

  async begin(): Promise<void> {
    // Entries after the last confirmed one wait without being marked.
  }

  async declare(batch: number, limit: number): Promise<DeclaredBatch | null> {
    const { engine } = this
    const [from, to, ids] = await engine.write('declaring a batch', () => {
      const confirmed = Number(this.value(CONFIRMED) ?? '0')
      const end = this.declaredEnd(batch, confirmed, limit)
      return [confirmed, end, correctedIds(engine, confirmed, end)] as const
    })
    if (to === from) return null
    return {
      ...{ rows: to - from, corrected: new Set(ids) },
      async *parts() {
        for (let at = from; at < to; at += PART_ENTRIES) {
          const end = Math.min(to, at + PART_ENTRIES)
          const texts = await engine.background.run('reading a batch', 'numbered', at, end)
          yield decoded('a batch', () => entriesInTexts(texts))
        }
      },
    }
  }

  /** The number of the last entry of a batch; only inside a transaction. */
  private declaredEnd(batch: number, confirmed: number, limit: number): number {
    const [number, last] = (this.value(BATCH) ?? '').split(' ').map(Number)
    if (number === batch && last !== undefined) return last
    const next = this.last.get(confirmed, limit)?.['seq']
    if (typeof next !== 'number' && typeof next !== 'bigint') return confirmed
    this.put.run(BATCH, `${batch} ${next}`)
    return Number(next)
  }

  async save(leaderId: string, next: ArchiveProgress): Promise<boolean> {
    return this.engine.write('saving the progress of the archive', () => {
      const before = progressIn(this.value(PROGRESS))
      if (this.holder()?.id !== leaderId || (before?.version ?? 0) !== next.version - 1) return false
      const [number, last] = (this.value(BATCH) ?? '').split(' ')
      if (Number(number) <= next.confirmed && last !== undefined) this.put.run(CONFIRMED, last)
      this.put.run(PROGRESS, JSON.stringify(next))
      return true
    })
  }

  async remove(beforeMs: number): Promise<number> {
    await this.engine.write('removing entries', () => {
      if (beforeMs > this.removedBeforeMs()) this.put.run(REMOVED, String(Math.floor(beforeMs)))
    })
    await this.engine.background.run('adding up usage', 'rollUp', 0)
    for (let count = 0; ;) {
      const { engine, clock } = this
      const removed = await engine.background.run('removing entries', 'prune', 'archived', beforeMs, clock())
      if (removed === 0) return count
      count += removed
    }
  }

  nowMs(): Promise<number> {
    return Promise.resolve(this.clock())
  }

  waiting(): Promise<WaitingEntries> {
    return this.engine.background.run('counting entries', 'unarchived')
  }

  async unconfirmed(beforeMs: number): Promise<FedEntries> {
    const written = await this.engine.background.run('reading entries', 'unconfirmed', beforeMs)
    return decoded('entries', () => fedEntries(written))
  }

  /** Entries from this time on are in the store; ms since 1970, 0 without an archive. */
  removedBeforeMs(): number {
    return Number(this.value(REMOVED) ?? '0')
  }

  /** Only inside a transaction. */
  addLate(entry: LedgerEntry, reservation: Reservation | undefined): void {
    this.put.run(LATE + entry.requestId, writeSpoolLine({ row: entry, reservation }))
  }

  late(limit: number): Promise<LedgerEntry[]> {
    return this.engine.read('reading late entries', () => {
      return this.lateOnes.all(limit).map((row) => readSpoolLine(textIn(row, 'value')).row)
    })
  }

  async settleLate(entry: LedgerEntry, known: LedgerEntry | null): Promise<boolean> {
    const name = LATE + entry.requestId
    const line = await this.engine.read('reading a late entry', () => this.value(name))
    if (line === null) return false
    const outcome = await this.settle(entry, readSpoolLine(line).reservation, known)
    await this.engine.write('settling a late entry', () => void this.delete.run(name))
    return outcome !== 'already'
  }

  private value(name: string): string | null {
    const row = this.get.get(name)
    return row === undefined ? null : textIn(row, 'value')
  }

  /** The leader whose lease has not ended. */
  private holder(): ArchiveLeader | null {
    const text = this.value(LEASE) ?? ''
    const end = text.indexOf(' ')
    return end > 0 && Number(text.slice(0, end)) > this.clock() ? leaderIn(text.slice(end + 1)) : null
  }
}

function decoded<T>(what: string, decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    throw unavailable(`reading ${what} failed`, error)
  }
}
