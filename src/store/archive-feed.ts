/**
 * What a store does for the archive (`src/archive`): it hands out entries in batches, each once it is
 * declared unchanged, keeps which batches are confirmed, and removes entries that the archive has. Every
 * engine passes the suite in `test/store/archive/copier.test.ts`.
 */
import type { JsonObject } from '../base/json.js'
import type { LedgerEntry } from '../ledger/entry.js'

/** A transfer of the sums of hours to the archive. */
export interface SealedHours {
  readonly seal: number
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** Entries of these batches are in the sums. */
  readonly confirmed: number
}

/** Batches in sequence that are in files of a gateway, and not yet in the archive. */
interface BatchesOnDisk {
  readonly gateway: string
  readonly from: number
  /** Inclusive. */
  readonly to: number
  readonly rows: number
  /** The times of the first and the last entry. */
  readonly fromMs: number
  readonly toMs: number
}

/** How far the archive has got; changed by the leader alone. */
export interface ArchiveProgress {
  /** Increases with each change. */
  readonly version: number
  /** The last batch of entries that the archive has, or a file of a gateway. */
  readonly confirmed: number
  /** Those up to `confirmed` that are in files. */
  readonly onDisk: readonly BatchesOnDisk[]
  /** The last transfer of sums that counts. */
  readonly round: number
  /** Transfers up to `round` that do not count. */
  readonly abandoned: readonly number[]
  /** The store has every entry from this time on. */
  readonly hotFromMs: number
  /** The first hour whose sums the archive has. */
  readonly sumsFromMs: number
  /** The end of the last hour whose sums the archive has. */
  readonly sumsToMs: number
  /** A transfer that has begun. */
  readonly sealing: SealedHours | null
  /** A batch with entries of hours whose sums were moved before: they are a transfer of their own. */
  readonly late: number | null
  /** The cells of entries that a batch replaces, in hours whose sums have moved: they are taken off again. */
  readonly replaced: { readonly batch: number; readonly cells: readonly JsonObject[] } | null
  /** Entries of hours whose sums had moved, and those that the archive had already, since the beginning. */
  readonly lateRows: number
  readonly repeatedRows: number
  /** Batches that an archive lacks since it was restored from a backup, and the time of its last entry. */
  readonly restored: { readonly from: number; readonly to: number; readonly sinceMs: number } | null
  /** Before this time hours may have sums whose entries the archive has lost. */
  readonly lostToMs: number
  /** Accounts whose entries were erased, and the end of the erased time. */
  readonly erased: readonly { readonly accountId: string; readonly untilMs: number }[]
}

/** The progress of a store whose archive is empty. */
export const NO_PROGRESS: ArchiveProgress = {
  version: 0,
  confirmed: 0,
  onDisk: [],
  round: 0,
  abandoned: [],
  hotFromMs: 0,
  sumsFromMs: 0,
  sumsToMs: 0,
  sealing: null,
  late: null,
  replaced: null,
  lateRows: 0,
  repeatedRows: 0,
  restored: null,
  lostToMs: 0,
  erased: [],
}

/** The process that moves entries; one of all gateways of the store. */
export interface ArchiveLeader {
  /** Random at each start. */
  readonly id: string
  readonly gateway: string
  readonly pid: number
}

/** Entries that the archive has not confirmed. */
export interface WaitingEntries {
  readonly rows: number
  readonly oldestAtMs: number | null
  /** The memory that they use, about; null for an engine on disk. */
  readonly bytes: number | null
}

/** Entries, and which of them replace one that the archive may have (their ids). */
export interface FedEntries {
  readonly entries: readonly LedgerEntry[]
  readonly corrected: ReadonlySet<string>
}

/** Entries of a part of a batch; a statement writes each. */
export const PART_ENTRIES = 5_000

/** A batch that is declared. */
export interface DeclaredBatch {
  /** At least one; some of them may have been removed since. */
  readonly rows: number
  /** The ids of entries that replace one which the archive may have. */
  readonly corrected: ReadonlySet<string>
  /** The entries in parts of at most `PART_ENTRIES`: always the same ones. A part is read by each `next`. */
  parts(): AsyncGenerator<readonly LedgerEntry[]> | Generator<readonly LedgerEntry[]>
}

/** A batch of entries that are in memory. */
export function batchOf({ entries, corrected }: FedEntries): DeclaredBatch {
  return {
    ...{ rows: entries.length, corrected },
    *parts() {
      for (let at = 0; at < entries.length; at += PART_ENTRIES) yield entries.slice(at, at + PART_ENTRIES)
    },
  }
}

/** All entries of a batch. */
export async function entriesOf(batch: DeclaredBatch): Promise<FedEntries> {
  const entries: LedgerEntry[] = []
  for await (const part of batch.parts()) for (const entry of part) entries.push(entry)
  return { entries, corrected: batch.corrected }
}

