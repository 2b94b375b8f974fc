/**
 * The totals of all requests by the value of a label, for reports. Sums of hours are far fewer than entries,
 * and each request has at most one value: the rest has none.
 */
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import { monthOf } from '../store/limit-arithmetic.js'
import type { Ledger } from '../store/ledger.js'
import { negative, type AccountUse, type GroupUse } from '../store/usage-queries.js'
import { ExactUsage } from './exact-usage.js'
import { groupNamesOf, NONE } from './sums-of-entries.js'
import { newTotals, addTotals, sumOfTotals, takeTotals, type Totals } from './totals.js'

type LabelSource = Pick<
  Ledger,
  'accountUse' | 'prunedUse' | 'entries' | 'sums' | 'groupUse' | 'cells' | 'export' | 'entry'
>

/** A time; `toMs` is exclusive. */
interface Time {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * The groups, some of them in parts. As in `Ledger.accountUse`, pruned entries count with their month. Null
 * for less than a day, and if sums have not the same requests as entries: then these have to be read.
 */
export async function labelGroups(
  ledger: LabelSource,
  by: `label=${string}=`,
  { fromMs, toMs }: Time,
  nowMs: number,
): Promise<GroupUse[] | null> {
  // Requests of the running hour, and of the one before, may be settled meanwhile.
  const endMs = Math.min(toMs, Math.floor(nowMs / HOUR_MS) * HOUR_MS - HOUR_MS)
  if (endMs - fromMs < DAY_MS) return null
  const ended = { fromMs, toMs: endMs }
  const order = { column: 'atMs', isDescending: false } as const
  const [oldest] = (await ledger.entries({ accountId: null, ...ended, order, after: null, limit: 1 })).entries
  if (oldest === undefined) return null
  const range = { ...ended, fromMs: oldest.atMs, nowMs, by: 'day', stepMs: DAY_MS, zone: 'UTC' } as const
  const usage = new ExactUsage(ledger, { ...range, starts: new Map<number, number>(), extendedTo: null })
  const groups = await usage.groups({ accountId: null, by })
  const sums = sumOfTotals(await usage.groups({ accountId: null, by: 'model' }))
  const all = sumOfTotals(await ledger.accountUse({ ...ended, by: 'accounts' }))
  const pruned = await ledger.prunedUse()
  const inMonths = (time: Time): readonly AccountUse[] =>
    pruned.filter(({ month }) => month >= monthOf(time.fromMs) && month <= monthOf(time.toMs - 1))
  // What has moved to an archive is kept there.
  const isKept = isSame(all, sums)
  const known = inMonths(ended)
  if (!isKept && !isSame(all, sumOfTotals([sums, ...known]))) return null
  const rest = newTotals()
  addTotals(rest, sums)
  for (const group of groups) takeTotals(rest, group)
  const found: GroupUse[] = [...groups]
  if (rest.requests > 0) found.push({ ...rest, accountId: '', keyId: NONE })
  const add = (use: AccountUse): void => {
    const [name] = groupNamesOf({ ...use, upstream: null, ingress: null }, by)
    found.push({ ...use, ...(name ?? { accountId: '', keyId: NONE }) })
  }
  if (endMs < toMs) {
    const running = { fromMs: endMs, toMs }
    for (const use of await ledger.accountUse({ ...running, by: 'labels' })) add(use)
    if (!isKept) for (const use of inMonths(running)) add(negative(use))
  }
  if (!isKept) for (const use of inMonths({ fromMs, toMs })) add(use)
  return found
}

function isSame(one: Totals, other: Totals): boolean {
  return one.requests === other.requests && one.costNanoUsd === other.costNanoUsd
}
