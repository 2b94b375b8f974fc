/**
 * Users in Redis. A user exists when the pointer of its e-mail address names it and its record exists. One
 * that is made with a change of an account is written before, and exists once it is a member: the next user
 * with the address takes the place of one whose change was not made.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { comparableEmail, type Member, type User } from '../../../accounts/account.js'
import type { UsersByEmail } from '../../account-changes.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import {
  editedUser,
  readMember,
  readUser,
  writeMember,
  writeUser,
} from '../../records/account-and-key-records.js'
import type { AddedSignIn, ChangedSignIns } from '../../sign-in-tokens.js'
import type { Page, UserEdit, UserOutcome, Users } from '../../store.js'
import { isAccountId, isName, type RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseRecord, stringsOf } from '../connection/parse-replies.js'
import type { AccountTree, Step } from './account-tree.js'
import type { RedisAuditTrail } from './audit-trail.js'
import * as layout from './key-names.js'
import { KEY_SCRIPTS } from './key-names.js'
import { COMPARE_AND_SET, guarded, type GuardedChange } from '../connection/script.js'
import { leftEnds, type RedisSignInTokens } from './sign-in-tokens.js'

/** How long a change may take from the claim of an address until it is made, before another one takes it. */
const CHANGE_MS = 400
const CLAIM_POLL_MS = 20

/** The parts of the store that users need. */
interface UsersOptions {
  readonly engine: RedisEngine
  readonly tree: AccountTree
  readonly signInTokens: RedisSignInTokens
  readonly trail: RedisAuditTrail
}

/** The users of a store. */
export class RedisUsers implements Users {
  private readonly engine: RedisEngine
  private readonly tree: AccountTree
  private readonly signInTokens: RedisSignInTokens
  private readonly trail: RedisAuditTrail

  constructor({ engine, tree, signInTokens, trail }: UsersOptions) {
    this.engine = engine
    this.tree = tree
    this.signInTokens = signInTokens
    this.trail = trail
  }

  async create(
    user: User,
    auditEntries: readonly AuditEntry[] = [],
    link: AddedSignIn | null = null,
  ): Promise<UserOutcome> {
    const { id, email } = user
    if (!isAccountId(id) || !isName(email)) return 'bad_name'
    const what = 'creating a user'
    await this.engine.assertSameStore(what)
    const isDone = (outcome: UserOutcome) => outcome === 'created'
    return this.signInTokens.withLink(link, isDone, () => this.put(what, user, auditEntries))
  }

  private put(what: string, user: User, auditEntries: readonly AuditEntry[]): Promise<UserOutcome> {
    const { id } = user
    return this.trail.withAuditEntries(id, auditEntries, async (entryArgs) => {
      const { keys: own, args } = guarded(userReplaced(id, '', writeUser(user)))
      const parameters = {
        keys: [...own, layout.pendingAuditKey(id)],
        args: [...args, ...entryArgs],
      }
      const { changes, admin } = this.engine
      const put = await changes.prepareDurably(what, COMPARE_AND_SET, parameters)
      if (put !== 1) return 'id_taken'
      if (await this.claimEmail(what, user, 'runDurably')) return 'created'
      await admin.send(what, 'del', parameters.keys)
      return 'email_taken'
    })
  }

  /** Gives the user its address; false if another user has it. */
  async claimEmail(what: string, { id, email }: User, step: Step): Promise<boolean> {
    const { changes } = this.engine
    const name = comparableEmail(email)
    // The list omits addresses without a pointer.
    await changes.prepareDurably(what, 'zadd', {
      keys: [layout.USER_EMAILS_KEY],
      args: [0, name],
    })
    const claim = { keys: [layout.emailKey(name)], args: [id] }
    // Two changes that need each other's users must not abandon each other at the same time.
    const limitMs = CHANGE_MS * (1 + Math.random())
    for (let waitedMs = 0; ; waitedMs += CLAIM_POLL_MS) {
      const [claimed, owner] = listOf(await changes[step](what, KEY_SCRIPTS.createPointer, claim))
      if (claimed === 1 || owner === id) return true
      if (typeof owner !== 'string' || !(await this.isPending(what, owner))) return false
      if (waitedMs < limitMs) await sleep(CLAIM_POLL_MS)
      else if (!(await this.abandon(what, owner, name))) return false
    }
  }

