/**
 * Reads and writes the spend of all budgets, for migration.
 */
import type { BudgetSpent } from '../../ledger.js'
import type { LedgerKeys } from './key-names.js'
import { loadScript } from '../connection/script.js'
import type { RedisLink } from '../connection/link.js'
import { listOf } from '../keys/read-records.js'

/** Concurrent writes. */
const AT_ONCE = 64
const NAMES = 'sluice:{*}:usd_*'
const NAME = /^sluice:\{(.*?)\}:(usd_day|usd_month):(.*)$/s
/** Marks the hash tag of a shared limit; see `slotPrefix`. */
const SHARED = '~'

const PUT_BUDGET = loadScript('ledger/put-budget')

/** See `Ledger.budgets`. Slices count as spent, as they do for admission. */
export async function* budgets(link: RedisLink): AsyncGenerator<readonly BudgetSpent[]> {
  const what = 'reading budgets'
  for await (const names of link.scan(what, NAMES)) {
    const spent = await Promise.all(
      names.map(async (name) => {
        const numbers = await link.send(what, 'hmget', [name, 'p', 's', 'h'])
        return budgetOf(name, listOf(numbers).map(Number))
      }),
    )
    yield spent.flatMap((each) => (each === null ? [] : [each]))
  }
}

/** See `Ledger.putBudgets`. */
export async function putBudgets(
  link: RedisLink,
  names: LedgerKeys,
  all: readonly BudgetSpent[],
): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await Promise.all(
      all.slice(from, from + AT_ONCE).map(({ accountId, kind, subject, period, nanoUsd }) => {
        const key = names.budget(accountId, kind, subject)
        return link.run('putting budgets', PUT_BUDGET, [key], [period, nanoUsd])
      }),
    )
  }
}

function budgetOf(name: string, [period = 0, spent = 0, held = 0]: number[]): BudgetSpent | null {
  const [, tag = '', kind, subject = ''] = NAME.exec(name) ?? []
  if (kind !== 'usd_day' && kind !== 'usd_month') return null
  const accountId = tag.startsWith(SHARED) ? null : tag
  const nanoUsd = spent + held
  return nanoUsd > 0 ? { accountId, kind, subject, period, nanoUsd } : null
}
