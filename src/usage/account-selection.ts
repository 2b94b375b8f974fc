/**
 * Which requests belong to an account: those of its id, and those of accounts that were below it. A ledger
 * entry has the names of the accounts above, and a name may have belonged to an account that was purged: the
 * times of the purges, which the audit trail has, separate the two.
 */
import type { Account } from '../accounts/account.js'
import { adminTurns } from '../base/turn-queue.js'
import type { Store } from '../store/store.js'
import type { AccountUse, EntryFilter } from '../store/usage-queries.js'

/** The parts of the store that have accounts and their purges. */
export type AccountSource = Pick<Store, 'accountById' | 'accountByName' | 'auditTrail'>

/** An account whose requests are wanted. */
export interface AccountSelection {
  /** Null: every purged account of the name. */
  readonly accountId: string | null
  readonly name: string
  /** Requests of accounts below it count from this time on, ms since 1970. */
  readonly sinceMs: number
  /** Exclusive. */
  readonly untilMs: number
}

/** An account that was purged. */
interface PurgedAccount {
  readonly id: string
  readonly name: string
  readonly atMs: number
}

/** The action of the audit entry that a purge leaves. */
const PURGE = 'account.purge'
/** Entries that are read of the audit trail at once. */
const READ_AT_ONCE = 500
/** Entries of other gateways may be older than one that was read before. */
const OVERLAP_MS = 600_000

interface KnownPurges {
  readonly byId: Map<string, PurgedAccount>
  lastMs: number
}

const known = new WeakMap<object, KnownPurges>()

/** The accounts that were purged, as far as the audit trail goes back. Later calls read what is new. */
async function purgedAccounts({ auditTrail }: AccountSource): Promise<PurgedAccount[]> {
  const purges = known.get(auditTrail) ?? { byId: new Map<string, PurgedAccount>(), lastMs: 0 }
  const filter = { action: PURGE, fromMs: Math.max(0, purges.lastMs - OVERLAP_MS) }
  const query = { accountId: null, order: 'newest_first', filter, limit: READ_AT_ONCE } as const
  for (let after: string | null = null; ;) {
    const page = await auditTrail.find({ ...query, after })
    for (const { accountId: id, account, detail, atMs } of page.entries) {
      purges.byId.set(id, { id, name: account ?? detail, atMs })
      purges.lastMs = Math.max(purges.lastMs, atMs)
    }
    if (page.next === null) break
    after = page.next
    await adminTurns.next()
  }
  known.set(auditTrail, purges)
  return [...purges.byId.values()]
}

/**
 * The ids of purged accounts: of those that had the name, if no account has it now, or of the one with the
 * id.
 */
export async function purgedIds(store: AccountSource, nameOrId: string): Promise<Set<string>> {
  const purged = await purgedAccounts(store)
  const isFree = (await store.accountByName(nameOrId)) === null
  const meant = purged.filter(({ id, name }) => id === nameOrId || (isFree && name === nameOrId))
  return new Set(meant.map(({ id }) => id))
}

/** The account with this name or id, or the purged ones; the text itself as a name if there is none. */
export async function selectAccount(store: AccountSource, nameOrId: string): Promise<AccountSelection> {
  const account = (await store.accountByName(nameOrId)) ?? (await store.accountById(nameOrId))
  const purged = await purgedAccounts(store)
  const gone = account === null ? purged.find(({ id }) => id === nameOrId) : undefined
  const { id = null, name = nameOrId } = account ?? gone ?? {}
  if (id === null) return { accountId: null, name, sinceMs: 0, untilMs: Infinity }
  const untilMs = gone?.atMs ?? Infinity
  const former = purged.filter((each) => each.name === name && each.id !== id && each.atMs < untilMs)
  const keptMs = account === null ? 0 : await earliestWithoutTrail(store, account)
  return { accountId: id, name, sinceMs: Math.max(keptMs, ...former.map(({ atMs }) => atMs)), untilMs }
}

/**
 * When an account was made, if the trail may have lost a purge before it: it keeps a limited number of
 * entries, and an account of the same name may have been purged before its first one. Else 0.
 */
async function earliestWithoutTrail(
  { auditTrail }: AccountSource,
  { createdAtMs }: Account,
): Promise<number> {
  const query = { accountId: null, order: 'oldest_first', filter: {}, after: null, limit: 1 } as const
  const [oldest] = (await auditTrail.find(query)).entries
  return oldest === undefined || oldest.atMs <= createdAtMs + OVERLAP_MS ? 0 : createdAtMs
}

/** The condition of entries. */
export function withinOf(selection: AccountSelection): NonNullable<EntryFilter['within']> {
  const { accountId, name, sinceMs } = selection
  return { accountId: accountId ?? '', name, sinceMs }
}

/** Whether the use is the account's own; `path` is the names from the top of the tree to its account. */
export function isOwnUse(
  { accountId, name }: AccountSelection,
  use: Pick<AccountUse, 'accountId'>,
  path: readonly string[],
): boolean {
  return accountId === null ? path.at(-1) === name : use.accountId === accountId
}

/** Whether the use is that of an account that was below an account of the name. */
export function isUseBelow({ name }: AccountSelection, path: readonly string[]): boolean {
  const at = path.indexOf(name)
  return at !== -1 && at < path.length - 1
}

/** The ids of the account and of all below it. */
export async function withBelow(
  { store }: { readonly store: Pick<Store, 'childrenOf'> },
  accountId: string,
): Promise<Set<string>> {
  const found = new Set([accountId])
  for (const id of found) for (const child of await store.childrenOf(id)) found.add(child)
  return found
}
