/**
 * Usage by group, for every page, command and API: keys, models, accounts, parents, members, labels,
 * upstreams, client formats, days, months; programs, persons and dimensions. Groups of sums add up to the
 * total of the range: requests without the property, and those of sums that do not have it, are the group
 * `(none)`.
 */
import { compareNanoUsd } from '../base/nano-usd.js'
import { adminTurns } from '../base/turn-queue.js'
import { GatewayError } from '../errors.js'
import { monthOf } from '../store/limit-arithmetic.js'
import type { EntryFilter, GroupUse, GroupUseQuery, UsageSum } from '../store/usage-queries.js'
import type { ExactUsage, GroupSelection, SumSelection } from './exact-usage.js'
import { AccountPaths, KeyNames, type UsageNames } from './names.js'
import { monthText } from './ranges.js'
import { isOfEntries, NONE, type EntryGrouping } from './sums-of-entries.js'
import { addTotals, newTotals, sumOfTotals, takeTotals, type RunningTotals, type Totals } from './totals.js'

/** The groupings; `label:NAME` and `dimension:NAME` group by the value of a label or dimension. */
export type Grouping =
  | 'key'
  | 'model'
  | 'account'
  | 'parent'
  | 'root'
  | 'below'
  | 'member'
  | 'day'
  | 'month'
  | 'upstream'
  | 'client_format'
  | 'program'
  | 'user'
  | `label:${string}`
  | `dimension:${string}`

/** Selects the usage to group. */
export interface GroupsQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  /** For `below`: the account whose children are groups, each with all below it; null: the top. */
  readonly above?: string | null
  readonly group: Grouping
  readonly keyId?: string | undefined
  readonly model?: string | undefined
  /** Conditions that only single requests meet. */
  readonly filter?: EntryFilter
  /** Only these accounts; null or absent: those of `accountId`. */
  readonly accountIds?: ReadonlySet<string> | null | undefined
}

/** A group and the sums that it consists of. */
export interface Group {
  readonly grouping: Grouping
  /** A name; for keys the id; `(none)` for requests without the property. */
  readonly id: string
  /** The account of a key, if it is of one only. */
  readonly accountId: string | null
  readonly total: Totals
  /** Empty for `(none)`, for months and for groups of entries. */
  readonly sources: readonly SumSelection[]
}

/** The ledger's name for models without a route. */
const UNKNOWN_MODEL = 'other'
/** The same in queries and replies. */
const UNKNOWN = '(unknown)'

type NamedBy = Pick<Group, 'id' | 'grouping'>

/** The id of a group in replies; labels, programs and others may be called `other`. */
export function shownId({ id, grouping }: NamedBy): string {
  return grouping === 'model' && id === UNKNOWN_MODEL ? UNKNOWN : id
}

/** The display name of a group that has no other. */
export function labelOfId({ id, grouping }: NamedBy): string {
  return grouping === 'model' && id === UNKNOWN_MODEL ? 'unknown models' : id
}

/** The model of a query as the ledger has it. */
export function modelIn<Model extends string | undefined>(model: Model): Model | string {
  return model === UNKNOWN ? UNKNOWN_MODEL : model
}

/** By `below`: requests of the account itself. */
const ITSELF = '(itself)'
/** Groups named without giving way to other work. */
const NAMED_AT_ONCE = 100

/** All groups with requests in a range, in no order. */
export async function groupsIn(
  { store }: { readonly store: UsageNames },
  usage: ExactUsage,
  query: GroupsQuery,
): Promise<Group[]> {
  const { group, accountId, accountIds = null, keyId, model, filter } = query
  const by = storedAs(group)
  const isFiltered = Object.keys(filter ?? {}).length > 0
  const isOfKeys = keyId !== undefined || usage.isOfKeys
  if (isOfKeys && !isFiltered && by !== 'key' && by !== 'model' && !isOfEntries(by)) {
    const param = keyId === undefined ? 'member' : 'keyId'
    const message = `Usage by ${group} is not kept for single keys. Omit "${param}", or group by model.`
    throw new GatewayError('malformed_request', message, { param })
  }
  const selection = { ...ifKnown({ keyId, model }), ...(isFiltered ? { filter } : {}) }
  // Entries of many accounts are read in one pass, sums of one account after the other.
  const isOfOnePass = isFiltered || isOfEntries(by)
  const each = isOfOnePass ? [accountId] : (accountIds ?? [accountId])
  const own: GroupSelection[] = Array.from(each, (id) => {
    return { ...selection, by, accountId: id, ...(isOfOnePass ? { accountIds } : {}) }
  })
  if (group === 'day' || group === 'month') return periods(usage, own, group)
  const uses = await usesOf(usage, own)
  if (isOfOnePass || isOfEntries(by)) return groupedUses({ store }, query, uses)
  return groupedUses({ store }, query, uses, (use) =>
    sourceOf(use, { by, accountId, ...ifKnown({ keyId, model }) }),
  )
}

