/**
 * Plans and applies documents: what of the wanted objects exists, differs or is missing, and with `prune`
 * what is there without a document. An account with its members and keys is one transaction, which decides
 * again from the newest state; parents come first. The command and `POST /admin/v1/apply` use it.
 */
import { MAX_LEVELS, type Account, type ApiKey, type Member } from '../../accounts/account.js'
import { randomBase62 } from '../../accounts/key-secret.js'
import { maxKeysOf } from '../../accounts/keys.js'
import { MAX_LABELS } from '../../accounts/labels.js'
import type { Plans } from '../../accounts/plans.js'
import { isObject, type JsonObject } from '../../formats/chat/json.js'
import type { Steps } from '../../formats/wire/steps.js'
import type { AccountDecision, AccountState, AccountWrites } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { everyAccount, keyPages } from '../../store/list-all.js'
import { adminTurns } from '../../store/turn-queue.js'
import type { Store } from '../../store/store.js'
import {
  changeEntry,
  conflictProblem,
  decideAccount,
  decideKey,
  decideMember,
  differencesOf,
  freshKey,
  memberRemoval,
  revokedKey,
  type ChangeContext,
  type Differences,
  type FreshKey,
} from './decide-changes.js'
import { MANAGED_BY, titleOf, type DocumentFault, type WantedObject } from './documents.js'
import { accountValues, keyValues, memberValues } from './objects.js'
import { Problem, problemOf } from './problem-details.js'
import type { Actor } from './services.js'
import { ensureUser, signOutWithoutRole } from './members.js'

/** What to apply, and for whom. */
interface ApplyOptions {
  readonly store: Store
  readonly plans: Plans
  readonly now: () => number
  readonly actor: Actor
  readonly objects: readonly WantedObject[]
  /** Accounts whose documents have faults; an object may refer to them. Such a plan is never applied. */
  readonly faultyAccounts?: ReadonlySet<string>
  readonly prune: boolean
  /** The value of the label `managed-by`. */
  readonly managedBy: string
  /** Refuses an object that the caller may not change; null: it may. */
  readonly refusal?: (object: WantedObject, account: Account | null) => Promise<Problem | null>
}

/** A difference between the documents and the store. */
export interface PlannedChange {
  readonly action: 'create' | 'change' | 'remove'
  readonly kind: WantedObject['kind']
  readonly name: string
  readonly account: string
  readonly changes: Differences
  /** The document; null for what has none. */
  readonly index: number | null
}

/** The differences in the order of application, and the number of objects without one. */
export interface Plan {
  readonly changes: readonly PlannedChange[]
  readonly unchanged: number
  readonly faults: readonly DocumentFault[]
  readonly groups: readonly Group[]
  /** The accounts that the documents refer to, and those above them, by name. */
  readonly accounts: ReadonlyMap<string, Account>
}

/** What was applied. */
export interface Applied {
  readonly changes: readonly PlannedChange[]
  readonly unchanged: number
  readonly failures: readonly FailedAccount[]
}

/** Why nothing of an account was applied. */
interface Failure {
  readonly message: string
  /** Whether it may have been applied: the store did not say. */
  readonly isUnsure: boolean
}

/** An account that was not applied. */
export interface FailedAccount extends Failure {
  readonly account: string
}

/** An account with the documents about it. */
interface Group {
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
  /** Whether no document names the account, which has the label: it is disabled. */
  readonly isPruned: boolean
  /** Names of keys and addresses of members with the label that no document names. */
  readonly prunedKeys: readonly string[]
  readonly prunedMembers: readonly string[]
}

/** Groups that are decided at the same time; fewer, if they have more than `OBJECTS_AT_ONCE` together. */
const AT_ONCE = 16
const OBJECTS_AT_ONCE = 100
/** Members and keys that are decided in one step. */
const DECIDED_AT_ONCE = 20
/** Objects whose references are checked in one turn. */
const CHECKED_AT_ONCE = 200
/** Repetitions of a group whose account another process has made in the meantime. */
const MAX_TRIES = 10

/** Compares the documents with the store. Writes nothing. */
export async function planApply(options: ApplyOptions): Promise<Plan> {
  const accounts = await accountsOf(options)
  const { groups, faults } = await groupsOf(options, accounts)
  const parents = parentNames(accounts, groups)
  const changes: PlannedChange[] = []
  let unchanged = 0
  await inBatches(groups, async (group) => {
    const around = { parents, users: new Map(), fresh: new Map() }
    const planned = await decidedGroup(options, group, around)
    return () => {
      changes.push(...planned.changes)
      unchanged += planned.unchanged
      faults.push(...planned.faults)
    }
  })
  return { changes, unchanged, faults, groups, accounts }
}

