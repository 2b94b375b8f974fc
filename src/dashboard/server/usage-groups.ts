/**
 * Usage by group: keys, models, accounts, parents, members, labels, upstreams, client formats, months; by
 * program, person and dimension from entries. All other groups come from stored sums, and add up to the total
 * of the range: requests without the property, and those of sums that do not have it, are the group `(none)`.
 */
import { addNanoUsd, withoutNanoUsd } from '../../base/nano-usd.js'
import { adminTurns } from '../../base/turn-queue.js'
import { monthOf } from '../../store/limit-arithmetic.js'
import type { KeyName } from '../../store/account-and-key-lists.js'
import { isByProperty, type GroupUse, type GroupUseQuery, type UsageSum } from '../../store/usage-queries.js'
import { ExactUsage, type SumSelection } from '../../usage/exact-usage.js'
import { inDays } from '../../usage/ranges.js'
import { AccountPaths, KeyNames, monthText } from './statements-and-reports.js'
import {
  entryGroups,
  isOfEntries,
  type EntryGrouping,
  type GroupTotals,
  type RunningTotals,
} from './groups-of-entries.js'
import type { Services } from './services.js'
import { GatewayError } from '../../errors.js'

/** The groupings; `label:NAME` and `dimension:NAME` group by the value of a label or dimension. */
export type Grouping =
  | 'key'
  | 'model'
  | 'account'
  | 'parent'
  | 'root'
  | 'member'
  | 'month'
  | 'upstream'
  | 'client_format'
  | `label:${string}`
  | EntryGrouping

/** Selects the usage to group. */
export interface GroupsQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly group: Grouping
  readonly keyId?: string | undefined
  readonly model?: string | undefined
}

/** A group and the sums that it consists of. */
export interface Group {
  /** A name; for keys the id; `(none)` for requests without the property. */
  readonly id: string
  /** The account of a key, if it is of one only. */
  readonly accountId: string | null
  readonly total: GroupTotals
  /** Empty for `(none)`, for months and for groups of entries. */
  readonly sources: readonly SumSelection[]
}

/** The ledger's name for models without a route. */
const UNKNOWN_MODEL = 'other'
/** The same in queries and replies, in which `other` is the sum of all groups beyond the largest. */
const UNKNOWN = '(unknown)'

/** The id of a group in replies. */
export function shownId(id: string): string {
  return id === UNKNOWN_MODEL ? UNKNOWN : id
}

/** The display name of a group that has no other. */
export function labelOfId(id: string): string {
  return id === UNKNOWN_MODEL ? 'unknown models' : id
}

/** The model of a query as the ledger has it. */
export function modelIn<Model extends string | undefined>(model: Model): Model | string {
  return model === UNKNOWN ? UNKNOWN_MODEL : model
}

/** Requests without the property of a grouping. */
export const NONE = '(none)'
/** Groups named without giving way to other work. */
const NAMED_AT_ONCE = 100

/** All groups with requests in a range, in no order. */
export async function groupsIn(services: Services, usage: ExactUsage, query: GroupsQuery): Promise<Group[]> {
  const { group } = query
  if (group === 'month') return months(services, usage, query)
  if (isOfEntries(group)) return entryGroups(services, usage, { ...query, group })
  const by = storedAs(group)
  if (query.keyId !== undefined && isByProperty(by)) {
    const message = `Usage by ${group} is not kept for single keys. Omit "keyId", or group by model.`
    throw new GatewayError('malformed_request', message, { param: 'keyId' })
  }
  const { accountId, keyId, model } = query
  const selection = { accountId, ...ifKnown({ keyId, model }) }
  const [uses, whole] = await Promise.all([
    usage.groups({ ...selection, by }),
    usage.groups({ ...selection, by: 'model' }),
  ])
  const nameOf = await namer(services, { group, accountId, count: uses.length })
  const groups = new Map<string, { accountId: string | null; total: GroupTotals; sources: SumSelection[] }>()
  const rest = newTotals()
  for (const use of whole) add(rest, use, 1)
  for (const [at, use] of uses.entries()) {
    if (at % NAMED_AT_ONCE === NAMED_AT_ONCE - 1) await adminTurns.next()
    add(rest, use, -1)
    const named = nameOf(use)
    // Ten thousand promises would take longer than the sums.
    const id = typeof named === 'string' ? named : await named
    const group = groups.get(id) ?? { accountId: use.accountId, total: newTotals(), sources: [] }
    if (group.accountId !== use.accountId) group.accountId = null
    add(group.total, use, 1)
    group.sources.push(sourceOf(use, { by, accountId, ...ifKnown({ keyId, model }) }))
    groups.set(id, group)
  }
  const found = Array.from(groups, ([id, group]) => ({ id, ...group }))
  return rest.requests > 0 ? [...found, { id: NONE, accountId: null, total: rest, sources: [] }] : found
}

