/**
 * Plans and applies documents: what of the wanted objects exists, differs or is missing, and with `prune`
 * what is there without a document. An account with its members and keys is one transaction, which decides
 * again from the newest state; parents come first. The command and `POST /admin/v1/apply` use it.
 */
import { without } from '../../accounts/changes/field-types.js'
import { documentLimits } from './token-bounds.js'
import { Refusal } from '../../accounts/changes/refusal.js'
import { withEnd, type TokenBounds, accountBeyond } from '../../accounts/changes/bounds.js'
import {
  type ChangeContext,
  type Differences,
  type FreshKey,
  changeEntry,
  conflictRefusal,
  decideAccount,
  decideKey,
  decideMember,
  decideRevocation,
  differencesOf,
  freshKey,
  memberRemoval,
} from '../../accounts/changes/decide.js'
import { accountValues, keyValues, memberValues } from '../../accounts/changes/fields.js'
import { MANAGED_BY } from '../../accounts/labels.js'
import { isOwnName } from '../../accounts/names.js'
import {
  hasName,
  roleOf,
  type Account,
  type ApiKey,
  type Member,
  type KeyLimits,
} from '../../accounts/account.js'
import { endsOf } from '../../accounts/changes/change-accounts.js'
import { EndedSignIns } from '../../accounts/ended-sign-ins.js'
import { isFull, planFull } from '../../accounts/changes/change-keys.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { Steps } from '../../base/steps.js'
import type { AccountDecision, AccountState, AccountWrites } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { keyPages } from '../../store/list-all.js'
import { adminTurns } from '../../base/turn-queue.js'
import type { Store } from '../../store/store.js'
import { titleOf, type DocumentFault, type WantedObject, fieldPath, sentenceOf } from './documents.js'
import {
  accountsOf,
  groupsOf,
  parentNames,
  type ApplyOptions,
  type Group,
  type Holdings,
  type Permission,
} from './group-documents.js'
import { Problem, problemOf, type Refused } from '../problem-details.js'
import { newAccountOf, rolesOf, usersOf, withUsers } from './apply-users.js'