/** Adds up uses by what a grouping calls them, in no order. `sourceOf`: the sums that a use is of. */
export async function groupedUses(
  { store }: { readonly store: UsageNames },
  query: Pick<GroupsQuery, 'group' | 'accountId' | 'above'>,
  uses: readonly GroupUse[],
  sourceOf: ((use: GroupUse) => SumSelection) | null = null,
): Promise<Group[]> {
  const nameOf = await namer(store, { ...query, count: uses.length })
  const groups = new Map<
    string,
    { accountId: string | null; total: RunningTotals; sources: SumSelection[] }
  >()
  for (const [at, use] of uses.entries()) {
    if (at % NAMED_AT_ONCE === NAMED_AT_ONCE - 1) await adminTurns.next()
    const named = nameOf(use)
    // Ten thousand promises would take longer than the sums.
    const id = typeof named === 'string' ? named : await named
    const group = groups.get(id) ?? { accountId: use.accountId, total: newTotals(), sources: [] }
    if (group.accountId !== use.accountId) group.accountId = null
    addTotals(group.total, use)
    if (sourceOf !== null && use.keyId !== NONE) group.sources.push(sourceOf(use))
    groups.set(id, group)
  }
  return Array.from(groups, ([id, sums]) => ({ grouping: query.group, id, ...sums }))
}

/** The uses of each selection, with `(none)` for what is in no group. */
async function usesOf(usage: ExactUsage, selections: readonly GroupSelection[]): Promise<GroupUse[]> {
  const all: GroupUse[] = []
  const rest = newTotals()
  for (const [at, selection] of selections.entries()) {
    if (at > 0) await adminTurns.next()
    const { by } = selection
    // Only sums of properties lack requests.
    const hasRest = by !== 'key' && by !== 'model' && !isOfEntries(by) && selection.filter === undefined
    const [uses, whole] = await Promise.all([
      usage.groups(selection),
      hasRest ? usage.groups({ ...selection, by: 'model' }) : [],
    ])
    for (const use of whole) addTotals(rest, use)
    for (const use of hasRest ? uses : []) takeTotals(rest, use)
    // Without a function that has them as arguments, because there may be a hundred thousand.
    for (const use of uses) all.push(use)
  }
  if (rest.requests > 0) all.push({ accountId: '', keyId: NONE, ...rest })
  return all
}

type KeptBy = Exclude<GroupUseQuery['by'], 'key model'>

/** How usage is read for a grouping. */
export function storedAs(group: Grouping): KeptBy | EntryGrouping {
  switch (group) {
    case 'key':
    case 'member':
      return 'key'
    case 'model':
    case 'day':
    case 'month':
      return 'model'
    case 'account':
    case 'parent':
    case 'root':
    case 'below':
      return 'account'
    case 'client_format':
      return 'format'
    case 'upstream':
    case 'program':
    case 'user':
      return group
    default: {
      const name = group.slice(group.indexOf(':') + 1)
      return group.startsWith('label:') ? `label=${name}=` : `dimension=${name}=`
    }
  }
}

/** The function that names the group of a use. */
async function namer(
  store: UsageNames,
  {
    group,
    accountId,
    above,
    count,
  }: Pick<GroupsQuery, 'group' | 'accountId' | 'above'> & { readonly count: number },
): Promise<(use: GroupUse) => string | Promise<string>> {
  if (group === 'member') {
    const keys = await KeyNames.for(store, count, accountId)
    return (use) => {
      const known = keys.known(use)
      if (known !== undefined) return known?.createdBy ?? NONE
      return keys.of(use).then((key) => key?.createdBy ?? NONE)
    }
  }
  if (storedAs(group) === 'account') {
    const paths = new AccountPaths(store)
    const nameIn = (path: readonly string[]): string => {
      const own = path.at(-1) ?? NONE
      if (group === 'account') return own
      if (group === 'below' && typeof above === 'string') {
        const at = path.indexOf(above)
        return at === -1 ? own : (path[at + 1] ?? ITSELF)
      }
      if (group === 'below') return path[0] ?? NONE
      return group === 'root' ? (path[0] ?? NONE) : (path.at(-2) ?? own)
    }
    return ({ keyId }) => {
      if (keyId === NONE) return NONE
      const at = keyId.indexOf(' ')
      const [accountId, accountPath] = [keyId.slice(0, at), keyId.slice(at + 1)]
      if (accountPath !== '') return nameIn(accountPath.split('/'))
      return paths.of({ accountId, accountPath }).then(nameIn)
    }
  }
  // The value of a label follows its name.
  const isLabel = group.startsWith('label:')
  return ({ keyId }) => (isLabel ? keyId.slice(keyId.indexOf('=') + 1) : keyId)
}

