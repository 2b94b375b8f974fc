/**
 * Keys in Redis: the record of a key is in the hash of its account, and pointers name the account. Pointers
 * are written first: if the process is killed then, they point to no record, which is an unknown key.
 */
import { hasName, MAX_LEVELS, type Account, type ApiKey } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../store-errors.js'
import type { KeyLookup, Page, PageQuery } from '../../store.js'
import { isAccountId, isName, type RedisEngine } from '../connection/redis-engine.js'
import {
  EMPTY_PAGE,
  isCursor,
  listOf,
  stringsOf,
  MISMATCH,
  nameOfKey,
  parseAccount,
  parseKey,
  type KeyReplies,
} from '../connection/parse-replies.js'
import * as layout from './key-names.js'
import { KEY_SCRIPTS, accountKey, digestKey } from './key-names.js'
import { releasePointers } from './key-pointers.js'

/** Values for each key in the reply of `LIST_KEYS`. */
const PARTS = 4

/** The part of `Store` that is about keys. */
export class RedisKeys {
  private readonly engine: RedisEngine
  private readonly lookups: KeyLookups

  constructor(engine: RedisEngine) {
    this.engine = engine
    this.lookups = new KeyLookups(engine)
  }

  /** See `KeyLookups.noteRevocation`. */
  noteRevocation(digest: string, atMs: number): void {
    this.lookups.noteRevocation(digest, atMs)
  }

  readonly find = (digest: string): Promise<KeyLookup | null> => this.lookups.find(digest)

  async byName(accountId: string, name: string): Promise<ApiKey | null> {
    const what = 'reading a key by its name'
    if (!isAccountId(accountId)) return null
    const { admin } = this.engine
    const digest = await admin.send(what, 'hget', [layout.namesKey(accountId), name])
    if (typeof digest !== 'string') {
      await this.engine.assertSameStore(what)
      return null
    }
    const key = await this.byDigest(what, accountId, digest)
    return key !== null && hasName(key.key) ? key.key : null
  }

  async list(accountId: string, { order, after, limit }: PageQuery): Promise<Page<ApiKey>> {
    if (!isCursor(after)) return EMPTY_PAGE
    const what = 'listing keys'
    // One more item shows whether there is another page.
    const args = [after ?? '', limit + 1, order]
    const own = orderKeys(accountId)
    const parts = listOf(await this.engine.admin.run(what, KEY_SCRIPTS.listKeys, { keys: own, args }))
    if (parts.length === 0) await this.engine.assertSameStore(what)
    const items: ApiKey[] = []
    for (let at = 0; at < Math.min(parts.length, PARTS * limit); at += PARTS) {
      const digest = String(parts[at])
      const key = this.lookups.parse(what, { digest, text: parts[at + 2], revoked: parts[at + 3] })
      if (key === null) throw unavailable(`${what} failed`, damaged(nameOfKey(digest), 'it is gone'))
      items.push(key)
    }
    const isLast = parts.length <= PARTS * limit
    return { items, next: isLast ? null : String(parts[PARTS * (limit - 1) + 1]) }
  }

  /** All keys of the account, the oldest first. */
  async all(accountId: string): Promise<ApiKey[]> {
    const keys: ApiKey[] = []
    for (let after: string | null = null; ;) {
      const page = await this.list(accountId, { order: 'oldest_first', after, limit: 500 })
      keys.push(...page.items)
      if (page.next === null) return keys
      after = page.next
    }
  }

  async byId(accountId: string | null, keyId: string): Promise<ApiKey | null> {
    const what = 'reading a key'
    const owner = accountId ?? (await this.ownerOf(what, keyId))
    return owner === null ? null : ((await this.record(what, owner, keyId))?.key ?? null)
  }

  /** The account that the pointer of the key's id names. */
  private async ownerOf(what: string, keyId: string): Promise<string | null> {
    if (!isName(keyId)) return null
    const pointer = await this.engine.admin.send(what, 'get', [layout.idKey(keyId)])
    if (typeof pointer === 'string') return pointer.split(' ', 1)[0] ?? null
    await this.engine.assertSameStore(what)
    return null
  }

  async countLive(accountId: string): Promise<number> {
    const what = 'counting keys'
    const live = await this.engine.admin.send(what, 'hget', [layout.accountKey(accountId), 'live'])
    if (live === null) await this.engine.assertSameStore(what)
    return Number(live ?? 0)
  }

  /**
   * Revokes expired keys first, then deletes the pointers, then the records: after a crash in between, the
   * next call continues.
   */
  async remove(accountId: string, keyIds: readonly string[], endedBeforeMs: number): Promise<number> {
    if (keyIds.length === 0) return 0
    const what = 'removing keys'
    const { changes, channel } = this.engine
    const own = [layout.accountKey(accountId), layout.namesKey(accountId)]
    const ended = stringsOf(
      await changes.prepareDurably(what, KEY_SCRIPTS.endKeys, {
        keys: own,
        args: [endedBeforeMs, ...keyIds],
      }),
    )
    if (ended.length === 0) return 0
    for (let at = 0; at < ended.length; at += 2) {
      const [id = '', digest = ''] = ended.slice(at, at + 2)
      await releasePointers(this.engine, what, [{ accountId, id, digest }])
      this.lookups.forget(digest)
    }
    const args = [channel, ...ended]
    const keys = orderKeys(accountId)
    return Number(await changes.runDurably(what, KEY_SCRIPTS.removeKeys, { keys, args }))
  }

