/**
 * Changes of an account with its members and keys (`src/store/account-changes.ts`) in Redis: one script of
 * the account's slot, which writes if the account has not changed since it was read. What is in other slots
 * is written before (pointers of keys, a new parent, the users' lists of accounts) and taken back if the
 * script refuses; a new account gets its name last.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasName, MAX_LEVELS, type Account, type ApiKey, type User } from '../../../accounts/account.js'
import { numberedNames, accountNameOf } from '../../../accounts/names.js'
import type { Steps } from '../../../base/steps.js'
import {
  decisionSteps,
  isAnyNameTaken,
  type AccountChange,
  type AccountChangeResult,
  type AccountConflict,
  type AccountReads,
  type AccountState,
  type AccountWrites,
} from '../../account-changes.js'
import {
  readFormerLogin,
  writeAccount,
  writeKey,
  writeMember,
  writeUser,
} from '../../records/account-and-key-records.js'
import { renamedKeys } from '../../records/former-accounts.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { isAccountId, isName, type RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseAccount, parseKey, parseRecord } from '../connection/parse-replies.js'
import type { AccountTree } from './account-tree.js'
import type { RedisAuditTrail } from './audit-trail.js'
import * as layout from './key-names.js'
import { KEY_SCRIPTS } from './key-names.js'
import { claimPointers, releasePointers } from './key-pointers.js'
import { leftEnds, type RedisSignInTokens } from './sign-in-tokens.js'
import { parseMember, type RedisUsers } from './users.js'

/** The parts of the store that a change writes. */
interface TransactionsOptions {
  readonly engine: RedisEngine
  readonly users: RedisUsers
  readonly tree: AccountTree
  readonly signInTokens: RedisSignInTokens
  readonly trail: RedisAuditTrail
  /** As `StoreCapacity.keysPerAccount`. */
  readonly maxKeysPerAccount: number
  /** All keys of an account, the oldest first. */
  readonly keysOf: (accountId: string) => Promise<ApiKey[]>
  /** Called with each key that a change revokes: this process refuses it even if the store loses that. */
  readonly noteRevocation: (digest: string, atMs: number) => void
}

/** What was read of an account, and the count of its changes; empty if it does not exist. */
interface Read {
  readonly gen: string
  readonly state: AccountState
}

/** A refusal of the store, or null; `changed`: read and decide again. */
type Outcome = AccountConflict | 'changed' | null

const WHAT = 'changing an account'
/** After this time another process moves an account, because the one before was killed. */
const MOVE_MS = 10_000
const MOVE_POLL_MS = 20
/** Keys that are read in one command. */
const READ_AT_ONCE = 200
/** Records that are encoded in one step. */
const ENCODED_AT_ONCE = 100

/** The changes of one store. */
export class RedisTransactions {
  private readonly options: TransactionsOptions

  constructor(options: TransactionsOptions) {
    this.options = options
  }

  /** See `Store.transact`. */
  async transact<Reason>({
    accountId,
    reads = {},
    decide,
    nowMs,
  }: AccountChange<Reason>): Promise<AccountChangeResult<Reason>> {
    if (!isAccountId(accountId)) return { kind: 'conflict', conflict: 'bad_name' }
    for (;;) {
      const { gen, state: before } = await this.read(accountId, reads)
      const decision = await adminTurns.start(decisionSteps(decide(before)))
      if ('refuse' in decision) return { kind: 'refused', reason: decision.refuse }
      const writes = decision.write
      const outcome = await this.write(accountId, { gen, state: before }, writes, nowMs)
      if (outcome === null) return { kind: 'written', before, writes }
      if (outcome === 'changed') continue
      // The rule may be broken by a change that came after the decision, such as one that made the same key.
      const [now] = await this.hash(accountId, ['gen'])
      if ((now ?? '') === gen) return { kind: 'conflict', conflict: outcome }
    }
  }

