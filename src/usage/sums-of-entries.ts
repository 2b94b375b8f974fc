/** Sums of single requests, for groups that no sums are kept by and for conditions of single requests. */
import type { LedgerEntry } from '../ledger/entry.js'
import { addToSum, newSum, sumFromCounters, type SumCounters } from '../store/records/count-usage.js'
import type { GroupUseQuery, UsageCell, UsageSum } from '../store/usage-queries.js'

/** A grouping that only entries have; `dimension=run=` groups by the values of a dimension. */
export type EntryGrouping = 'program' | 'user' | `dimension=${string}=`
/** What usage is grouped by. */
export type GroupedBy = GroupUseQuery['by'] | EntryGrouping

/** Requests without the property of a grouping. */
export const NONE = '(none)'
/** Groups beyond these are one together, so that a range with any number of runs fits into memory. */
const MOST_GROUPS = 100_000
/** What the groups beyond the maximum are called. */
export const FURTHER = '(further values)'

/** Whether the grouping is one of entries. */
export function isOfEntries(by: GroupedBy): by is EntryGrouping {
  return by === 'program' || by === 'user' || by.startsWith('dimension=')
}

/** A request, or a cell of them. */
type Grouped = Pick<
  UsageCell,
  'accountId' | 'accountPath' | 'keyId' | 'model' | 'upstream' | 'ingress' | 'labels'
> &
  Partial<Pick<LedgerEntry, 'program' | 'user' | 'dimensions' | 'shadowOf'> & Pick<UsageCell, 'isShadow'>>

/** A group, as `GroupUse` names it. */
export type GroupName = Pick<UsageSum, 'accountId' | 'keyId'>

/** The groups of a request or cell; none without the property. */
export function groupNamesOf(of: Grouped, by: GroupedBy): readonly GroupName[] {
  const { accountId, keyId, model } = of
  switch (by) {
    case 'key':
      return [{ accountId, keyId }]
    case 'key model':
      return [{ accountId, keyId: `${keyId}\t${model}` }]
    case 'model':
      return named(model)
    case 'account':
      return named(`${accountId} ${of.accountPath ?? ''}`)
    case 'format':
      return named(of.ingress)
    case 'shadow':
      return (of.isShadow ?? (of.shadowOf ?? null) !== null) ? named(of.upstream) : []
    case 'label':
      return pairsIn(of.labels).flatMap(named)
    case 'upstream':
    case 'program':
    case 'user':
      return named(of[by])
    default: {
      const start = by.slice(by.indexOf('=') + 1)
      if (!isOfEntries(by))
        return pairsIn(of.labels).flatMap((pair) => (pair.startsWith(start) ? named(pair) : []))
      const pair = pairsIn(of.dimensions).find((each) => each.startsWith(start))
      return pair === undefined ? [] : named(decodeURIComponent(pair.slice(start.length)))
    }
  }
}

function named(keyId: string | null | undefined): GroupName[] {
  return keyId === null || keyId === undefined ? [] : [{ accountId: '', keyId }]
}

function pairsIn(text: string | null | undefined): string[] {
  return text === null || text === undefined || text === '' ? [] : text.split(' ')
}

/** How entries are added up. */
interface Adding {
  readonly by: GroupedBy
  /** The start of the step of an entry; absent: all entries of a group are one sum, for all models. */
  readonly startOf?: ((atMs: number) => number) | undefined
  /** Only these groups. */
  readonly ids?: ReadonlySet<string> | undefined
}

/** The sums of each group, and with `startOf` of each model and step; `keyId` is the group. In no order. */
export async function sumsOfEntries(
  batches: AsyncIterable<readonly LedgerEntry[]>,
  { by, startOf, ids }: Adding,
): Promise<UsageSum[]> {
  type Open = Pick<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'> & { counters: SumCounters }
  const groups = new Map<string, Map<string, Open>>()
  const add = ({ accountId, keyId }: GroupName, entry: LedgerEntry): void => {
    const asked = `${accountId} ${keyId}`
    const isShown = groups.has(asked) || groups.size < MOST_GROUPS
    const [owner, id] = isShown ? [accountId, keyId] : ['', FURTHER]
    const name = isShown ? asked : ` ${FURTHER}`
    const sums = groups.get(name) ?? new Map<string, Open>()
    groups.set(name, sums)
    const startMs = startOf?.(entry.atMs) ?? 0
    const model = startOf === undefined ? '' : entry.model
    const step = startOf === undefined ? '' : `${startMs} ${model}`
    const open = sums.get(step) ?? { startMs, model, accountId: owner, keyId: id, counters: newSum() }
    sums.set(step, open)
    addToSum(open.counters, entry)
  }
  for await (const batch of batches) {
    for (const entry of batch) {
      const found = groupNamesOf(entry, by)
      for (const name of found.length === 0 ? named(NONE) : found) {
        if (ids === undefined || ids.has(name.keyId)) add(name, entry)
      }
    }
  }
  return [...groups.values()].flatMap((sums) =>
    Array.from(sums.values(), ({ counters, ...of }) => sumFromCounters(counters, of)),
  )
}
