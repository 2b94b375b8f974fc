/**
 * Reads and writes budgets, sums and last uses for migration. No gateway uses the ledger meanwhile, and each
 * write can be repeated, so these are commands without scripts.
 */
import { withoutNanoUsd } from '../../../base/nano-usd.js'
import { isWindowKind, WINDOWS } from '../../limit-arithmetic.js'
import type { BudgetMark, BudgetSpent } from '../../ledger.js'
import { PROPERTY_MARK, type UsageSum } from '../../usage-queries.js'
import { newSum, numberedCounters, type SumCounters } from '../../records/count-usage.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { cellText, parseCell, readBucket } from './cells.js'
import { groupBy } from './ledger-keys.js'
import { listOf } from '../connection/parse-replies.js'
import { markIn, markText } from '../limits/budget-mark.js'
import type { LedgerContext } from './context.js'

/** Concurrent writes of budgets. */
const AT_ONCE = 64
const BUDGET_SECONDS = 40 * 86_400
const NAMES = 'sluice:{*}:*_*:*'
const NAME = /^sluice:\{(.*?)\}:([a-z_]+):(.*)$/s
/** Marks the hash tag of a shared limit; see `slotPrefix`. */
const SHARED = '~'
/** Sums written by one command. */
const PUT_AT_ONCE = 500

/** The connection, and the names of keys. */
type Target = Pick<LedgerContext, 'link' | 'names'>

/** See `Ledger.budgets`. Slices count as spent, as they do for admission. */
export async function* budgets(link: RedisConnection): AsyncGenerator<readonly BudgetSpent[]> {
  const what = 'reading budgets'
  for await (const names of link.scan(what, NAMES)) {
    const spent = await Promise.all(
      names.map(async (name) => {
        const found = listOf(await link.send(what, 'hmget', [name, 'p', 's', 'h', 'b']))
        return budgetOf(name, found.slice(0, 3).map(Number), markIn(found[3]))
      }),
    )
    yield spent.filter((each) => each !== null)
  }
}

function budgetOf(
  name: string,
  [period = 0, spent = 0, held = 0]: number[],
  known: BudgetMark | null,
): BudgetSpent | null {
  const [, tag = '', kind, subject = ''] = NAME.exec(name) ?? []
  const amount = spent + held
  if (!isWindowKind(kind) || amount <= 0) return null
  const mark = known?.period === period ? known : null
  return { accountId: tag.startsWith(SHARED) ? null : tag, kind, subject, period, amount, mark }
}

/** See `Ledger.putBudgets`. */
export async function putBudgets(target: Target, all: readonly BudgetSpent[]): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await Promise.all(all.slice(from, from + AT_ONCE).map((each) => putBudget(target, each)))
  }
}

async function putBudget(
  { link, names }: Target,
  { accountId, kind, subject, period, amount, mark }: BudgetSpent,
): Promise<void> {
  const what = 'putting budgets'
  const key = names.budget(accountId, kind, subject)
  if (Number(await link.send(what, 'hget', [key, 'p'])) > period) return
  await link.send(what, 'hset', [key, 'p', period, 's', amount, 'r', 0, 'b', markText(mark ?? null)])
  if (WINDOWS[kind].window !== 'total') await link.send(what, 'expire', [key, BUDGET_SECONDS])
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
      const entries = await readBucket(link, what, names.sum(accountId, by, startMs))
      const stored = await readBucket(link, what, sum)
      const rests = restsOf(accountId, some, entries)
      const former = new Map(some.map(({ keyId, model }) => [`${keyId}\0${model}`, [] as string[]]))
      for (const field of stored.keys()) {
        const cell = parseCell(accountId, field, '')
        if (cell.kind === 'former') former.get(cell.owner)?.push(field)
      }
      const used = Array.from(rests).filter(([, text]) => text !== '')
      const unused = Array.from(rests).flatMap(([field, text]) => (text === '' ? [field] : []))
      unused.push(...[...former.values()].flat())
      await link.send(what, 'zadd', [names.buckets(accountId, by), startMs, startMs])
      if (unused.length > 0) await link.send(what, 'hdel', [sum, ...unused])
      if (used.length > 0) await link.send(what, 'hset', [sum, ...used.flat()])
    }
  }
}

/** What the cells of entries lack of the sums, by the field of the sum. */
function restsOf(
  accountId: string,
  sums: readonly UsageSum[],
  entries: ReadonlyMap<string, string>,
): Map<string, string> {
  const rests = new Map<string, SumCounters>()
  for (const sum of sums) {
    const rest = newSum()
    for (const [counter, count] of numberedCounters(sum)) rest[counter] = count
    rests.set(`${sum.keyId}\0${sum.model}`, rest)
  }
  for (const [field, value] of entries) {
    const cell = parseCell(accountId, field, value)
    if (cell.kind !== 'entries') continue
    const owners = [cell.owner, ...cell.properties().map((property) => `${property}\0${cell.model}`)]
    for (const owner of owners) {
      const rest = rests.get(owner)
      if (rest === undefined) continue
      for (const [counter, count] of cell.counts) rest[counter] = withoutNanoUsd(rest[counter] ?? 0, count)
    }
  }
  return new Map(Array.from(rests, ([owner, rest]) => [owner, cellText(rest)]))
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