  /**
   * Gives the account of an earlier version a name and a user, and its keys unique names. Every step can be
   * repeated: the name is kept, and one script writes the rest. Null if the account was never finished.
   */
  async named(id: string): Promise<Account | null> {
    const { engine, users, tree, keysOf } = this.options
    for (;;) {
      const [gen, text] = await this.hash(id, ['gen', 'account'])
      if (typeof text !== 'string') return null
      const former = parseAccount(WHAT, id, text)
      if (former.name !== '') return former
      const login = parseRecord(WHAT, `account '${id}'`, () => readFormerLogin(text))
      if ((await users.idOf(WHAT, login.user.email)) !== id) return null
      const account = { ...former, name: await this.claimName(tree, former, login.user.email) }
      await users.claimEmail(WHAT, login.user, 'prepareDurably')
      const keys = (await keysOf(id)).filter(hasName)
      const nowMs = Date.now()
      const renamed = new Map(renamedKeys(keys, nowMs).map((key) => [key.id, key]))
      const writes: AccountWrites = {
        account,
        members: [login.member],
        users: [login.user],
        keys: keys.map((key) => renamed.get(key.id) ?? key),
        audit: [],
      }
      const args = await this.argsOf(id, String(gen), writes, nowMs)
      const parameters = { keys: layout.keysOfAccount(id), args }
      const done = await engine.changes.runDurably(WHAT, KEY_SCRIPTS.changeAccount, parameters)
      if (done === 1) return account
    }
  }

  /** The first free name, or the one that a process which was killed has claimed. */
  private async claimName(tree: AccountTree, account: Account, email: string): Promise<string> {
    const claimed = await tree.nameOf(WHAT, account.id)
    if (claimed !== null) return claimed
    for (const name of numberedNames(accountNameOf(email))) {
      if ((await tree.place(WHAT, { ...account, name })) === null) return name
    }
    throw new Error('there is always a free number')
  }

  private async read(
    accountId: string,
    { members = [], keys: names = [], keyIds = [] }: AccountReads,
  ): Promise<Read> {
    const { tree, signInTokens } = this.options
    for (;;) {
      // The count is read first: the script compares it.
      const [gen, text, live, ends] = await this.hash(accountId, ['gen', 'account', 'live', 'ends'])
      if (typeof ends === 'string') {
        await signInTokens.finishEnds(layout.accountKey(accountId), ends)
        continue
      }
      const isThere = typeof text === 'string'
      if (!isThere) await this.options.engine.assertSameStore(WHAT)
      const account = isThere ? parseAccount(WHAT, accountId, text) : null
      if (account?.name === '') {
        if ((await this.named(accountId)) !== null) continue
      }
      const name = isThere ? await tree.nameOf(WHAT, accountId) : null
      const state = {
        account: name === null ? null : account,
        members: await this.members(accountId, name === null ? [] : members),
        keys: await this.namedKeys(accountId, name === null ? [] : names),
        keysById: await this.keysById(accountId, name === null ? [] : keyIds),
        liveKeys: Number(live ?? 0),
      }
      if (names.length + keyIds.length > READ_AT_ONCE) {
        const [now] = await this.hash(accountId, ['gen'])
        if (now !== gen) continue
      }
      return { gen: typeof gen === 'string' ? gen : '', state }
    }
  }

  private async members(accountId: string, which: readonly string[] | 'all') {
    const { admin } = this.options.engine
    const own = layout.membersKey(accountId)
    if (which.length === 0) return new Map()
    const texts = listOf(
      which === 'all'
        ? await admin.send(WHAT, 'hvals', [own])
        : await admin.send(WHAT, 'hmget', [own, ...which]),
    )
    const found = texts.filter((text) => typeof text === 'string')
    return new Map(found.map((text) => parseMember(WHAT, text)).map((each) => [each.email, each]))
  }

