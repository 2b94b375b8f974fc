/** Reads the ledger entries of a time that meet conditions, for everything that adds up single requests. */
import { adminTurns } from '../base/turn-queue.js'
import type { LedgerEntry } from '../ledger/entry.js'
import type { Ledger } from '../store/ledger.js'
import { matchesEntry, type EntryFilter } from '../store/usage-queries.js'

/** Selects entries. */
interface EntriesQuery {
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly filter: EntryFilter
  /** Only entries of these accounts; null or absent: of all. */
  readonly accountIds?: ReadonlySet<string> | null | undefined
}

/** Called after each batch with the numbers of entries that matched and that were read so far. */
export type OnBatch = (found: number, read: number) => Promise<void> | void

/** The entries in batches, oldest first; by default other work of the process is done between two. */
export async function* entriesIn(
  ledger: Pick<Ledger, 'export' | 'entry'>,
  { fromMs, toMs, filter, accountIds = null }: EntriesQuery,
  onBatch: OnBatch = () => adminTurns.next(),
): AsyncGenerator<readonly LedgerEntry[]> {
  const hasFilter = Object.keys(filter).length > 0
  const isMatching = (entry: LedgerEntry): boolean =>
    entry.atMs >= fromMs &&
    entry.atMs < toMs &&
    (accountIds === null || accountIds.has(entry.accountId)) &&
    (!hasFilter || matchesEntry(entry, filter))
  if (filter.requestId !== undefined) {
    const entry = await ledger.entry(filter.accountId ?? null, filter.requestId)
    if (entry !== null && isMatching(entry)) yield [entry]
    return
  }
  let [found, read] = [0, 0]
  for await (const batch of ledger.export(fromMs)) {
    const matching = batch.filter(isMatching)
    found += matching.length
    read += batch.length
    if (matching.length > 0) yield matching
    // Entries are sorted by time: all following ones are later too.
    if (batch.length > 0 && batch.every(({ atMs }) => atMs >= toMs)) return
    await onBatch(found, read)
  }
}
