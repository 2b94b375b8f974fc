/**
 * Groups the documents of `apply` by their accounts, parents first, with what `--prune` removes; reports
 * references between documents that lead nowhere.
 */
import type { TokenBounds } from '../../accounts/changes/bounds.js'
import type { Actor } from '../../accounts/changes/decide.js'
import { MANAGED_BY } from '../../accounts/labels.js'
import { MAX_LEVELS, type Account } from '../../accounts/account.js'
import { randomBase62 } from '../../accounts/key-secret.js'
import { MAX_LABELS } from '../../accounts/labels.js'
import type { Plans } from '../../accounts/plans.js'
import { isObject } from '../../base/json.js'
import { everyAccount } from '../../store/list-all.js'
import type { Store } from '../../store/store.js'
import { adminTurns } from '../../base/turn-queue.js'
import { type DocumentFault, type WantedObject } from './documents.js'
import type { Refused } from '../problem-details.js'
import { NOTHING_PRUNED, prunedOf, type Pruned } from './prune.js'

/** What to apply, and for whom. */
export interface ApplyOptions {
  readonly store: Store
  readonly plans: Plans
  readonly now: () => number
  readonly actor: Actor
  readonly objects: readonly WantedObject[]
  /** Accounts whose documents have faults; an object may refer to them. Such a plan is never applied. */
  readonly faultyAccounts?: ReadonlySet<string>
  readonly prune: boolean
  /** The value of the label `managed-by`; of the form of `isOwnName` for a caller with an account. */
  readonly managedBy: string
  /** Whether accounts are taken over that `apply` did not make: those without the label. */
  readonly adopt: boolean
  /** What the caller may give; null or absent: everything. */
  readonly bounds?: TokenBounds | null
  /** What the caller sees; absent: all accounts. The others do not exist for it. */
  readonly view?: AccountView
  /**
   * Reads what decides whether the caller may change objects of the account in this state (null: it does not
   * exist). Absent: the caller may change everything.
   */
  readonly permissionFor?: (account: Account | null, objects: readonly WantedObject[]) => Promise<Permission>
}

/** The part of the tree of accounts that a caller sees. */
export interface AccountView {
  readonly sees: (account: Account) => Promise<boolean>
  /** The number of accounts above this part. */
  readonly levelsAbove: number
}

/** Why the caller may not change an object; null: it may. */
export type Permission = (object: WantedObject) => Refused | null

/** What an account has that is taken over. */
export interface Holdings {
  readonly keys: readonly string[]
  /** Addresses with the roles: `ada@example.com (owner)`. */
  readonly members: readonly string[]
  readonly parent: string | null
}

/** An account with the documents about it. */
export interface Group extends Pruned {
  readonly name: string
  /** Its id; that of a new account was made for this plan. */
  id: string
  isNew: boolean
  /** 0 for an account without a parent. */
  readonly level: number
  /** The name of its parent after the change. */
  readonly parent: string | null
  readonly account: WantedObject | null
  readonly members: readonly WantedObject[]
  readonly keys: readonly WantedObject[]
}

/** Objects whose references are checked in one turn. */
const CHECKED_AT_ONCE = 200
/** More names than this are looked up by reading all accounts. */
const FEW = 50

/** The accounts that the documents refer to, and those above them; with `prune`, all. */
export async function accountsOf({ store, objects, prune }: ApplyOptions): Promise<Map<string, Account>> {
  const accounts = new Map<string, Account>()
  const names = new Set(objects.map(({ account }) => account))
  for (const { values } of objects) {
    if (typeof values['parent'] === 'string') names.add(values['parent'])
  }
  if (prune || names.size > FEW) {
    for await (const account of everyAccount(store)) accounts.set(account.name, account)
    return accounts
  }
  for (const name of names) {
    const account = await store.accountByName(name)
    if (account === null) continue
    for (const each of [account, ...(await store.ancestorsOf(account))]) accounts.set(each.name, each)
  }
  return accounts
}

/** The names of all accounts by id, those of new ones included. */
export function parentNames(
  accounts: ReadonlyMap<string, Account>,
  groups: readonly Group[],
): Map<string, string> {
  const names = new Map<string, string>()
  for (const { id, name } of accounts.values()) names.set(id, name)
  for (const { id, name } of groups) names.set(id, name)
  return names
}

/** The accounts that the caller sees. */
async function seenOf(
  { view }: ApplyOptions,
  accounts: ReadonlyMap<string, Account>,
): Promise<ReadonlyMap<string, Account>> {
  if (view === undefined) return accounts
  const seen = new Map<string, Account>()
  for (const [name, account] of accounts) if (await view.sees(account)) seen.set(name, account)
  return seen
}

