/**
 * What keys used of models in a time, also by entries that were pruned since, under the tree of accounts at
 * the time of each request: for statements and reports.
 */
import { adminTurns } from '../base/turn-queue.js'
import { monthOf } from '../store/limit-arithmetic.js'
import type { Store } from '../store/store.js'
import { AccountUses, negative, type AccountUse, type AccountUseQuery } from '../store/usage-queries.js'
import { isOwnUse, isUseBelow, type AccountSelection, type AccountSource } from './account-selection.js'
import { AccountPaths, type UsageNames } from './names.js'

/** Uses that are read or added up without giving way to other work. */
export const AT_ONCE = 500

/** The parts of the store that statements and reports read. */
export type AccountUseSource = AccountSource & UsageNames & Pick<Store, 'ledger'>

/**
 * The uses of the account, with those of accounts below it if `tree` is set; without a selection, all. Each
 * has the path of its account.
 */
export async function accountUses(
  store: AccountUseSource,
  query: AccountUseQuery,
  { selection, tree }: { readonly selection: AccountSelection | null; readonly tree: boolean },
): Promise<AccountUse[]> {
  const paths = new AccountPaths(store)
  const within = async (
    range: Pick<AccountUseQuery, 'fromMs' | 'toMs'>,
    isMeant: (use: AccountUse, path: readonly string[]) => boolean,
  ): Promise<AccountUse[]> => {
    const found: AccountUse[] = []
    for (const [at, use] of (await store.ledger.accountUse({ ...query, ...range })).entries()) {
      if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
      // Fifty thousand promises would take longer than the sums.
      const known = paths.known(use)
      const path = known === undefined ? await paths.of(use) : known
      if (isMeant(use, path)) {
        found.push(use.accountPath === '' ? { ...use, accountPath: path.join('/') } : use)
      }
    }
    return found
  }
  if (selection === null) return within(query, () => true)
  const isOwn = (use: AccountUse, path: readonly string[]): boolean => isOwnUse(selection, use, path)
  if (!tree) return within(query, isOwn)
  const isBelow = (use: AccountUse, path: readonly string[]): boolean =>
    !isOwn(use, path) && isUseBelow(selection, path)
  const fromMs = Math.max(query.fromMs, selection.sinceMs)
  const toMs = Math.min(query.toMs, selection.untilMs)
  if (fromMs === query.fromMs && toMs === query.toMs) {
    return within(query, (use, path) => isOwn(use, path) || isBelow(use, path))
  }
  if (fromMs >= toMs) return within(query, isOwn)
  const below = new AccountUses(query.by ?? 'labels')
  for (const use of await within({ fromMs, toMs }, isBelow)) below.add(use)
  // What was pruned of the month is in each part of it, and may be from before.
  const isMonth = Date.UTC(1970, monthOf(fromMs)) === fromMs
  const pruned = isMonth ? [] : await within({ fromMs, toMs: fromMs + 1 }, isBelow)
  for (const use of pruned) below.add(negative(use))
  return [...(await within(query, isOwn)), ...below.all().filter(({ requests }) => requests > 0)]
}