/** A difference between the documents and the store. */
export interface PlannedChange {
  readonly action: 'create' | 'change' | 'remove'
  readonly kind: WantedObject['kind']
  readonly name: string
  readonly account: string
  readonly changes: Differences
  /** What an account has that is taken over; absent for others. */
  readonly adopts?: Holdings
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
interface FailedAccount extends Failure {
  readonly account: string
}

/** Groups that are decided at the same time; fewer, if they have more than `OBJECTS_AT_ONCE` together. */
const AT_ONCE = 16
const OBJECTS_AT_ONCE = 100
/** Members and keys that are decided in one step. */
const DECIDED_AT_ONCE = 20
/** Repetitions of a group whose account another process has made in the meantime. */
const MAX_TRIES = 10

/** Compares the documents with the store. Writes nothing. */
export async function planApply(options: ApplyOptions): Promise<Plan> {
  const accounts = await accountsOf(options)
  const { groups, faults } = await groupsOf(options, accounts)
  const parents = parentNames(accounts, groups)
  const changes: PlannedChange[] = []
  let unchanged = 0
  // What else is wrong depends on accounts that the caller may not see.
  const faulty = new Set(faults.map(({ index }) => index))
  const sound = groups.filter((group) => objectsOf(group).every(({ index }) => !faulty.has(index)))
  await inBatches(sound, async (group) => {
    const basis = await basisOf(options, group, parents)
    const around = { parents, users: new Map(), fresh: new Map(), basis }
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
          : await applyGroup(options, group, { parents, fresh, planned: accounts.get(name) ?? null })
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

/** What of an account a decision assumes, read outside of the transaction. */
interface Basis {
  readonly account: Account | null
  readonly permission: Permission
  /** The limits that the account must keep within, and those for its keys. */
  readonly most: { readonly account: readonly KeyLimits[]; readonly keys: readonly KeyLimits[] }
  /** Null for an account that `apply` made, and for a new one. */
  readonly holdings: Holdings | null
}

function objectsOf({ account, members, keys }: Group): readonly WantedObject[] {
  return [...(account === null ? [] : [account]), ...members, ...keys]
}

/**
 * Whether `apply` made the account, for this caller: for one of the whole gateway not what the token of an
 * account has applied, which has keys that others hold.
 */
function isManagedFor({ view }: ApplyOptions, { labels }: Account): boolean {
  const manager = labels?.[MANAGED_BY]
  return manager !== undefined && (view !== undefined || !isOwnName(manager))
}

async function basisOf(
  options: ApplyOptions,
  group: Group,
  parents: ReadonlyMap<string, string>,
): Promise<Basis> {
  const { store, plans, objects: all, permissionFor } = options
  const { id, name, account: wanted, keys } = group
  const account = await store.accountById(id)
  const permission = (await permissionFor?.(account, objectsOf(group))) ?? (() => null)
  const isForeign =
    wanted !== null && account !== null && !isManagedFor(options, account) && permission(wanted) === null
  const holdings = isForeign ? await holdingsOf(store, account, parents) : null
  const documents = new Map(all.filter(({ kind }) => kind === 'Account').map((each) => [each.name, each]))
  const limitsOf = (of: JsonValue | undefined): Promise<KeyLimits[]> => {
    return documentLimits({ store, plans }, documents, typeof of === 'string' ? of : null)
  }
  const most = {
    account: wanted === null ? [] : await limitsOf(wanted.values['parent']),
    keys: keys.length === 0 ? [] : await limitsOf(name),
  }
  return { account, permission, most, holdings }
}

async function holdingsOf(
  store: Store,
  account: Account,
  parents: ReadonlyMap<string, string>,
): Promise<Holdings> {
  const keys: string[] = []
  for await (const page of keyPages(store, account.id)) {
    keys.push(...page.filter(hasName).map(({ name }) => name))
    await adminTurns.next()
  }
  const members = (await store.membersOf(account.id)).map((member) => {
    return `${member.email} (${roleOf(member) ?? 'none'})`
  })
  const { parentId } = account
  const known = parentId === undefined ? null : (parents.get(parentId) ?? null)
  const parent = known ?? (parentId === undefined ? null : await store.accountById(parentId))
  return { keys, members, parent: typeof parent === 'string' ? parent : (parent?.name ?? null) }
}

/** `its keys: a, b; its members: ada@example.com (owner); its parent: none` */
export function holdingsText({ keys, members, parent }: Holdings): string {
  const list = (names: readonly string[]): string => {
    const more = names.length > MAX_LISTED ? `, and ${names.length - MAX_LISTED} more` : ''
    return names.length === 0 ? 'none' : names.slice(0, MAX_LISTED).join(', ') + more
  }
  return `its keys: ${list(keys)}; its members: ${list(members)}; its parent: ${parent ?? 'none'}`
}

/** Names in a text. */
const MAX_LISTED = 20

/** What a decision needs beside the group and the state. */
interface Surroundings {
  readonly basis: Basis
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
 * The labels of an object after the change: a new or adopted one gets the label `managed-by`, and one that
 * has it keeps it, also if the document has another value. So a second run changes nothing.
 */
function withManager(
  values: JsonObject,
  former: { readonly labels?: Account['labels'] } | null,
  managedBy: string,
  isAdopted = false,
): JsonObject {
  const labels = isObject(values['labels']) ? values['labels'] : {}
  const kept = former?.labels?.[MANAGED_BY]
  if (former === null || isAdopted) return { ...values, labels: { ...labels, [MANAGED_BY]: managedBy } }
  if (kept === undefined) return values
  return { ...values, labels: { ...labels, [MANAGED_BY]: kept } }
}

/** Decides about a group from its state. Pure. */
function* decideGroup(
  options: ApplyOptions,
  group: Group,
  around: Surroundings & { readonly state: AccountState; readonly nowMs: number },
): Steps<GroupDecision> {
  const { actor, managedBy, bounds = null, adopt } = options
  const { state, nowMs } = around
  const { account: former } = state
  const context = { nowMs, actor, accountId: group.id, account: group.name }
  const all = new Decisions(group)
  yield* addRefusals(group, { all, ...around })
  // Other faults would tell what the caller does not see: limits, members and keys.
  if (all.faults.length > 0) {
    return { changes: [], unchanged: 0, faults: all.faults, writes: { audit: [] } }
  }
  let account: Account | undefined
  if (group.account !== null) {
    const isAdopted = former !== null && !isManagedFor(options, former)
    if (isAdopted && !adopt) all.refuseForeign(group.account, around.basis.holdings)
    const { most } = around.basis
    const values = withManager(group.account.values, former, managedBy, isAdopted)
    const isTaken = former === null || isAdopted
    const refusal = refusedAccount(bounds, { values, former, isTaken, most: most.account })
    if (refusal !== null) all.refuseValue(group.account, refusal)
    const decided = decideAccount(former, values, around.parents, context)
    const holdings = isAdopted ? around.basis.holdings : null
    all.add(group.account, decided, setValues(decided.kind, accountValues(decided.item, null)), holdings)
    if (decided.kind !== 'unchanged') account = decided.item
  } else if (group.isPruned && former !== null && !former.disabled) {
    account = {
      ...former,
      disabled: true,
      updatedAtMs: Math.max(nowMs, (former.updatedAtMs ?? 0) + 1),
    }
    all.remove('Account', group.name, disabling(context))
  }
  const members = yield* decideMembers(group, { all, context, managedBy, bounds, ...around })
  const keys = yield* decideKeys(group, { all, context, managedBy, bounds, ...around })
  const writes = {
    ...(account === undefined ? {} : { account, ends: endsOf(former, account) }),
    ...members,
    ...keys,
    audit: all.audit,
  }
  return { changes: all.changes, unchanged: all.unchanged, faults: all.faults, writes }
}

/** The first value of an account that the caller may not give. */
function refusedAccount(
  bounds: TokenBounds | null,
  {
    values,
    former,
    isTaken,
    most,
  }: {
    readonly values: JsonObject
    readonly former: Account | null
    /** Whether `apply` gives the account its label, which the caller itself may not. */
    readonly isTaken: boolean
    readonly most: readonly KeyLimits[]
  },
): Refusal | null {
  const before = former === null ? {} : accountValues(former, null)
  if (!isTaken) return accountBeyond(bounds, { values, before, most })
  return accountBeyond(bounds, { values: withoutManager(values), before: withoutManager(before), most })
}

function withoutManager(values: JsonObject): JsonObject {
  const labels = isObject(values['labels']) ? without(values['labels'], MANAGED_BY) : {}
  return { ...values, labels }
}

/** Reports what the caller may not change. */
function* addRefusals(group: Group, { all, basis }: Surroundings & { readonly all: Decisions }): Steps<void> {
  for (const [at, object] of objectsOf(group).entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const refusal = basis.permission(object)
    if (refusal !== null) all.refuse(object, [], refusal.message)
  }
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
  readonly bounds: TokenBounds | null
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
  { all, context, managedBy, bounds, state, basis, fresh: given }: GroupContext,
): Steps<Pick<AccountWrites, 'keys' | 'newKeys'>> {
  const keys: ApiKey[] = []
  const newKeys: ApiKey[] = []
  for (const [at, object] of wanted.entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const { index, name, digest, newDigest, imported } = object
    const former = state.keys.get(name) ?? null
    const fresh = given.get(index) ?? freshKey(digest ?? newDigest ?? 'planned')
    const isNewSecret = former === null || (digest !== null && former.digest !== digest)
    const latestMs = bounds?.endsAtMs ?? null
    const ending = withEnd(object.values, isNewSecret ? null : keyValues(former), latestMs)
    const values = withManager(ending, former, managedBy)
    const wish = { name, values, fresh, hasGivenSecret: digest !== null, imported }
    const decided = decideKey(former, wish, { bounds, most: basis.most.keys }, context)
    if (decided instanceof Refusal) {
      all.refuseValue(object, decided)
      continue
    }
    all.add(object, decided, setValues(decided.kind, keyValues(decided.item)))
    keys.push(...decided.keys)
    newKeys.push(...decided.newKeys)
  }
  for (const [at, name] of prunedKeys.entries()) {
    if (at % DECIDED_AT_ONCE === DECIDED_AT_ONCE - 1) yield
    const key = state.keys.get(name)
    if (key?.labels?.[MANAGED_BY] !== managedBy) continue
    const { key: revoked, audit } = decideRevocation(key, context)
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
    adopts: Holdings | null = null,
  ): void {
    if (decided.kind === 'unchanged') {
      this.unchanged += 1
      return
    }
    const changes = decided.kind === 'create' ? created : decided.differences
    const adopted = adopts === null ? {} : { adopts }
    this.changes.push({ action: decided.kind, kind, name, account: this.account, changes, ...adopted, index })
    this.audit.push(...decided.audit)
  }

  remove(kind: WantedObject['kind'], name: string, entry: AuditEntry): void {
    const { account } = this
    this.changes.push({ action: 'remove', kind, name, account, changes: {}, index: null })
    this.audit.push(entry)
  }

  refuse({ index }: WantedObject, path: readonly string[], message: string): void {
    this.faults.push({ index, path, atKey: false, message })
  }

  /** A refused value. */
  refuseValue(object: WantedObject, { refusal, field = '', detail, fix = '' }: Refusal): void {
    if (refusal === 'forbidden') this.refuse(object, [], `${titleOf(object)}: ${detail}`)
    else this.refuse(object, fieldPath(field), sentenceOf(detail, fix))
  }

  /** Another user made the account with this name, and may have a key and a role in it. */
  refuseForeign(object: WantedObject, holdings: Holdings | null): void {
    const has = holdings === null ? '' : ` (${holdingsText(holdings)})`
    const message = `account ${object.name} exists, and apply did not make it${has}: adopt it (--adopt) to take it over, or use another name`
    this.refuse(object, ['metadata', 'name'], message)
  }
}

interface ApplyContext {
  /** The account that the plan was made for; null: a new one. */
  readonly planned: Account | null
  /** Names of accounts by id. */
  readonly parents: Map<string, string>
  readonly fresh: ReadonlyMap<number, FreshKey>
}

/** Takes the account that another process has made since the plan, instead of a new one. */
async function findMeanwhileMade(store: Store, group: Group, parents: Map<string, string>): Promise<void> {
  if (!group.isNew) return
  const there = await store.accountByName(group.name)
  if (there === null) return
  // The id that was made for the plan has no account.
  parents.delete(group.id)
  parents.set(there.id, group.name)
  group.id = there.id
  group.isNew = false
}

/** Whether it is the account in the same state: permission that was given for the one holds for the other. */
function isSameAccount(one: Account | null, other: Account | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function failure(message: string, isUnsure = false): Failure {
  return { message, isUnsure }
}

/** Applies a group in one transaction. */
async function applyGroup(
  options: ApplyOptions,
  group: Group,
  { parents, fresh, planned: plannedFor }: ApplyContext,
): Promise<Pick<GroupDecision, 'changes' | 'unchanged'> | Failure> {
  const { store, now } = options
  let planned = plannedFor
  let isWriting = false
  // The users whose sign-ins a change may end.
  let concerned: readonly string[] = []
  try {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      await findMeanwhileMade(store, group, parents)
      const basis = await basisOf(options, group, parents)
      const isRefused = objectsOf(group).some((object) => basis.permission(object) !== null)
      if (isRefused || !isSameAccount(basis.account, planned)) {
        const around = { parents, users: new Map(), fresh, basis }
        const [fault] = (await decidedGroup(options, group, around)).faults
        if (fault !== undefined) return failure(fault.message)
        planned = basis.account
      }
      const { users, made: madeUsers } = await usersOf(options, group)
      const nowMs = now()
      const place = basis.account ?? newAccountOf(group, parents, nowMs)
      const signIns = await new EndedSignIns(store, place, nowMs).read(...concerned)
      const made: { decision: GroupDecision | null } = { decision: null }
      isWriting = true
      const result = await store.transact<Refused | 'unchanged' | 'again'>({
        ...{ accountId: group.id, nowMs, reads: readsOf(group) },
        *decide(state) {
          if (!isSameAccount(state.account, basis.account)) return { refuse: 'again' }
          const around = { parents, users, fresh, state, nowMs, basis }
          const decision = yield* decideGroup(options, group, around)
          made.decision = decision
          const ready = writesOrRefusal(options, group, { decision, state })
          if ('refuse' in ready) return ready
          const known = rolesOf(ready.write, state).filter(({ after }) => !madeUsers.has(after?.userId ?? ''))
          concerned = signIns.unread(known)
          if (concerned.length > 0) return { refuse: 'again' }
          const context = { nowMs, actor: options.actor, accountId: group.id, account: group.name }
          const writes = withUsers(ready.write, madeUsers, context)
          return { write: { ...writes, ends: [...(writes.ends ?? []), ...signIns.withRoles(known)] } }
        },
      })
      isWriting = false
      if (result.kind === 'written' && made.decision !== null) return made.decision
      if (result.kind === 'refused') {
        if (result.reason === 'again') continue
        if (result.reason === 'unchanged' && made.decision !== null) return made.decision
        return failure(result.reason instanceof Error ? result.reason.message : 'it cannot be decided')
      }
      if (result.kind !== 'conflict') return failure('it was not written')
      // Another process has made the user of a member meanwhile.
      if (result.conflict === 'email_taken') continue
      if (result.conflict !== 'name_taken' || !group.isNew) {
        return failure(conflictRefusal(result.conflict, group.name).message)
      }
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
): AccountDecision<Refused | 'unchanged'> {
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
  const liveKeys = state.liveKeys + newKeys.length - revoked.length - 1
  if (newKeys.length > 0 && isFull({ plans }, account, { liveKeys, account })) {
    return { refuse: planFull(plans, account.plan) }
  }
  return { write: writes }
}

/** Why a new key is refused. */
export const NO_SECRET =
  'is new and needs secret_file, secret_sha256 or kubernetes_secret: otherwise its secret would be lost'