/**
 * Applies a plan. `fresh`: ids and secrets of new keys by the place of their document; without one the
 * digests of the document are used.
 */
export async function runApply(
  options: ApplyOptions,
  { groups, accounts }: Plan,
  fresh: ReadonlyMap<number, FreshKey> = new Map(),
): Promise<Applied> {
  const changes: PlannedChange[] = []
  const failures: FailedAccount[] = []
  const failed = new Set<string>()
  const parents = parentNames(accounts, groups)
  let unchanged = 0
  const levels = Math.max(0, ...groups.map(({ level }) => level + 1))
  for (let level = 0; level < levels; level += 1) {
    const own = groups.filter((group) => group.level === level)
    await inBatches(own, async (group) => {
      const { name, parent } = group
      const applied =
        parent !== null && failed.has(parent)
          ? failure(`its parent ${parent} was not applied`)
          : await applyGroup(options, group, { parents, fresh })
      return () => {
        if ('message' in applied) {
          failed.add(name)
          failures.push({ account: name, ...applied })
        } else {
          changes.push(...applied.changes)
          unchanged += applied.unchanged
        }
      }
    })
  }
  return { changes, unchanged, failures }
}

/** Runs the work for all groups, some at a time; what it returns runs in the order of the groups. */
async function inBatches(
  groups: readonly Group[],
  work: (group: Group) => Promise<() => void>,
): Promise<void> {
  for (let at = 0; at < groups.length;) {
    const batch: Group[] = []
    for (let objects = 0; batch.length < AT_ONCE && objects < OBJECTS_AT_ONCE; at += 1) {
      const group = groups[at]
      if (group === undefined) break
      batch.push(group)
      objects += 1 + group.keys.length + group.members.length + group.prunedKeys.length
    }
    const done = await Promise.all(batch.map(work))
    for (const finish of done) finish()
    await adminTurns.next()
  }
}

/** More names than this are looked up by reading all accounts. */
const FEW = 50

/** The accounts that the documents refer to, and those above them; with `prune`, all. */
async function accountsOf({ store, objects, prune }: ApplyOptions): Promise<Map<string, Account>> {
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
function parentNames(accounts: ReadonlyMap<string, Account>, groups: readonly Group[]): Map<string, string> {
  const names = new Map<string, string>()
  for (const { id, name } of accounts.values()) names.set(id, name)
  for (const { id, name } of groups) names.set(id, name)
  return names
}

/** The groups, parents first, and the faults of references between documents. */
async function groupsOf(
  options: ApplyOptions,
  accounts: ReadonlyMap<string, Account>,
): Promise<{ groups: Group[]; faults: DocumentFault[] }> {
  const { objects, prune } = options
  const wanted = new Map(
    objects.filter(({ kind }) => kind === 'Account').map((object) => [object.name, object]),
  )
  const faults: DocumentFault[] = []
  const tree = new Tree(accounts, wanted)
  for (const [at, object] of objects.entries()) {
    if (at % CHECKED_AT_ONCE === CHECKED_AT_ONCE - 1) await adminTurns.next()
    const fault = await faultOf(object, { options, tree, accounts, wanted })
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
    const pruned =
      prune && existing !== null
        ? await prunedOf(options, existing, own)
        : { isPruned: false, prunedKeys: [], prunedMembers: [] }
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
  readonly accounts: ReadonlyMap<string, Account>
  readonly wanted: ReadonlyMap<string, WantedObject>
}

/** A missing account or parent, a loop, too many levels, or what the caller may not change. */
async function faultOf(
  object: WantedObject,
  { options, tree, accounts, wanted }: References,
): Promise<DocumentFault | null> {
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
      if (above.length >= MAX_LEVELS) return fault(place, `accounts have at most ${MAX_LEVELS} levels`)
    }
  }
  const labels = isObject(values['labels']) ? values['labels'] : {}
  const isFull = Object.keys(labels).length >= MAX_LABELS && !(MANAGED_BY in labels)
  if (isFull && !accounts.has(account)) {
    return fault(['metadata', 'labels'], `leave room for the label ${MANAGED_BY}`)
  }
  const refusal = (await options.refusal?.(object, accounts.get(account) ?? null)) ?? null
  return refusal === null ? null : fault([], refusal.message)
}

