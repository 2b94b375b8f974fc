/** What single requests of accounts used, by a property that only requests have, such as a dimension. */
import type { LedgerEntry } from '../ledger/entry.js'
import { addToSum, newSum, sumFromCounters, type SumCounters } from '../store/records/count-usage.js'
import { isOwnUse, isUseBelow, type AccountSelection } from './account-selection.js'
import type { AccountUseSource } from './account-uses.js'
import { entriesIn } from './entries-in-range.js'
import { AccountPaths } from './names.js'
import { FURTHER, groupNamesOf, NONE, type GroupedBy } from './sums-of-entries.js'
import type { Totals } from './totals.js'

/** Requests with more values of one line are one together. */
const MOST_VALUES = 100_000

interface EntriesQuery {
  readonly fromMs: number
  readonly toMs: number
  readonly by: GroupedBy
  /** Null: all accounts. */
  readonly selection: AccountSelection | null
}

/** The sums of each value, by what `nameOf` calls the line of a request of the account with this path. */
export async function valuesOfEntries(
  store: AccountUseSource,
  { fromMs, toMs, by, selection }: EntriesQuery,
  nameOf: (account: string, entry: LedgerEntry) => string,
): Promise<Map<string, Map<string, Totals>>> {
  const paths = new AccountPaths(store)
  const lines = new Map<
    string,
    Map<string, { readonly entry: LedgerEntry; readonly counters: SumCounters }>
  >()
  let count = 0
  for await (const batch of entriesIn(store.ledger, { fromMs, toMs, filter: {} })) {
    for (const entry of batch) {
      const { accountId, accountPath } = entry
      const path = await paths.of({ accountId, accountPath: accountPath ?? '' })
      if (selection !== null && !isSelected(selection, path, entry)) continue
      const name = nameOf(path.at(-1) ?? '', entry)
      const values = lines.get(name) ?? new Map<string, { entry: LedgerEntry; counters: SumCounters }>()
      lines.set(name, values)
      const [{ keyId: value } = { keyId: NONE }] = groupNamesOf(entry, by)
      const isShown = values.has(value) || count < MOST_VALUES
      const shown = isShown ? value : FURTHER
      const sum = values.get(shown) ?? { entry, counters: newSum() }
      if (!values.has(shown)) count += 1
      values.set(shown, sum)
      addToSum(sum.counters, entry)
    }
  }
  return new Map(
    Array.from(lines, ([name, values]) => {
      const sums = Array.from(values, ([value, { entry, counters }]) => {
        return [value, sumFromCounters(counters, { ...entry, startMs: fromMs })] as const
      })
      return [name, new Map<string, Totals>(sums)]
    }),
  )
}

function isSelected(selection: AccountSelection, path: readonly string[], entry: LedgerEntry): boolean {
  if (isOwnUse(selection, entry, path)) return true
  return entry.atMs >= selection.sinceMs && entry.atMs < selection.untilMs && isUseBelow(selection, path)
}