/** Methods fail as those of `Store` do. */
export interface ArchiveFeed {
  /** Null before the first `begin`. */
  progress(): Promise<ArchiveProgress | null>
  /** Takes or renews the lease of the leader for `ttlMs`; the process that has it. */
  lead(leader: ArchiveLeader, ttlMs: number): Promise<ArchiveLeader>
  leader(): Promise<ArchiveLeader | null>
  /** Ends the lease, if it is of this leader. */
  resign(id: string): Promise<void>
  /** Makes every entry of the store wait for the archive, and every later one. Idempotent. */
  begin(): Promise<void>
  /**
   * The batch after `confirmed` with at most `limit` entries in any order: the same ones until it is
   * confirmed. Null if none wait.
   */
  declare(batch: number, limit: number): Promise<DeclaredBatch | null>
  /**
   * Replaces the progress, if the leader has the lease and nothing has changed it since its version was
   * `next.version - 1`; whether it did. Batches up to `next.confirmed` no longer wait.
   */
  save(leaderId: string, next: ArchiveProgress): Promise<boolean>
  /**
   * Removes confirmed entries that arrived before a time; the number. Their sums stay. From then on a request
   * that began before this time is settled as a late one, unless its reservation or entry is there.
   */
  remove(beforeMs: number): Promise<number>
  waiting(): Promise<WaitingEntries>
  /** The store's clock, ms since 1970: by it, all gateways agree on what has left. */
  nowMs(): Promise<number>
  /** The entries before a time that the archive has not confirmed. */
  unconfirmed(beforeMs: number): Promise<FedEntries>
  /** Entries of requests that began before what has left the store: they are not settled yet. */
  late(limit: number): Promise<LedgerEntry[]>
  /**
   * Settles a late entry after the archive was searched for it; `known` is what it has, which the entry
   * replaces if it is of a lost request. False: nothing was changed by it. Idempotent.
   */
  settleLate(entry: LedgerEntry, known: LedgerEntry | null): Promise<boolean>
}

/** The progress when the next batch is on a gateway's disk. */
export function withBatchOnDisk(
  progress: ArchiveProgress,
  gateway: string,
  entries: readonly LedgerEntry[],
): ArchiveProgress {
  const { onDisk } = progress
  const batch = progress.confirmed + 1
  if (entries.length === 0) return { ...progress, confirmed: batch }
  const times = entries.map(({ atMs }) => atMs)
  const own: BatchesOnDisk = {
    ...{ gateway, from: batch, to: batch, rows: entries.length },
    ...{ fromMs: Math.min(...times), toMs: Math.max(...times) },
  }
  const last = onDisk.at(-1)
  if (last?.gateway !== gateway || last.to !== batch - 1)
    return { ...progress, confirmed: batch, onDisk: [...onDisk, own] }
  const joint = {
    ...{ gateway, from: last.from, to: batch, rows: last.rows + own.rows },
    ...{ fromMs: Math.min(last.fromMs, own.fromMs), toMs: Math.max(last.toMs, own.toMs) },
  }
  return { ...progress, confirmed: batch, onDisk: [...onDisk.slice(0, -1), joint] }
}

/** Batches on disk without one whose entries have this number; their times stay. */
export function withoutBatch(
  onDisk: readonly BatchesOnDisk[],
  batch: number,
  rows: number,
): readonly BatchesOnDisk[] {
  return onDisk.flatMap((each) => {
    if (batch < each.from || batch > each.to) return [each]
    // Batches of one gateway are sent in sequence.
    const rest = { ...each, from: batch + 1, rows: Math.max(0, each.rows - rows) }
    return rest.from > rest.to ? [] : [rest]
  })
}

/** The time of the oldest entry on a disk, at most; null if there is none. */
export function oldestOnDisk({ onDisk }: Pick<ArchiveProgress, 'onDisk'>): number | null {
  return onDisk.length === 0 ? null : Math.min(...onDisk.map(({ fromMs }) => fromMs))
}

/** Whether the entry was erased, and is still stored somewhere. */
export function isErased(
  { accountId, atMs }: Pick<LedgerEntry, 'accountId' | 'atMs'>,
  { erased }: Pick<ArchiveProgress, 'erased'>,
): boolean {
  return erased.some((each) => each.accountId === accountId && atMs < each.untilMs)
}

/** The progress in a text; null for one that is none. */
export function progressIn(text: unknown): ArchiveProgress | null {
  if (typeof text !== 'string') return null
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? { ...NO_PROGRESS, ...value } : null
}

/** The leader in a text; null for one that is none. */
export function leaderIn(text: unknown): ArchiveLeader | null {
  if (typeof text !== 'string' || text === '') return null
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) return null
  const { id, gateway, pid } = { id: '', gateway: '', pid: 0, ...value }
  return { id, gateway, pid }
}