  /** Writes a user that exists once it is a member of the account; the rule that is broken, or null. */
  async prepare(what: string, user: User, accountId: string): Promise<'email_taken' | 'id_taken' | null> {
    const { id } = user
    const key = layout.userKey(id)
    const text = writeUser(user)
    const record = guarded({
      if: [
        [key, 'user', '', text],
        [key, 'with', '', accountId],
      ],
      run: [['HSET', key, 'user', text, 'with', accountId]],
    })
    if ((await this.engine.changes.prepareDurably(what, COMPARE_AND_SET, record)) !== 1) return 'id_taken'
    if (await this.claimEmail(what, user, 'prepareDurably')) return null
    await this.engine.admin.send(what, 'del', [key])
    return 'email_taken'
  }

  /** Writes a user unchanged; false if there is none. */
  async rewrite(what: string, id: string): Promise<boolean> {
    const text = await this.textOf(what, id)
    if (text === null) return false
    await this.engine.changes.prepareDurably(what, COMPARE_AND_SET, guarded(userReplaced(id, text, text)))
    await this.claimEmail(what, parseUser(what, text), 'prepareDurably')
    return true
  }

  /** Notes that a user which was prepared exists; without it, each read looks whether it is a member. */
  async settle(what: string, id: string): Promise<void> {
    await this.engine.admin.send(what, 'hdel', [layout.userKey(id), 'with'])
  }

  /** Whether the change of the account with which the user is made was made. */
  private async isMade(what: string, { id, email }: User, accountId: string): Promise<boolean> {
    const text = await this.engine.admin.send(what, 'hget', [layout.membersKey(accountId), email])
    if (typeof text !== 'string' || parseMember(what, text).userId !== id) return false
    return (await this.tree.nameOf(what, accountId)) !== null
  }

  /** Whether the user is prepared for a change that is not made yet. */
  private async isPending(what: string, id: string): Promise<boolean> {
    const fields = [layout.userKey(id), 'user', 'with']
    const [text, accountId] = listOf(await this.engine.admin.send(what, 'hmget', fields))
    if (typeof accountId !== 'string' || typeof text !== 'string') return false
    return !(await this.isMade(what, parseUser(what, text), accountId))
  }

  /** Removes a user whose change was not made, and makes sure that it never is; false if it exists. */
  private async abandon(what: string, id: string, email: string): Promise<boolean> {
    const { admin, changes } = this.engine
    const key = layout.userKey(id)
    const [text, accountId] = listOf(await admin.send(what, 'hmget', [key, 'user', 'with']))
    if (typeof accountId !== 'string' || typeof text !== 'string') return false
    if (await this.isMade(what, parseUser(what, text), accountId)) return false
    // The change is decided again, and then finds the address taken.
    const stopped = guarded({
      if: [[layout.membersKey(accountId), email, '']],
      run: [['HINCRBY', layout.accountKey(accountId), 'gen', '1']],
    })
    const isStopped = (await changes.prepareDurably(what, COMPARE_AND_SET, stopped)) === 1
    if (!isStopped && !(await this.discard(what, accountId))) return false
    await this.withdraw(what, { id, email })
    return true
  }

  /** Removes a new account that has not got its name, and never gets it; false if it has the name. */
  private async discard(what: string, accountId: string): Promise<boolean> {
    const { admin } = this.engine
    if ((await this.tree.nameOf(what, accountId)) !== null) return false
    await this.tree.close(what, accountId)
    if ((await this.tree.nameOf(what, accountId)) !== null) {
      await this.tree.open(what, accountId)
      return false
    }
    await admin.send(what, 'del', layout.keysOfAccount(accountId))
    await admin.send(what, 'zrem', [layout.ORDER_KEYS[0], accountId])
    return true
  }

