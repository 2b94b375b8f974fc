/**
 * Reads and writes budgets, sums and last uses for migration. No gateway uses the ledger meanwhile, and each
 * write can be repeated, so these are commands without scripts.
 */
import { isBudgetKind } from '../../limit-arithmetic.js'
import type { BudgetSpent } from '../../ledger.js'
import { PROPERTY_MARK, type UsageSum } from '../../usage-queries.js'
import { numberedCounters } from '../../records/count-usage.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { groupBy } from './ledger-keys.js'
import { listOf } from '../connection/parse-replies.js'
import type { LedgerContext } from './context.js'

/** Concurrent writes of budgets. */
const AT_ONCE = 64
const BUDGET_SECONDS = 40 * 86_400
const NAMES = 'sluice:{*}:usd_*'
const NAME = /^sluice:\{(.*?)\}:(usd_day|usd_week|usd_month):(.*)$/s
/** Marks the hash tag of a shared limit; see `slotPrefix`. */
const SHARED = '~'
/** Sums written by one command; each has two dozen counters. */
const PUT_AT_ONCE = 50

/** The connection, and the names of keys. */
type Target = Pick<LedgerContext, 'link' | 'names'>

/** See `Ledger.budgets`. Slices count as spent, as they do for admission. */
export async function* budgets(link: RedisConnection): AsyncGenerator<readonly BudgetSpent[]> {
  const what = 'reading budgets'
  for await (const names of link.scan(what, NAMES)) {
    const spent = await Promise.all(
      names.map(async (name) => {
        const numbers = await link.send(what, 'hmget', [name, 'p', 's', 'h'])
        return budgetOf(name, listOf(numbers).map(Number))
      }),
    )
    yield spent.filter((each) => each !== null)
  }
}

function budgetOf(name: string, [period = 0, spent = 0, held = 0]: number[]): BudgetSpent | null {
  const [, tag = '', kind, subject = ''] = NAME.exec(name) ?? []
  const nanoUsd = spent + held
  if (!isBudgetKind(kind) || nanoUsd <= 0) return null
  return { accountId: tag.startsWith(SHARED) ? null : tag, kind, subject, period, nanoUsd }
}

/** See `Ledger.putBudgets`. */
export async function putBudgets(target: Target, all: readonly BudgetSpent[]): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await Promise.all(all.slice(from, from + AT_ONCE).map((each) => putBudget(target, each)))
  }
}

async function putBudget(
  { link, names }: Target,
  { accountId, kind, subject, period, nanoUsd }: BudgetSpent,
): Promise<void> {
  const what = 'putting budgets'
  const key = names.budget(accountId, kind, subject)
  if (Number(await link.send(what, 'hget', [key, 'p'])) > period) return
  await link.send(what, 'hset', [key, 'p', period, 's', nanoUsd, 'r', 0])
  await link.send(what, 'expire', [key, BUDGET_SECONDS])
}

/** See `Ledger.putSums`. */
export async function putSums(
  { link, names }: Target,
  by: 'hour' | 'day',
  sums: readonly UsageSum[],
): Promise<void> {
  const what = 'putting sums'
  const isByProperty = ({ keyId }: UsageSum): boolean => keyId.startsWith(PROPERTY_MARK)
  const bucketOf = (sum: UsageSum): string => `${sum.startMs} ${isByProperty(sum)}`
  for (const bucket of groupBy(sums, bucketOf).values()) {
    for (let from = 0; from < bucket.length; from += PUT_AT_ONCE) {
      const some = bucket.slice(from, from + PUT_AT_ONCE)
      const [first] = some
      const { accountId = '', startMs = 0 } = first ?? {}
      const kind = first !== undefined && isByProperty(first) ? 'propertySum' : 'sum'
      const sum = names[kind](accountId, by, startMs)
      const counters = some.flatMap(countersOf)
      const used = counters.filter(([, count]) => count > 0)
      const unused = counters.filter(([, count]) => count === 0)
      await link.send(what, 'zadd', [names.buckets(accountId, by), startMs, startMs])
      if (unused.length > 0) await link.send(what, 'hdel', [sum, ...unused.map(([name]) => name)])
      if (used.length > 0) await link.send(what, 'hset', [sum, ...used.flat()])
    }
  }
}

/** The names and counts of the counters of a sum. */
function countersOf(sum: UsageSum): [string, number][] {
  const prefix = `${sum.keyId}\0${sum.model}\0`
  return numberedCounters(sum).map(([index, count]) => [`${prefix}${index}`, count])
}

/** Writes the times of the last uses of an account's keys, in ms since 1970 by id. */
export async function putLastUse(
  { link, names }: Target,
  accountId: string,
  lastUse: ReadonlyMap<string, number>,
): Promise<void> {
  if (lastUse.size === 0) return
  const args = [names.lastUse(accountId), ...Array.from(lastUse).flat()]
  await link.send('putting last uses', 'hset', args)
}
