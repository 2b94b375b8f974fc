/**
 * Lists of keys and accounts in any order (`store/account-and-key-lists.ts`) in Redis. An account counts its
 * changes (`gen`), so that a process reads only the accounts again that have changed since it read them
 * last.
 */
import type { Account, ApiKey } from '../../../accounts/account.js'
import {
  idsByAccount,
  NO_USE,
  pageOfAccounts,
  pageOfKeys,
  useByAccount,
  type AccountQuery,
  type Directory,
  type KeyFigures,
  type KeyName,
  type KeyQuery,
  type KeyRow,
  type ListedAccount,
  type ListedKey,
  type SortedPage,
  type Use,
} from '../../account-and-key-lists.js'
import type { KeyUse } from '../../usage-queries.js'
import type { RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseAccount, stringsOf } from '../connection/parse-replies.js'
import type { RedisLedger } from '../ledger/ledger.js'
import type { RedisKeys } from './keys.js'
import { accountKey, ORDER_KEYS, TREE_KEYS } from './key-names.js'

/** Accounts whose records one turn reads. */
const AT_ONCE = 200

const NO_ACCOUNT = Promise.resolve(null)

/** An account at the time of the last list. */
interface KnownAccount {
  readonly generation: string
  readonly account: Account
  readonly liveKeys: number
  /** Null: not read yet. */
  keys: readonly ApiKey[] | null
}

/** The parts of the store that lists need. */
interface DirectoryParts {
  readonly engine: RedisEngine
  readonly keys: Pick<RedisKeys, 'all'>
  readonly ledger: Pick<RedisLedger, 'keyUse' | 'lastUse'>
}

/** The lists of a store. */
export class RedisDirectory implements Directory {
  private readonly parts: DirectoryParts
  private known: ReadonlyMap<string, KnownAccount> = new Map()

  constructor(parts: DirectoryParts) {
    this.parts = parts
  }

  async keys(query: KeyQuery): Promise<SortedPage<ListedKey>> {
    const { accountId, column, sinceMs, nowMs } = query
    const owners = await this.accountsNow('listing keys', accountId)
    const rows = await this.rowsOf(owners)
    const span = { fromMs: sinceMs, toMs: nowMs }
    const isByUse = column === 'requests' || column === 'cost'
    const { ledger } = this.parts
    const all: KeyFigures = figuresOf(
      isByUse ? await ledger.keyUse({ accountId, ...span }) : [],
      column === 'lastUsedAt'
        ? await Promise.all(owners.map((owner) => ledger.lastUse(owner.account.id)))
        : [],
    )
    const page = pageOfKeys(rows, query, all)
    const owned = idsByAccount(page.items)
    const [uses, lastUses] = await Promise.all([
      isByUse
        ? null
        : Promise.all(owned.map(([owner, keyIds]) => ledger.keyUse({ accountId: owner, keyIds, ...span }))),
      Promise.all(owned.map(([owner, keyIds]) => ledger.lastUse(owner, keyIds))),
    ])
    const own = figuresOf(uses?.flat() ?? [], lastUses)
    const items = page.items.map(({ key, accountName }) => ({
      ...{ key, accountName, use: (isByUse ? all : own).use(key) ?? NO_USE },
      lastUsedAtMs: own.lastUsedAtMs(key) ?? null,
    }))
    return { ...page, items }
  }

  async keyNames(accountId: string | null): Promise<ReadonlyMap<string, KeyName>> {
    const rows = await this.rowsOf(await this.accountsNow('reading names of keys', accountId))
    return new Map(rows.map(({ key }) => [key.id, key]))
  }

  async accounts(query: AccountQuery): Promise<SortedPage<ListedAccount>> {
    const known = await this.accountsNow('listing accounts', null)
    const names = new Map(known.map(({ account: { id, name } }) => [id, name]))
    const rows = known.map(({ account, liveKeys }) => {
      return { account, liveKeys, parent: names.get(account.parentId ?? '') ?? null }
    })
    const span = { fromMs: query.sinceMs, toMs: query.nowMs }
    const use = useByAccount(await this.parts.ledger.keyUse({ accountId: null, ...span }))
    const useOf = ({ id }: Account): Use => use.get(id) ?? NO_USE
    const page = pageOfAccounts(rows, query, useOf)
    return { ...page, items: page.items.map((row) => ({ ...row, use: useOf(row.account) })) }
  }

  /** The current accounts: only those that have changed are read again. */
  private async accountsNow(what: string, accountId: string | null): Promise<KnownAccount[]> {
    const { admin } = this.parts.engine
    const ids =
      accountId === null ? stringsOf(await admin.send(what, 'zrange', [ORDER_KEYS[0], 0, -1])) : [accountId]
    if (ids.length === 0) await this.parts.engine.assertSameStore(what)
    const found: KnownAccount[] = []
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE)
      const named = listOf(await admin.send(what, 'hmget', [TREE_KEYS[0], ...some]))
      const read = await Promise.all(
        some.map((id, place) => {
          // An account without a name in the tree does not exist, or not yet.
          return typeof named[place] === 'string' ? this.accountNow(what, id) : NO_ACCOUNT
        }),
      )
      found.push(...read.filter((account) => account !== null))
    }
    // A list of all accounts drops those that no longer exist.
    const now = found.map((each): [string, KnownAccount] => [each.account.id, each])
    this.known = new Map(accountId === null ? now : [...this.known, ...now])
    return found
  }

  private async accountNow(what: string, id: string): Promise<KnownAccount | null> {
    const { admin } = this.parts.engine
    const fields = [accountKey(id), 'gen', 'live', 'account']
    const before = this.known.get(id)
    if (before !== undefined) {
      const [generation, live] = listOf(await admin.send(what, 'hmget', fields.slice(0, 3)))
      if (before.generation === `${String(generation)} ${String(live)}`) return before
    }
    const [generation, live, text] = listOf(await admin.send(what, 'hmget', fields))
    if (typeof text !== 'string') return null
    const account = parseAccount(what, id, text)
    if (account.name === '') return null
    const liveKeys = Number(live ?? 0)
    return { generation: `${String(generation)} ${String(live)}`, account, liveKeys, keys: null }
  }

  private async rowsOf(owners: readonly KnownAccount[]): Promise<KeyRow[]> {
    const rows: KeyRow[] = []
    for (let at = 0; at < owners.length; at += AT_ONCE) {
      const some = owners.slice(at, at + AT_ONCE)
      // A change in between is seen by the next list: the generation was read before the keys.
      await Promise.all(
        some.map(async (owner) => (owner.keys ??= await this.parts.keys.all(owner.account.id))),
      )
      for (const { keys, account } of some) {
        for (const key of keys ?? []) rows.push({ key, accountName: account.name })
      }
    }
    return rows
  }
}

function figuresOf(uses: readonly KeyUse[], lastUses: readonly ReadonlyMap<string, number>[]): KeyFigures {
  const use = new Map(uses.map((each) => [each.keyId, each]))
  const last = new Map(lastUses.flatMap((each) => [...each]))
  return { use: ({ id }) => use.get(id), lastUsedAtMs: ({ id }) => last.get(id) }
}