  /** Removes a user that was prepared for a change which was not made. */
  async withdraw(what: string, user: Pick<User, 'id' | 'email'>): Promise<void> {
    await this.engine.admin.send(what, 'del', [layout.userKey(user.id)])
    await this.releaseEmail(what, user)
  }

  /** Takes the address from a user that was not created after all. */
  async releaseEmail(what: string, { id, email }: Pick<User, 'id' | 'email'>): Promise<void> {
    const keys = [layout.emailKey(comparableEmail(email))]
    await this.engine.admin.run(what, KEY_SCRIPTS.deletePointer, { keys, args: [id] })
  }

  async byId(id: string): Promise<User | null> {
    const text = await this.textOf('reading a user', id)
    return text === null ? null : parseUser('reading a user', text)
  }

  async byEmail(email: string): Promise<User | null> {
    const what = 'reading a user by its e-mail'
    const id = await this.idOf(what, email)
    const text = id === null ? null : await this.textOf(what, id)
    return text === null ? null : parseUser(what, text)
  }

  /** The user's id by its address; null if there is none. */
  async idOf(what: string, email: string): Promise<string | null> {
    const id = await this.engine.admin.send(what, 'get', [layout.emailKey(comparableEmail(email))])
    if (typeof id === 'string') return id
    await this.engine.assertSameStore(what)
    return null
  }

  async list({ after, limit }: UsersByEmail): Promise<Page<User>> {
    const what = 'listing users'
    const from = after === null ? '-' : `(${after}`
    const range = [layout.USER_EMAILS_KEY, from, '+', 'LIMIT', 0, limit + 1]
    const emails = stringsOf(await this.engine.admin.send(what, 'zrangebylex', range))
    if (emails.length === 0) await this.engine.assertSameStore(what)
    const own = emails.slice(0, limit)
    const found = await Promise.all(own.map((email) => this.byEmail(email)))
    const items = found.filter((user) => user !== null)
    return { items, next: emails.length > limit ? (own.at(-1) ?? null) : null }
  }

  async change(
    id: string,
    edit: UserEdit | ((user: User) => UserEdit | null),
    entriesOf: AuditEntriesOf<User> = () => [],
    signInsOf: (before: User, after: User) => ChangedSignIns = () => ({}),
  ): Promise<User | null> {
    const what = 'changing a user'
    for (;;) {
      const text = await this.textOf(what, id)
      if (text === null) return null
      const before = parseUser(what, text)
      const user = editedUser(before, edit)
      if (user === null) return null
      const auditEntries = entriesOf(before, user)
      const signIns = signInsOf(before, user)
      const ends = leftEnds(signIns)
      const replaced = guarded(userReplaced(id, text, writeUser(user), ends))
      const change = { accountId: id, ...replaced, auditEntries }
      // If another change came in between, it is read again.
      const done = await this.signInTokens.withLink(
        signIns.link ?? null,
        (made) => made === 1,
        () => this.trail.runDurably(what, COMPARE_AND_SET, change),
      )
      if (done !== 1) continue
      // If this fails, the next reader of the user does it.
      if (ends !== null) await this.signInTokens.finishEnds(layout.userKey(id), ends).catch(() => undefined)
      return user
    }
  }

  /**
   * The memberships are in the slots of their accounts and are moved one by one: the former address stays in
   * the record, and keeps its pointer, until the last one has moved.
   */
  async changeEmail(
    id: string,
    email: string,
    entriesOf: AuditEntriesOf<User> = () => [],
  ): Promise<User | 'email_taken' | null> {
    const what = 'changing an address'
    for (;;) {
      const text = await this.textOf(what, id)
      if (text === null) return null
      const before = parseUser(what, text)
      if (before.formerEmail !== undefined) {
        await this.moveMembers(what, before, before.formerEmail)
        continue
      }
      if (before.email === email) return before
      if (!isName(email)) return 'email_taken'
      const user = { ...before, email, formerEmail: before.email }
      if (!(await this.claimEmail(what, user, 'prepareDurably'))) return 'email_taken'
      const replaced = guarded(userReplaced(id, text, writeUser(user)))
      const change = { accountId: id, ...replaced, auditEntries: entriesOf(before, user) }
      await this.trail.runDurably(what, COMPARE_AND_SET, change)
    }
  }

