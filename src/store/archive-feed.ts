/**
 * What a store does for the archive (`src/archive`): it hands out entries in batches, each once it is
 * declared unchanged, keeps which batches are confirmed, and removes entries that the archive has. Every
 * engine passes the suite in `test/archive/copier.test.ts`.
 */
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

/** How far the archive has got; changed by the leader alone. */
export interface ArchiveProgress {
  /** Increases with each change. */
  readonly version: number
  /** The last batch of entries that the archive has. */
  readonly confirmed: number
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
  /** Entries of hours whose sums had moved, and those that the archive had already, since the beginning. */
  readonly lateRows: number
  readonly repeatedRows: number
  /** Accounts whose entries were erased, and the end of the erased time. */
  readonly erased: readonly { readonly accountId: string; readonly untilMs: number }[]
}

/** The progress of a store whose archive is empty. */
export const NO_PROGRESS: ArchiveProgress = {
  version: 0,
  confirmed: 0,
  round: 0,
  abandoned: [],
  hotFromMs: 0,
  sumsFromMs: 0,
  sumsToMs: 0,
  sealing: null,
  late: null,
  lateRows: 0,
  repeatedRows: 0,
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
   * The entries of the batch after `confirmed`, at most `limit` and in any order: the same ones until it is
   * confirmed. Empty if none wait.
   */
  declare(batch: number, limit: number): Promise<LedgerEntry[]>
  /**
   * Replaces the progress, if the leader has the lease and nothing has changed it since its version was
   * `next.version - 1`; whether it did. Batches up to `next.confirmed` no longer wait.
   */
  save(leaderId: string, next: ArchiveProgress): Promise<boolean>
  /** Removes confirmed entries that arrived before a time; the number. Their sums stay. */
  remove(beforeMs: number): Promise<number>
  waiting(): Promise<WaitingEntries>
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