function sourceOf(
  use: GroupUse,
  query: Pick<GroupUseQuery, 'accountId' | 'keyId' | 'model'> & { readonly by: KeptBy },
): SumSelection {
  const { by, accountId, keyId, model } = query
  if (by === 'key') return { accountId: use.accountId, keyId: use.keyId, ...ifKnown({ model }) }
  if (by === 'model') {
    const of = keyId === undefined ? { per: 'model' as const } : { keyId }
    return { accountId, model: use.keyId, ...of }
  }
  const property = by.startsWith('label') ? 'label' : by
  // Sums by account are those of all accounts.
  const owner = property === 'account' ? null : accountId
  return {
    accountId: owner,
    property: `${property}=${use.keyId}` as const,
    ...ifKnown({ model }),
  }
}

/** The days or months (UTC) of the range. */
async function periods(
  usage: ExactUsage,
  selections: readonly GroupSelection[],
  group: 'day' | 'month',
): Promise<Group[]> {
  const daily = usage.inDays()
  const groups = new Map<string, RunningTotals>()
  for (const [at, selection] of selections.entries()) {
    if (at > 0) await adminTurns.next()
    for (const sum of await daily.sumsByGroup(selection)) {
      const day = new Date(sum.startMs).toISOString().slice(0, 10)
      const id = group === 'day' ? day : monthText(monthOf(sum.startMs))
      const total = groups.get(id) ?? newTotals()
      addTotals(total, sum)
      groups.set(id, total)
    }
  }
  return Array.from(groups, ([id, total]) => ({
    ...{ grouping: group, id, accountId: null },
    ...{ total, sources: [] },
  }))
}

/** Days and months in order; other groups by cost, and then by name. */
export function inOrder<Of extends Pick<Group, 'id' | 'total'>>(groups: readonly Of[], group: string): Of[] {
  const isOfTime = group === 'day' || group === 'month'
  return [...groups].sort(
    (a, b) =>
      (isOfTime ? 0 : compareNanoUsd(b.total.costNanoUsd, a.total.costNanoUsd)) || (a.id < b.id ? -1 : 1),
  )
}

/** The sum of groups. */
export function totalOf(groups: readonly Pick<Group, 'total'>[]): Totals {
  return sumOfTotals(groups.map(({ total }) => total))
}

/** Whether the groups are made of single requests. */
export function isOfRequests(group: Grouping): boolean {
  return isOfEntries(storedAs(group))
}

/** The sums over time of some groups of a query, in their order. */
export async function sumsOfGroups(
  usage: ExactUsage,
  groups: readonly Group[],
  { group, accountId, keyId, model, filter }: GroupsQuery,
): Promise<UsageSum[][]> {
  const by = storedAs(group)
  if (!isOfEntries(by)) return Promise.all(groups.map((each) => sumsOfSources(usage, each)))
  const ids = new Set(groups.map(({ id }) => id))
  const found = await usage.sumsByGroup({ by, accountId, filter, ...ifKnown({ keyId, model }) }, ids)
  const byId = new Map(groups.map(({ id }) => [id, new Array<UsageSum>()]))
  for (const sum of found) byId.get(sum.keyId)?.push(sum)
  return [...byId.values()]
}

async function sumsOfSources(usage: ExactUsage, { sources }: Group): Promise<UsageSum[]> {
  const [first] = sources
  const accounts = sources.flatMap(({ property = '' }) => ACCOUNT.exec(property)?.[1] ?? [])
  if (first !== undefined && accounts.length === sources.length) {
    return usage.sums({ accountId: null, accounts, ...ifKnown(first) })
  }
  const found = await Promise.all(sources.map((source) => usage.sums(source)))
  return found.flat()
}

const ACCOUNT = /^account=(.*)$/s

function ifKnown(query: { keyId?: string | undefined; model?: string | undefined }): {
  keyId?: string
  model?: string
} {
  const { keyId, model } = query
  return {
    ...(keyId === undefined ? {} : { keyId }),
    ...(model === undefined ? {} : { model }),
  }
}