  /** Moves every membership to the new address, then frees the former one. */
  private async moveMembers(what: string, user: User, former: string): Promise<void> {
    const { id, email } = user
    const { admin } = this.engine
    for (const accountId of stringsOf(await admin.send(what, 'smembers', [layout.userAccountsKey(id)]))) {
      const key = layout.membersKey(accountId)
      const text = await admin.send(what, 'hget', [key, former])
      const member = typeof text === 'string' ? parseMember(what, text) : null
      if (typeof text !== 'string' || member?.userId !== id) continue
      const move = guarded({
        if: [[key, former, text]],
        run: [
          ['HDEL', key, former],
          ['HSET', key, email, writeMember({ ...member, email })],
          // Changes that have read the former member are decided again.
          ['HINCRBY', layout.accountKey(accountId), 'gen', '1'],
        ],
      })
      const done = await this.trail.runDurably(what, COMPARE_AND_SET, {
        accountId,
        ...move,
        auditEntries: [],
      })
      // It has changed meanwhile: the caller reads the user again.
      if (done !== 1) return
    }
    await this.releaseEmail(what, { ...user, email: former })
    await this.change(id, (stored) => (stored.formerEmail === former ? { formerEmail: null } : null))
  }

  async memberships(userId: string): Promise<Member[]> {
    const what = 'reading members'
    const { admin } = this.engine
    const user = await this.byId(userId)
    if (user === null) return []
    const ids = stringsOf(await admin.send(what, 'smembers', [layout.userAccountsKey(userId)]))
    const emails = user.formerEmail === undefined ? [user.email] : [user.formerEmail, user.email]
    const found = await Promise.all(
      ids.map(async (id) => listOf(await admin.send(what, 'hmget', [layout.membersKey(id), ...emails]))),
    )
    return found.flatMap((texts) => {
      const text = texts.find((each) => typeof each === 'string')
      return text === undefined ? [] : [parseMember(what, text)]
    })
  }

  /** The record of the user with this id; null if there is none. */
  async textOf(what: string, id: string): Promise<string | null> {
    const key = layout.userKey(id)
    const fields = isAccountId(id)
      ? listOf(await this.engine.admin.send(what, 'hmget', [key, 'user', 'ends', 'with']))
      : []
    const [text, ends, accountId] = fields
    if (typeof ends === 'string') await this.signInTokens.finishEnds(key, ends)
    if (typeof text === 'string') {
      if (typeof accountId !== 'string') return text
      if (await this.isMade(what, parseUser(what, text), accountId)) {
        await this.settle(what, id).catch(() => undefined)
        return text
      }
    }
    await this.engine.assertSameStore(what)
    return null
  }
}

/** A user's record; a damaged one is a failure of the store. */
function parseUser(what: string, text: string): User {
  return parseRecord(what, 'a user', () => readUser(text))
}

/** A member's record; a damaged one is a failure of the store. */
export function parseMember(what: string, text: string): Member {
  return parseRecord(what, 'a member', () => readMember(text))
}

/** Writes the record of a user if it is still the one that was read; `''`: there is none. */
function userReplaced(id: string, before: string, after: string, ends: string | null = null): GuardedChange {
  const key = layout.userKey(id)
  const written = ['HSET', key, 'user', after] as const
  if (ends === null) return { if: [[key, 'user', before]], run: [written] }
  return {
    if: [
      [key, 'user', before],
      [key, 'ends', ''],
    ],
    run: [written, ['HSET', key, 'ends', ends]],
  }
}