type StoredGrouping = Exclude<GroupUseQuery['by'], 'key model'>

type SummedGrouping = Exclude<Grouping, 'month' | EntryGrouping>

/** How the store keeps the sums of a grouping. */
function storedAs(group: SummedGrouping): StoredGrouping {
  if (group === 'key' || group === 'member') return 'key'
  if (group === 'model' || group === 'upstream') return group
  if (group === 'client_format') return 'format'
  if (group === 'account' || group === 'parent' || group === 'root') return 'account'
  return `label=${group.slice('label:'.length)}=`
}

/** Names of more keys are read together. */
const FEW_KEYS = 100

/** The names of all keys if more than `FEW_KEYS` are needed, else null. */
export async function manyKeyNames(
  { store }: Services,
  accountId: string | null,
  count: number,
): Promise<ReadonlyMap<string, KeyName> | null> {
  return count > FEW_KEYS ? store.directory.keyNames(accountId) : null
}

/** The function that names the group of a use. */
async function namer(
  services: Services,
  { group, accountId, count }: { group: SummedGrouping; accountId: string | null; count: number },
): Promise<(use: GroupUse) => string | Promise<string>> {
  const { store } = services
  if (group === 'member') {
    const keys = new KeyNames(store, await manyKeyNames(services, accountId, count))
    return (use) => {
      const known = keys.known(use)
      if (known !== undefined) return known?.createdBy ?? NONE
      return keys.of(use).then((key) => key?.createdBy ?? NONE)
    }
  }
  if (group === 'account' || group === 'parent' || group === 'root') {
    const paths = new AccountPaths(store)
    const nameIn = (path: readonly string[]): string => {
      const own = path.at(-1) ?? NONE
      if (group === 'account') return own
      return group === 'root' ? (path[0] ?? NONE) : (path.at(-2) ?? own)
    }
    return ({ keyId }) => {
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
  query: Pick<GroupUseQuery, 'accountId' | 'keyId' | 'model'> & { readonly by: StoredGrouping },
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

async function months({ ledger }: Services, usage: ExactUsage, query: GroupsQuery): Promise<Group[]> {
  const { accountId, keyId, model } = query
  const of = keyId === undefined ? { per: 'model' as const } : { keyId }
  const daily = new ExactUsage(ledger, inDays(usage.range))
  const sums = await daily.sums({ accountId, ...of, ...ifKnown({ model }) })
  const groups = new Map<string, GroupTotals>()
  for (const sum of sums) {
    const id = monthText(monthOf(sum.startMs))
    const total = groups.get(id) ?? newTotals()
    add(total, sum, 1)
    groups.set(id, total)
  }
  return Array.from(groups, ([id, total]) => ({ id, accountId: null, total, sources: [] }))
}

/** The sums of a group in a range. */
export async function sumsOfGroup(usage: ExactUsage, { sources }: Group): Promise<UsageSum[]> {
  const [first] = sources
  const accounts = sources.flatMap(({ property = '' }) => ACCOUNT.exec(property)?.[1] ?? [])
  if (first !== undefined && accounts.length === sources.length) {
    return usage.sums({ accountId: null, accounts, ...ifKnown(first) })
  }
  const found = await Promise.all(sources.map((source) => usage.sums(source)))
  return found.flat()
}

const ACCOUNT = /^account=(.*)$/s

function newTotals(): RunningTotals {
  return { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0, unpriced: 0 }
}

function add(to: RunningTotals, use: GroupTotals, sign: 1 | -1): void {
  // Never below 0: the two sums may have been read at different moments.
  const sum = (a: number, b: number): number => Math.max(0, a + sign * b)
  to.requests = sum(to.requests, use.requests)
  to.errors = sum(to.errors, use.errors)
  to.inputTokens = sum(to.inputTokens, use.inputTokens)
  to.outputTokens = sum(to.outputTokens, use.outputTokens)
  const cost = (sign === 1 ? addNanoUsd : withoutNanoUsd)(to.costNanoUsd, use.costNanoUsd)
  to.costNanoUsd = cost < 0 ? 0 : cost
  to.unpriced = sum(to.unpriced, use.unpriced)
}

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
