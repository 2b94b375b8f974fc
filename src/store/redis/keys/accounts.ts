/**
 * Accounts and their members in Redis. An account exists when it has a name in the tree of accounts, which is
 * written last; lists omit records without one.
 */
import { MAX_LEVELS, type Account, type Member } from '../../../accounts/account.js'
import type { AccountsByName } from '../../account-changes.js'
import { damaged, isDamaged, unavailable } from '../../store-errors.js'
import { isAccountId, isName, type RedisEngine } from '../connection/redis-engine.js'
import * as layout from './key-names.js'
import {
  MISMATCH,
  EMPTY_PAGE,
  listOf,
  parseAccount,
  isCursor,
  stringsOf,
} from '../connection/parse-replies.js'
import type { AccountTree } from './account-tree.js'
import { type RedisTransactions } from './account-changes.js'
import type { RedisSignInTokens } from './sign-in-tokens.js'
import { parseMember, type RedisUsers } from './users.js'
import type { Page, PageQuery } from '../../store.js'

/** Accounts that one command reads. */
const NAMED_AT_ONCE = 500

/** The parts of the store that accounts need. */
interface AccountsOptions {
  readonly engine: RedisEngine
  readonly users: RedisUsers
  readonly tree: AccountTree
  readonly signInTokens: RedisSignInTokens
  readonly transactions: RedisTransactions
}

/** The part of `Store` that is about accounts and members. */
export class RedisAccounts {
  private readonly engine: RedisEngine
  private readonly users: RedisUsers
  private readonly tree: AccountTree
  private readonly signInTokens: RedisSignInTokens
  private readonly transactions: RedisTransactions

  constructor({ engine, users, tree, signInTokens, transactions }: AccountsOptions) {
    this.engine = engine
    this.users = users
    this.tree = tree
    this.signInTokens = signInTokens
    this.transactions = transactions
  }

  async byId(id: string): Promise<Account | null> {
    const what = 'reading an account'
    if (!isAccountId(id)) return null
    const [text, name] = await Promise.all([this.textOf(what, id), this.tree.nameOf(what, id)])
    if (text === null) return null
    const account = parseAccount(what, id, text)
    // An earlier version wrote a record without a name; other accounts without one were never finished.
    if (account.name === '') return this.transactions.named(id)
    return name === null ? null : account
  }

  async byName(name: string): Promise<Account | null> {
    const what = 'reading an account by its name'
    const id = isName(name) ? await this.tree.idOf(what, name) : null
    if (id !== null) return this.byId(id)
    await this.engine.assertSameStore(what)
    return null
  }

  async byEmail(email: string): Promise<Account | null> {
    const id = isName(email) ? await this.users.idOf('reading an account', email) : null
    return id === null ? null : this.byId(id)
  }

  async listByName(query: AccountsByName): Promise<Page<Account>> {
    const { ids, next } = await this.tree.page('listing accounts', query)
    const found = await Promise.all(ids.map((id) => this.byId(id)))
    return { items: found.filter((account) => account !== null), next }
  }

  async ancestorsOf({ parentId }: Pick<Account, 'parentId'>): Promise<Account[]> {
    const what = 'reading accounts'
    const found: Account[] = []
    for (let id = parentId; id !== undefined && found.length < MAX_LEVELS;) {
      const text = await this.textOf(what, id)
      if (text === null) throw unavailable(`${what} failed`, damaged(`account '${id}'`, MISMATCH))
      const parent = parseAccount(what, id, text)
      found.push(parent)
      id = parent.parentId
    }
    return found
  }

  childrenOf(accountId: string): Promise<string[]> {
    return this.tree.children('reading accounts', accountId)
  }

  async membersOf(accountId: string): Promise<Member[]> {
    const what = 'reading members'
    if (!isAccountId(accountId)) return []
    const texts = stringsOf(await this.engine.admin.send(what, 'hvals', [layout.membersKey(accountId)]))
    const members = texts.map((text) => parseMember(what, text))
    return members.sort((a, b) => (a.email < b.email ? -1 : 1))
  }

  async memberOf(accountId: string, email: string): Promise<Member | null> {
    const what = 'reading a member'
    if (!isAccountId(accountId)) return null
    const text = await this.engine.admin.send(what, 'hget', [layout.membersKey(accountId), email])
    return typeof text === 'string' ? parseMember(what, text) : null
  }

  /**
   * Gives names and users to the accounts of an earlier version, in the order of their creation. Called when
   * the store is opened: accounts that were seen then are not looked at again.
   */
  async nameAll(): Promise<void> {
    const what = 'naming accounts'
    const { admin } = this.engine
    const [order] = layout.ORDER_KEYS
    for (;;) {
      const done = await admin.send(what, 'get', [layout.NAMED_KEY])
      const from = typeof done === 'string' ? `(${done}` : '-inf'
      const range = [order, from, '+inf', 'WITHSCORES', 'LIMIT', 0, NAMED_AT_ONCE]
      const found = stringsOf(await admin.send(what, 'zrangebyscore', range))
      const last = found.at(-1)
      if (last === undefined) return
      for (const id of found.filter((_, at) => at % 2 === 0)) {
        await this.byId(id).catch((error: unknown) => {
          // A damaged record must not keep the store from opening.
          if (!isDamaged(error)) throw error
        })
      }
      await admin.send(what, 'set', [layout.NAMED_KEY, last])
    }
  }

  async list({ order, after, limit }: PageQuery): Promise<Page<Account>> {
    if (!isCursor(after)) return EMPTY_PAGE
    const what = 'listing accounts'
    const start = after === null ? null : `(${after}`
    const [from, to] = order === 'newest_first' ? ['+inf', '-inf'] : ['-inf', '+inf']
    const command = order === 'newest_first' ? 'zrevrangebyscore' : 'zrangebyscore'
    // One more item shows whether there is another page.
    const page = [start ?? from, to, 'WITHSCORES', 'LIMIT', 0, limit + 1]
    const found = stringsOf(await this.engine.admin.send(what, command, [layout.ORDER_KEYS[0], ...page]))
    if (found.length === 0) await this.engine.assertSameStore(what)
    const ids = found.filter((_, at) => at % 2 === 0).slice(0, limit)
    const listed = await Promise.all(ids.map((id) => this.byId(id)))
    const items = listed.filter((account) => account !== null)
    return { items, next: found.length > 2 * limit ? (found[2 * limit - 1] ?? null) : null }
  }

  private async textOf(what: string, id: string): Promise<string | null> {
    const key = layout.accountKey(id)
    const [text, ends] = listOf(await this.engine.admin.send(what, 'hmget', [key, 'account', 'ends']))
    if (typeof ends === 'string') await this.signInTokens.finishEnds(key, ends)
    if (typeof text === 'string') return text
    await this.engine.assertSameStore(what)
    return null
  }
}
