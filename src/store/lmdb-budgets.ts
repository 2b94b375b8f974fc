/**
 * What budgets have spent, moved out of the embedded engine's ledger and into it. Decides nothing.
 */
import type { BudgetSpent } from './ledger.js'
import type { LedgerFile } from './lmdb-ledger-file.js'
import { spentOf } from './lmdb-limits.js'

/** Records of one batch, and of one step. */
const AT_ONCE = 128

/** See `Ledger.budgets`. */
export async function* budgets(file: LedgerFile): AsyncGenerator<readonly BudgetSpent[]> {
  await file.settleDown()
  for (let from = '\0', isMore = true; isMore;) {
    const records = await file.read('reading budgets', ({ subjects }) =>
      Array.from(subjects.getRange({ start: from, limit: AT_ONCE }), ({ key, value }) => ({
        name: key,
        spent: spentOf(key, value),
      })),
    )
    const spent = records.flatMap((each) => each.spent)
    if (spent.length > 0) yield spent
    isMore = records.length === AT_ONCE
    from = `${records.at(-1)?.name ?? ''}\0`
  }
}

/** See `Ledger.putBudgets`. */
export async function putBudgets(file: LedgerFile, all: readonly BudgetSpent[]): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await file.write('putting budgets', (turn) => {
      for (const each of all.slice(from, from + AT_ONCE)) turn.putBudget(each)
    })
  }
}