/** What of an account has the label and no document. */
async function prunedOf(
  { store, managedBy }: ApplyOptions,
  account: Account,
  own: readonly WantedObject[],
): Promise<Pick<Group, 'isPruned' | 'prunedKeys' | 'prunedMembers'>> {
  const isManaged = ({ labels }: { readonly labels?: Account['labels'] }): boolean => {
    return labels?.[MANAGED_BY] === managedBy
  }
  const names = new Set(own.map(({ kind, name }) => `${kind} ${name}`))
  const prunedKeys: string[] = []
  for await (const page of keyPages(store, account.id)) {
    for (const key of page) {
      const isThere = key.revokedAtMs === undefined && key.replacedBy === undefined
      if (isThere && isManaged(key) && !names.has(`Key ${key.name}`)) prunedKeys.push(key.name)
    }
    await adminTurns.next()
  }
  const members = await store.membersOf(account.id)
  const prunedMembers = members
    .filter((member) => isManaged(member) && !names.has(`Member ${member.email}`))
    .map(({ email }) => email)
  const isPruned = isManaged(account) && !account.disabled && own.length === 0
  return { isPruned, prunedKeys, prunedMembers }
}

/** What a decision needs beside the group and the state. */
interface Surroundings {
  readonly parents: ReadonlyMap<string, string>
  /** Ids of users by e-mail address; a user who does not exist yet is missing. */
  readonly users: ReadonlyMap<string, string>
  readonly fresh: ReadonlyMap<number, FreshKey>
}

/** The decision about a group. */
interface GroupDecision {
  readonly changes: PlannedChange[]
  unchanged: number
  readonly faults: DocumentFault[]
  readonly writes: AccountWrites
}

/** Reads the state of a group and decides, without writing. */
async function decidedGroup(
  options: ApplyOptions,
  group: Group,
  around: Surroundings,
): Promise<GroupDecision> {
  const { store, now } = options
  const nowMs = now()
  const result = await store.transact<GroupDecision>({
    ...{ accountId: group.id, nowMs, reads: readsOf(group) },
    *decide(state) {
      return { refuse: yield* decideGroup(options, group, { ...around, state, nowMs }) }
    },
  })
  if (result.kind === 'refused') return result.reason
  throw new Problem('bug', 'a plan writes nothing')
}

function readsOf({ members, keys, prunedKeys, prunedMembers }: Group) {
  return {
    members: [...members.map(({ name }) => name), ...prunedMembers],
    keys: [...keys.map(({ name }) => name), ...prunedKeys],
  }
}

/**
 * The labels of an object after the change: a new one gets the label `managed-by`, and one that has it keeps
 * it, also if the document has another value. So a second run changes nothing.
 */
function withManager(
  values: JsonObject,
  former: { readonly labels?: Account['labels'] } | null,
  managedBy: string,
): JsonObject {
  const labels = isObject(values['labels']) ? values['labels'] : {}
  const kept = former?.labels?.[MANAGED_BY]
  if (former === null) return { ...values, labels: { ...labels, [MANAGED_BY]: managedBy } }
  if (kept === undefined) return values
  return { ...values, labels: { ...labels, [MANAGED_BY]: kept } }
}

/** Decides about a group from its state. Pure. */
function* decideGroup(
  options: ApplyOptions,
  group: Group,
  around: Surroundings & { readonly state: AccountState; readonly nowMs: number },
): Steps<GroupDecision> {
  const { actor, managedBy } = options
  const { state, nowMs } = around
  const { account: former } = state
  const context = { nowMs, actor, accountId: group.id, account: group.name }
  const all = new Decisions(group)
  let account: Account | undefined
  if (group.account !== null) {
    const values = withManager(group.account.values, former, managedBy)
    const decided = decideAccount(former, values, around.parents, context)
    all.add(group.account, decided, setValues(decided.kind, accountValues(decided.item, null)))
    if (decided.kind !== 'unchanged') account = decided.item
  } else if (group.isPruned && former !== null && !former.disabled) {
    account = {
      ...former,
      disabled: true,
      updatedAtMs: Math.max(nowMs, (former.updatedAtMs ?? 0) + 1),
    }
    all.remove('Account', group.name, disabling(context))
  }
  const members = yield* decideMembers(group, { all, context, managedBy, ...around })
  const keys = yield* decideKeys(group, { all, context, managedBy, ...around })
  const writes = {
    ...(account === undefined ? {} : { account }),
    ...members,
    ...keys,
    audit: all.audit,
  }
  return { changes: all.changes, unchanged: all.unchanged, faults: all.faults, writes }
}