  private async record(what: string, accountId: string, keyId: string) {
    const { admin } = this.engine
    const own = layout.accountKey(accountId)
    const digest = await admin.send(what, 'hget', [own, `id:${keyId}`])
    if (typeof digest !== 'string') {
      await this.engine.assertSameStore(what)
      return null
    }
    const found = await this.byDigest(what, accountId, digest)
    if (found === null) throw unavailable(`${what} failed`, damaged(`key '${keyId}'`, MISMATCH))
    return found
  }

  private async byDigest(what: string, accountId: string, digest: string) {
    const args = [layout.accountKey(accountId), `key:${digest}`, `revoked:${digest}`]
    const [text, revoked] = listOf(await this.engine.admin.send(what, 'hmget', args))
    const key = this.lookups.parse(what, { digest, text, revoked })
    return key === null || typeof text !== 'string' ? null : { key, text }
  }
}

/** The Redis keys of an account's order of keys; all in one slot. */
function orderKeys(accountId: string): string[] {
  return [layout.accountKey, layout.orderKey, layout.formerOrderKey].map((name) => name(accountId))
}

/** Maximum number of digests in each of the two caches. */
const MAX_CACHED = 100_000

/** The operation, for messages. */
const WHAT = 'looking a key up'

/** The account of a digest, and when its key was last found valid. */
interface CachedOwner {
  readonly accountId: string
  readonly validAtMs: number
}

/**
 * The look-ups of one process.
 *
 * Finds keys by their digest. A process caches the account of each digest, and the revocations that it has
 * seen: a key that disappears without a revocation is a failure of the store, and a revocation stays in force
 * if the store loses it.
 */
class KeyLookups {
  private readonly engine: RedisEngine
  /** The account of a digest never changes. */
  private readonly owners = new Map<string, CachedOwner>()
  private readonly revocations = new Map<string, number>()

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  /** See `Store.findKey`. */
  async find(digest: string): Promise<KeyLookup | null> {
    if (!isName(digest)) return null
    const known = this.owners.get(digest)
    const owner = known?.accountId ?? (await this.ownerOf(digest))
    if (owner === null) return null
    const fields = ['account', `key:${digest}`, `revoked:${digest}`, 'removed-before', 'purged']
    const args = [accountKey(owner), ...fields]
    const [account, text, revoked, removedBefore, purged] = listOf(
      await this.engine.lookups.send(WHAT, 'hmget', args),
    )
    if (typeof purged === 'string') return null
    // A pointer without its account: a part of the store was lost, so 401 would be wrong.
    if (typeof account !== 'string') {
      throw unavailable(`${WHAT} failed`, damaged(`account '${owner}'`, 'it is gone'))
    }
    const key = this.parse(WHAT, { digest, text, revoked })
    if (key === null) {
      this.assertRemoved(digest, known, Number(removedBefore ?? 0))
      return null
    }
    const validAtMs = key.revokedAtMs === undefined ? Date.now() : 0
    putIntoCache(this.owners, digest, { accountId: owner, validAtMs })
    const found = { key, account: parseAccount(WHAT, owner, account) }
    const { parentId } = found.account
    return parentId === undefined ? found : { ...found, ancestors: await this.ancestors(parentId) }
  }

  /** The accounts from this one upwards. */
  private async ancestors(parentId: string): Promise<Account[]> {
    const found: Account[] = []
    for (let id: string | undefined = parentId; id !== undefined && found.length < MAX_LEVELS;) {
      const text = await this.engine.lookups.send(WHAT, 'hget', [accountKey(id), 'account'])
      if (typeof text !== 'string') {
        throw unavailable(`${WHAT} failed`, damaged(`account '${id}'`, 'it is gone'))
      }
      const account: Account = parseAccount(WHAT, id, text)
      found.push(account)
      id = account.parentId
    }
    return found
  }

  /** Throws for a key that was valid after the last removal: it was not removed, but lost. */
  private assertRemoved(digest: string, known: CachedOwner | undefined, removedBeforeMs: number): void {
    const isRemoved = known !== undefined && known.validAtMs < removedBeforeMs
    if (!isRemoved && !(known !== undefined && this.revocations.has(digest))) {
      const reason = damaged(nameOfKey(digest), 'it is gone and was not revoked')
      throw unavailable(`${WHAT} failed`, reason)
    }
    this.owners.delete(digest)
  }

  private async ownerOf(digest: string): Promise<string | null> {
    const { lookups } = this.engine
    const [pointer, refusal] = await Promise.all([
      lookups.send(WHAT, 'get', [digestKey(digest)]),
      this.engine.assertStoreId(WHAT, lookups),
    ])
    if (typeof pointer === 'string') return pointer.slice(0, pointer.indexOf(' '))
    this.engine.assertWritable(WHAT, refusal)
    return null
  }

  /** The key with its revocation, also one that only this process has seen; null if there is no record. */
  parse(what: string, replies: KeyReplies): ApiKey | null {
    const key = parseKey(what, replies)
    if (key === null) return null
    const revokedAtMs = key.revokedAtMs ?? this.revocations.get(key.digest)
    if (revokedAtMs === undefined) return key
    this.noteRevocation(key.digest, revokedAtMs)
    return { ...key, revokedAtMs }
  }

  noteRevocation(digest: string, atMs: number): void {
    putIntoCache(this.revocations, digest, atMs)
  }

  /** The key was removed. */
  forget(digest: string): void {
    this.owners.delete(digest)
  }
}

/** Sets an item of a cache, and removes the oldest item of a full one. */
function putIntoCache<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value)
  const [oldest] = map.size > MAX_CACHED ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}