  /** The keys that have these names. */
  async namedKeys(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, ApiKey>> {
    const found = new Map<string, ApiKey>()
    for (let at = 0; at < names.length; at += READ_AT_ONCE) {
      const some = names.slice(at, at + READ_AT_ONCE)
      for (const key of await this.someKeys(accountId, some)) found.set(key.name, key)
    }
    return found
  }

  private async keysById(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, ApiKey>> {
    const found = new Map<string, ApiKey>()
    for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
      const some = ids.slice(at, at + READ_AT_ONCE)
      const digests = await this.hash(
        accountId,
        some.map((id) => `id:${id}`),
      )
      for (const key of await this.keysOfDigests(accountId, digests)) found.set(key.id, key)
    }
    return found
  }

  private async someKeys(accountId: string, names: readonly string[]): Promise<ApiKey[]> {
    const { admin } = this.options.engine
    const digests = listOf(await admin.send(WHAT, 'hmget', [layout.namesKey(accountId), ...names]))
    return (await this.keysOfDigests(accountId, digests)).filter(hasName)
  }

  private async keysOfDigests(accountId: string, digests: readonly unknown[]): Promise<ApiKey[]> {
    const found = digests.filter((digest) => typeof digest === 'string')
    if (found.length === 0) return []
    const fields = found.flatMap((digest) => [`key:${digest}`, `revoked:${digest}`])
    const texts = await this.hash(accountId, fields)
    const keys = found.map((digest, at) =>
      parseKey(WHAT, { digest, text: texts[2 * at], revoked: texts[2 * at + 1] }),
    )
    return keys.filter((key) => key !== null)
  }

  private async hash(accountId: string, fields: readonly string[]): Promise<unknown[]> {
    const args = [layout.accountKey(accountId), ...fields]
    return listOf(await this.options.engine.admin.send(WHAT, 'hmget', args))
  }

  /** Writes all or nothing. */
  private async write(accountId: string, read: Read, writes: AccountWrites, nowMs: number): Promise<Outcome> {
    const conflict = await this.conflictOf(accountId, read.state, writes, nowMs)
    if (conflict !== null) return conflict
    const { engine, signInTokens } = this.options
    const { account, users = [], newKeys = [], keys = [], purge, link = null } = writes
    const former = read.state.account
    if (purge === true) return this.purge(accountId, read, writes)
    for (const user of users) {
      const refusal = await this.options.users.prepare(WHAT, user, accountId)
      if (refusal !== null) return refusal
    }
    if (newKeys.length > 0 && !(await claimPointers(engine, WHAT, newKeys))) return 'id_taken'
    const isMoved = former !== null && account !== undefined && account.parentId !== former.parentId
    const isDone = (outcome: Outcome) => outcome === null
    const outcome = await signInTokens.withLink(link, isDone, () =>
      isMoved
        ? this.oneAtATime(() => this.move(account, read, writes, nowMs))
        : this.writeRecords(accountId, read, writes, nowMs),
    )
    if (outcome === null) {
      for (const { digest, revokedAtMs } of keys) {
        if (revokedAtMs !== undefined) this.options.noteRevocation(digest, revokedAtMs)
      }
      // If this fails, the next reader of the user, or of the account, does it.
      await this.settle(accountId, writes).catch(() => undefined)
    }
    if (outcome !== null && newKeys.length > 0) await releasePointers(engine, WHAT, newKeys)
    if (outcome !== null) for (const user of users) await this.options.users.withdraw(WHAT, user)
    return outcome
  }

  /** Does what a change that was made leaves to do in other slots. */
  private async settle(accountId: string, { users = [], ...signIns }: AccountWrites): Promise<void> {
    const left = leftEnds(signIns)
    if (left !== null) await this.options.signInTokens.finishEnds(layout.accountKey(accountId), left)
    for (const { id } of users) await this.options.users.settle(WHAT, id)
  }

  /** Writes what is in the account's slot; a new account then gets its name. */
  private writeRecords(
    accountId: string,
    read: Read,
    writes: AccountWrites,
    nowMs: number,
  ): Promise<Outcome> {
    const { engine, trail } = this.options
    const { account } = writes
    return trail.withAuditEntries(accountId, writes.audit, async (entryArgs): Promise<Outcome> => {
      const args = [...(await this.argsOf(accountId, read.gen, writes, nowMs)), ...entryArgs]
      const parameters = { keys: layout.keysOfAccount(accountId), args }
      const isNew = read.state.account === null && account !== undefined
      const step = isNew ? 'prepareDurably' : 'runDurably'
      const done = await engine.changes[step](WHAT, KEY_SCRIPTS.changeAccount, parameters)
      if (done === 'account_full') return 'account_full'
      if (done !== 1) return 'changed'
      return isNew ? this.finish(account, writes.users ?? []) : null
    })
  }

  /** Places the account below its new parent in the tree, then writes its record. */
  private async move(account: Account, read: Read, writes: AccountWrites, nowMs: number): Promise<Outcome> {
    const { tree } = this.options
    const { account: former } = read.state
    // After another move, taking this one back would place the account below a parent that it no longer has.
    const [gen] = await this.hash(account.id, ['gen'])
    if (gen !== read.gen) return 'changed'
    await this.finishMoves(account)
    const refusal = await tree.place(WHAT, account)
    if (refusal !== null) return refusal
    const outcome = await this.writeRecords(account.id, read, writes, nowMs)
    if (outcome !== null && former !== null) await tree.place(WHAT, former)
    return outcome
  }

  /**
   * Runs one move or purge of an account at a time, over all processes. Tree and records are in different
   * slots: two moves that each see half of the other one could make a loop.
   */
  private async oneAtATime<Result>(change: () => Promise<Result>): Promise<Result> {
    const { admin, changes } = this.options.engine
    const token = randomUUID()
    const claim = [layout.MOVE_KEY, token, 'NX', 'PX', String(MOVE_MS)]
    while ((await admin.send(WHAT, 'set', claim)) === null) await sleep(MOVE_POLL_MS)
    try {
      return await change()
    } finally {
      await changes.run(WHAT, KEY_SCRIPTS.deletePointer, { keys: [layout.MOVE_KEY], args: [token] })
    }
  }

  /**
   * Writes the parents of the tree into the records of the accounts above the new parent: a process that was
   * killed during a move has changed the tree alone, which would allow a loop of records.
   */
  private async finishMoves({ parentId }: Account): Promise<void> {
    for (let id = parentId, level = 0; id !== undefined && level < MAX_LEVELS; level += 1) {
      id = await this.finishMove(id)
    }
  }

  /** Repeated if the account changes between its read and the write. Returns its parent. */
  private async finishMove(id: string): Promise<string | undefined> {
    const { engine, tree } = this.options
    for (;;) {
      const parent = await tree.parentOf(WHAT, id)
      const { gen, state } = await this.read(id, {})
      if (state.account === null || state.account.parentId === parent) return parent
      const account = { ...state.account }
      delete account.parentId
      if (parent !== undefined) account.parentId = parent
      const args = await this.argsOf(id, gen, { account, audit: [] }, 0)
      const parameters = { keys: layout.keysOfAccount(id), args }
      if ((await engine.changes.runDurably(WHAT, KEY_SCRIPTS.changeAccount, parameters)) === 1) return parent
    }
  }

  /** Gives a new account its place in the lists and its name, or deletes it with its users. */
  private async finish(account: Account, made: readonly User[]): Promise<AccountConflict | null> {
    const { engine, users, tree } = this.options
    const { id } = account
    const order = { keys: layout.ORDER_KEYS, args: [id] }
    await engine.changes.prepareDurably(WHAT, KEY_SCRIPTS.listAccount, order)
    const outcome = await tree.place(WHAT, account, 'runDurably')
    if (outcome === null) return null
    for (const user of made) await users.withdraw(WHAT, user)
    await engine.admin.send(WHAT, 'del', layout.keysOfAccount(id))
    await engine.admin.send(WHAT, 'zrem', [layout.ORDER_KEYS[0], id])
    return outcome
  }

  private async purge(accountId: string, read: Read, writes: AccountWrites): Promise<Outcome> {
    const { engine, keysOf } = this.options
    const keys = await keysOf(accountId)
    const outcome = await this.oneAtATime(() => this.removeRecords(accountId, read, writes))
    if (outcome === null) await releasePointers(engine, WHAT, keys)
    return outcome
  }

  /** Not during a move of the account, which would place it in the tree again. */
  private async removeRecords(accountId: string, read: Read, writes: AccountWrites): Promise<Outcome> {
    const { engine, tree, trail } = this.options
    const conflict = await tree.close(WHAT, accountId)
    if (conflict !== null) return conflict
    const done = await trail.withAuditEntries(accountId, writes.audit, async (entryArgs) => {
      const args = [...(await this.argsOf(accountId, read.gen, writes, 0)), ...entryArgs]
      const parameters = { keys: layout.keysOfAccount(accountId), args }
      const answer = await engine.changes.runDurably(WHAT, KEY_SCRIPTS.changeAccount, parameters)
      if (answer === 1) await tree.remove(WHAT, accountId)
      return answer
    })
    if (done !== 1) await tree.open(WHAT, accountId)
    return done === 1 ? null : 'changed'
  }

  private async conflictOf(
    accountId: string,
    { account: former }: AccountState,
    {
      account = former ?? undefined,
      members = [],
      newKeys = [],
      keys = [],
      users: made = [],
      purge,
    }: AccountWrites,
    nowMs: number,
  ): Promise<AccountConflict | null> {
    if (account === undefined || purge === true) return null
    if (!isName(account.name) || account.id !== accountId) return 'bad_name'
    if (made.some(({ id, email }) => !isAccountId(id) || !isName(email))) return 'bad_name'
    if (newKeys.some(({ id, digest }) => !isName(id) || !isName(digest))) return 'bad_name'
    for (const { userId } of members) {
      const { users, engine } = this.options
      const isNew = made.some(({ id }) => id === userId)
      // The time of the change does not tell whether the user is new.
      if (!isNew && !(await users.rewrite(WHAT, userId))) return 'no_user'
      // The list may have accounts that the user is not a member of.
      const list = { keys: [layout.userAccountsKey(userId)], args: [accountId] }
      await engine.changes.prepareDurably(WHAT, 'sadd', list)
    }
    if (former !== null && newKeys.length > 0) {
      // The pointers of a key that exists are its own, and must stay.
      const fields = newKeys.flatMap(({ id, digest }) => [`key:${digest}`, `id:${id}`])
      if ((await this.hash(accountId, fields)).some((value) => value !== null)) return 'id_taken'
    }
    const written = [...keys, ...newKeys]
    const names = former === null ? [] : written.filter(hasName).map(({ name }) => name)
    const holders = await this.namedKeys(accountId, names)
    return isAnyNameTaken(written, holders, nowMs) ? 'name_taken' : null
  }

  /** The arguments of the script, without audit entries. */
  private async argsOf(id: string, gen: string, writes: AccountWrites, nowMs: number): Promise<string[]> {
    const { engine, maxKeysPerAccount } = this.options
    const text = await adminTurns.start(encodeWrites(id, writes, nowMs))
    return [gen, engine.channel, String(maxKeysPerAccount), text]
  }
}

function* encodeWrites(
  id: string,
  {
    account,
    users = [],
    members = [],
    removedMembers = [],
    ends,
    link,
    newKeys = [],
    keys = [],
    purge,
  }: AccountWrites,
  nowMs: number,
): Steps<string> {
  const login = users.find((user) => user.id === id)
  const left = leftEnds({ ends, link })
  const own = JSON.stringify({
    id,
    purge: purge === true,
    ...(account === undefined ? {} : { account: accountText(account) }),
    ...(login === undefined ? {} : { user: writeUser(login) }),
    ...(left === null ? {} : { ends: left }),
    removed: removedMembers,
  })
  const lists = {
    members: yield* encodeList(members, (member) => [member.email, writeMember(member)]),
    keys: yield* encodeList(keys, (key) => encodeKey(key, nowMs)),
    new: yield* encodeList(newKeys, (key) => encodeKey(key, nowMs)),
  }
  const parts = Object.entries(lists).map(([name, list]) => `"${name}":${list}`)
  return `${own.slice(0, -1)},${parts.join(',')}}`
}

function* encodeList<Item>(items: readonly Item[], encode: (item: Item) => string[]): Steps<string> {
  const parts: string[] = []
  for (let at = 0; at < items.length; at += ENCODED_AT_ONCE) {
    if (at > 0) yield
    parts.push(JSON.stringify(items.slice(at, at + ENCODED_AT_ONCE).map(encode)).slice(1, -1))
  }
  return `[${parts.join(',')}]`
}

/** Id, digest, record, name, how it has its name, and the time of its revocation, for the script. */
function encodeKey(key: ApiKey, nowMs: number): string[] {
  const { id, digest, name, expiresAtMs = Infinity, revokedAtMs = '' } = key
  const naming = !hasName(key) ? '' : expiresAtMs > nowMs ? 'taken' : 'if_free'
  return [id, digest, writeKey(key), name, naming, String(revokedAtMs)]
}

/** Order and number of live keys are stored beside the record in Redis, not in it. */
function accountText(account: Account): string {
  return writeAccount({ account, order: 0, liveKeys: 0 })
}