function disabling(context: ChangeContext): AuditEntry {
  const { accountId: target, account: detail } = context
  const change = { before: { disabled: false }, after: { disabled: true } }
  return changeEntry(context, { action: 'account.disable', target, detail, ...change })
}

interface GroupContext extends Surroundings {
  readonly all: Decisions
  readonly context: ChangeContext
  readonly managedBy: string
  readonly state: AccountState
}

function* decideMembers(
  { members: wanted, prunedMembers }: Group,
  { all, context, managedBy, state, users }: GroupContext,
): Steps<Pick<AccountWrites, 'members' | 'removedMembers'>> {
  const members: Member[] = []
  const removedMembers: string[] = []
  for (const [at, object] of wanted.entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const former = state.members.get(object.name) ?? null
    const values = withManager(object.values, former, managedBy)
    const userId = former?.userId ?? users.get(object.name) ?? ''
    const decided = decideMember(former, values, { userId, email: object.name }, context)
    all.add(object, decided, setValues(decided.kind, memberValues(decided.item)))
    if (decided.kind !== 'unchanged') members.push(decided.item)
  }
  for (const email of prunedMembers) {
    const member = state.members.get(email)
    if (member?.labels?.[MANAGED_BY] !== managedBy) continue
    removedMembers.push(email)
    all.remove('Member', email, memberRemoval(member, context))
  }
  return { members, removedMembers }
}

function* decideKeys(
  { keys: wanted, prunedKeys }: Group,
  { all, context, managedBy, state, fresh: given }: GroupContext,
): Steps<Pick<AccountWrites, 'keys' | 'newKeys'>> {
  const keys: ApiKey[] = []
  const newKeys: ApiKey[] = []
  for (const [at, object] of wanted.entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const { index, name, digest, newDigest } = object
    const former = state.keys.get(name) ?? null
    const fresh = given.get(index) ?? freshKey(digest ?? newDigest ?? 'planned')
    const values = withManager(object.values, former, managedBy)
    all.checkEnd(object, former, context.nowMs)
    const wish = { name, values, fresh, hasGivenSecret: digest !== null }
    const decided = decideKey(former, wish, context)
    all.add(object, decided, setValues(decided.kind, keyValues(decided.item)))
    keys.push(...decided.keys)
    newKeys.push(...decided.newKeys)
  }
  for (const [at, name] of prunedKeys.entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const key = state.keys.get(name)
    if (key?.labels?.[MANAGED_BY] !== managedBy) continue
    const { key: revoked, audit } = revokedKey(key, context)
    keys.push(revoked)
    all.remove('Key', name, audit)
  }
  return { keys, newKeys }
}

/** The fields that a new object sets. */
function setValues(kind: string, values: JsonObject): Differences {
  if (kind !== 'create') return {}
  const set = Object.entries(differencesOf({}, values)).filter(([, [, value]]) => {
    return value !== false && JSON.stringify(value) !== '{}'
  })
  return Object.fromEntries(set)
}

/** Collects the decisions about the objects of a group. */
class Decisions {
  readonly changes: PlannedChange[] = []
  readonly faults: DocumentFault[] = []
  readonly audit: AuditEntry[] = []
  unchanged = 0
  private readonly account: string

  constructor({ name }: Group) {
    this.account = name
  }

  add(
    { kind, name, index }: WantedObject,
    decided: {
      readonly kind: 'create' | 'change' | 'unchanged'
      readonly differences: Differences
      readonly audit: readonly AuditEntry[]
    },
    created: Differences,
  ): void {
    if (decided.kind === 'unchanged') {
      this.unchanged += 1
      return
    }
    const changes = decided.kind === 'create' ? created : decided.differences
    this.changes.push({ action: decided.kind, kind, name, account: this.account, changes, index })
    this.audit.push(...decided.audit)
  }

  remove(kind: WantedObject['kind'], name: string, entry: AuditEntry): void {
    const { account } = this
    this.changes.push({ action: 'remove', kind, name, account, changes: {}, index: null })
    this.audit.push(entry)
  }

  /** A key cannot be given an end in the past; one that has ended keeps its end. */
  checkEnd({ index, values }: WantedObject, former: ApiKey | null, nowMs: number): void {
    const { expires_at: end } = values
    if (typeof end !== 'string' || Date.parse(end) > nowMs) return
    if (former?.expiresAtMs === Date.parse(end)) return
    const message = 'a key cannot expire in the past'
    this.faults.push({ index, path: ['spec', 'expires_at'], atKey: false, message })
  }
}