/** The groups, parents first, and the faults of references between documents. */
export async function groupsOf(
  options: ApplyOptions,
  accounts: ReadonlyMap<string, Account>,
): Promise<{ groups: Group[]; faults: DocumentFault[] }> {
  const { objects, prune, view } = options
  const wanted = new Map(
    objects.filter(({ kind }) => kind === 'Account').map((object) => [object.name, object]),
  )
  const faults: DocumentFault[] = []
  const seen = await seenOf(options, accounts)
  const tree = new Tree(seen, wanted)
  const levelsAbove = view?.levelsAbove ?? 0
  for (const [at, object] of objects.entries()) {
    if (at % CHECKED_AT_ONCE === CHECKED_AT_ONCE - 1) await adminTurns.next()
    const fault = faultOf(object, { options, tree, accounts: seen, wanted, levelsAbove })
    if (fault !== null) faults.push(fault)
  }
  const byAccount = new Map<string, WantedObject[]>()
  for (const object of objects) {
    const own = byAccount.get(object.account)
    if (own === undefined) byAccount.set(object.account, [object])
    else own.push(object)
  }
  const names = new Set(byAccount.keys())
  if (prune) for (const name of accounts.keys()) names.add(name)
  const groups: Group[] = []
  for (const name of names) {
    const existing = accounts.get(name) ?? null
    const own = byAccount.get(name) ?? []
    const account = wanted.get(name) ?? null
    const group = {
      ...{ name, account, level: tree.levelOf(name), parent: tree.parentOf(name) },
      id: existing?.id ?? `acc_${randomBase62(16)}`,
      isNew: existing === null,
      members: own.filter(({ kind }) => kind === 'Member'),
      keys: own.filter(({ kind }) => kind === 'Key'),
    }
    const pruned = prune && existing !== null ? await prunedOf(options, existing, own) : NOTHING_PRUNED
    const isEmpty = own.length === 0 && !pruned.isPruned && pruned.prunedKeys.length === 0
    if (!isEmpty || pruned.prunedMembers.length > 0) groups.push({ ...group, ...pruned })
    if (prune) await adminTurns.next()
  }
  return { groups: groups.sort((a, b) => a.level - b.level), faults }
}

/** The parents after the change. */
class Tree {
  private readonly byId = new Map<string, string>()
  private readonly accounts: ReadonlyMap<string, Account>
  private readonly wanted: ReadonlyMap<string, WantedObject>

  constructor(accounts: ReadonlyMap<string, Account>, wanted: ReadonlyMap<string, WantedObject>) {
    this.accounts = accounts
    this.wanted = wanted
    for (const { id, name } of accounts.values()) this.byId.set(id, name)
  }

  parentOf(name: string): string | null {
    const wanted = this.wanted.get(name)
    if (wanted !== undefined) {
      const { parent } = wanted.values
      return typeof parent === 'string' ? parent : null
    }
    const { parentId } = this.accounts.get(name) ?? {}
    return parentId === undefined ? null : (this.byId.get(parentId) ?? null)
  }

  /** The accounts above; a loop ends the list. */
  above(name: string): string[] {
    const found: string[] = []
    for (let at = this.parentOf(name); at !== null && !found.includes(at); at = this.parentOf(at)) {
      found.push(at)
    }
    return found
  }

  levelOf(name: string): number {
    return this.above(name).length
  }
}

interface References {
  readonly options: ApplyOptions
  readonly tree: Tree
  /** Those that the caller sees. */
  readonly accounts: ReadonlyMap<string, Account>
  readonly wanted: ReadonlyMap<string, WantedObject>
  readonly levelsAbove: number
}

/** A missing account or parent, a loop, or too many levels. */
function faultOf(
  object: WantedObject,
  { options, tree, accounts, wanted, levelsAbove }: References,
): DocumentFault | null {
  const { index, kind, name, account, values } = object
  const fault = (path: string[], message: string): DocumentFault => {
    return { index, path, atKey: false, message }
  }
  const isFaulty = (each: string): boolean => options.faultyAccounts?.has(each) === true
  const isKnown = (each: string) => accounts.has(each) || wanted.has(each) || isFaulty(each)
  if (kind !== 'Account') {
    if (!isKnown(account)) return fault(['metadata', 'account'], `there is no account "${account}"`)
  } else {
    const { parent } = values
    const place = ['spec', 'parent']
    if (typeof parent === 'string') {
      if (!isKnown(parent)) return fault(place, `there is no account "${parent}"`)
      const above = tree.above(name)
      if (above.includes(name)) return fault(place, `"${parent}" is below "${name}": a loop`)
      if (above.length + levelsAbove >= MAX_LEVELS)
        return fault(place, `accounts have at most ${MAX_LEVELS} levels`)
    }
  }
  const labels = isObject(values['labels']) ? values['labels'] : {}
  const isFull = Object.keys(labels).length >= MAX_LABELS && !(MANAGED_BY in labels)
  if (isFull && !accounts.has(account)) {
    return fault(['metadata', 'labels'], `leave room for the label ${MANAGED_BY}`)
  }
  return null
}
