/** Selects ledger entries for `sluice usage`: the options of both actions, and reading with progress. */
import { matchesEntry, type EntryFilter } from '../../store/records/entry-filter.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { Store } from '../../store/store.js'
import { UsageError } from '../usage-error.js'
import { type OptionValues } from '../parse-action.js'
import type { StoreSession } from '../with-store.js'

/** The options that select entries, for `parseArgs`. */
export const FILTER_OPTIONS = {
  status: { type: 'string' },
  upstream: { type: 'string' },
  model: { type: 'string' },
  'request-id': { type: 'string' },
  key: { type: 'string' },
  account: { type: 'string' },
} as const

/** The values of these options. */
export type FilterValues = OptionValues<typeof FILTER_OPTIONS>

/** The conditions of the options. Throws `UsageError`; rejects as the store does. */
export async function filterOf(store: Store, values: FilterValues): Promise<EntryFilter> {
  const { status, upstream, model, key, account, 'request-id': requestId } = values
  return {
    ...(status === undefined ? {} : { status: statusOf(status) }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(model === undefined ? {} : { modelAsked: model }),
    ...(key === undefined ? {} : { keyId: key }),
    ...(account === undefined ? {} : { accountId: await accountIdOf(store, account) }),
    ...(requestId === undefined ? {} : { requestId }),
  }
}

function statusOf(text: string): number {
  if (!/^[1-5]\d\d$/.test(text))
    throw new UsageError(`--status must be an HTTP status, such as 429, not "${text}"`)
  return Number(text)
}

async function accountIdOf(store: Store, account: string): Promise<string> {
  if (!account.includes('@')) return account
  const found = await store.accountByEmail(account)
  if (found === null)
    throw new UsageError(
      `--account: no account has this e-mail address: 'sluice accounts list' shows all`,
    )
  return found.id
}

/** The selection of entries. */
export interface EntryQuery {
  readonly filter: EntryFilter
  readonly fromMs: number
  /** Exclusive; null without an end. */
  readonly untilMs: number | null
}

/** Interval of progress lines. */
const PROGRESS_MS = 5_000

/** The entries in batches, oldest first, with progress lines. Rejects as the store does. */
export async function* entriesOf(
  { store, terminal }: StoreSession,
  { filter, fromMs, untilMs }: EntryQuery,
): AsyncGenerator<readonly LedgerEntry[]> {
  const endMs = untilMs ?? Number.POSITIVE_INFINITY
  const isMatching = (row: LedgerEntry) =>
    row.atMs >= fromMs && row.atMs < endMs && matchesEntry(row, filter)
  if (filter.requestId !== undefined) {
    const row = await store.ledger.entry(filter.accountId ?? null, filter.requestId)
    if (row !== null && isMatching(row)) yield [row]
    return
  }
  let [found, read, printedMs] = [0, 0, performance.now()]
  for await (const batch of store.ledger.export(fromMs)) {
    const matching = batch.filter(isMatching)
    found += matching.length
    read += batch.length
    if (matching.length > 0) yield matching
    // Entries are sorted by time: all following ones are later too.
    if (batch.length > 0 && batch.every(({ atMs }) => atMs >= endMs)) return
    if (performance.now() - printedMs < PROGRESS_MS) continue
    printedMs = performance.now()
    terminal.err(`sluice: ${found} of ${read} entries so far`)
  }
}