interface ApplyContext {
  /** Names of accounts by id. */
  readonly parents: Map<string, string>
  readonly fresh: ReadonlyMap<number, FreshKey>
}

function failure(message: string, isUnsure = false): Failure {
  return { message, isUnsure }
}

/** Applies a group in one transaction. */
async function applyGroup(
  options: ApplyOptions,
  group: Group,
  { parents, fresh }: ApplyContext,
): Promise<Pick<GroupDecision, 'changes' | 'unchanged'> | Failure> {
  const { store, now } = options
  let isWriting = false
  try {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const users = await usersOf(options, group)
      const nowMs = now()
      const made: { decision: GroupDecision | null } = { decision: null }
      isWriting = true
      const result = await store.transact<Problem | 'unchanged'>({
        ...{ accountId: group.id, nowMs, reads: readsOf(group) },
        *decide(state) {
          const around = { parents, users, fresh, state, nowMs }
          const decision = yield* decideGroup(options, group, around)
          made.decision = decision
          return writesOrRefusal(options, group, { decision, state })
        },
      })
      isWriting = false
      if (result.kind === 'written' && made.decision !== null) {
        for (const email of result.writes.removedMembers ?? []) {
          const userId = result.before.members.get(email)?.userId
          if (userId !== undefined) await signOutWithoutRole(store, userId)
        }
        return made.decision
      }
      if (result.kind === 'refused') {
        if (result.reason === 'unchanged' && made.decision !== null) return made.decision
        return failure(result.reason instanceof Problem ? result.reason.message : 'it cannot be decided')
      }
      if (result.kind !== 'conflict') return failure('it was not written')
      if (result.conflict !== 'name_taken' || !group.isNew) {
        return failure(conflictProblem(result.conflict, group.name).message)
      }
      // Another process has made the account in the meantime.
      const there = await store.accountByName(group.name)
      if (there === null) continue
      const formerId = group.id
      group.id = there.id
      group.isNew = false
      // The id that was made for the plan has no account.
      parents.delete(formerId)
      parents.set(there.id, group.name)
    }
    return failure('other processes change it all the time')
  } catch (error) {
    return failure(problemOf(error).message, isWriting)
  }
}

function writesOrRefusal(
  { plans }: ApplyOptions,
  group: Group,
  { decision, state }: { readonly decision: GroupDecision; readonly state: AccountState },
): AccountDecision<Problem | 'unchanged'> {
  const { writes, changes, faults } = decision
  const [fault] = faults
  if (fault !== undefined) return { refuse: new Problem('invalid_field', fault.message) }
  if (changes.length === 0) return { refuse: 'unchanged' }
  const account = writes.account ?? state.account
  if (account === null) {
    return { refuse: new Problem('not_found', `there is no account "${group.name}"`) }
  }
  const created = new Set(changes.filter(({ action }) => action === 'create').map(({ index }) => index))
  const nameless = group.keys.find(({ index, digest, newDigest }) => {
    return digest === null && newDigest === null && created.has(index)
  })
  if (nameless !== undefined) {
    return { refuse: new Problem('invalid_field', `${titleOf(nameless)} ${NO_SECRET}`) }
  }
  const { newKeys = [], keys = [] } = writes
  const revoked = keys.filter(({ revokedAtMs }) => revokedAtMs !== undefined)
  const live = state.liveKeys + newKeys.length - revoked.length
  const most = maxKeysOf(plans, account.plan)
  if (newKeys.length > 0 && live > most) {
    const text = `the plan ${account.plan} allows ${most} keys, and the account would have ${live}`
    return { refuse: new Problem('plan_limit', text) }
  }
  return { write: writes }
}

/** Why a new key is refused. */
export const NO_SECRET =
  'is new and needs secret_file, secret_sha256 or kubernetes_secret: otherwise its secret would be lost'

/** The users of the wanted members, made if they do not exist. */
async function usersOf(
  { store, now, actor }: ApplyOptions,
  { members, id, name }: Group,
): Promise<Map<string, string>> {
  const users = new Map<string, string>()
  for (const { name: email } of members) {
    const context = { nowMs: now(), actor, accountId: id, account: name }
    users.set(email, (await ensureUser(store, email, context)).user.id)
  }
  return users
}
