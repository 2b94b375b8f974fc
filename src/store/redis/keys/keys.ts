/**
 * Keys in Redis: the record of a key is in the hash of its account, and pointers name the account. Pointers are written
 * first: if the process is killed then, they point to no record, which is an unknown key.
 */
import type { ApiKey } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../errors.js'
import { editedKey, writeKey } from '../../records/account-records.js'
import { isAccountId, isName, type RedisEngine } from '../connection/engine.js'
import * as layout from './key-names.js'
import { EMPTY_PAGE, isCursor, listOf, MISMATCH } from './read-records.js'
import { nameOfKey, parseAccount, parseKey } from './read-records.js'
import type { RedisAuditTrail } from './audit-trail.js'
import type { KeyEdit, KeyLookup, KeyOutcome, Page, PageQuery } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'

/** Maximum number of digests in each of the two caches. */
const MAX_CACHED = 100_000

/** The account of a digest, and when its key was last found valid. */
interface CachedOwner {
  readonly accountId: string
  readonly validAtMs: number
}

/** Values for each key in the reply of `LIST_KEYS`. */
const PARTS = 4

/** The part of `Store` that is about keys. */
export class RedisKeys {
  private readonly engine: RedisEngine
  private readonly trail: RedisAuditTrail
  private readonly maxKeysPerAccount: number
  /** The account of a digest never changes. */
  private readonly owners = new Map<string, CachedOwner>()
  /** Revocations that this process has seen. They stay in force if the store loses them. */
  private readonly revocations = new Map<string, number>()

  /** `maxKeysPerAccount`: as `StoreCapacity.keysPerAccount`. */
  constructor(engine: RedisEngine, trail: RedisAuditTrail, mostKeys: number) {
    this.engine = engine
    this.trail = trail
    this.maxKeysPerAccount = mostKeys
  }

  async create(
    key: ApiKey,
    maxKeys: number | null,
    auditEntries: readonly AuditEntry[],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    if (!isAccountId(key.accountId)) return 'no_account'
    const what = 'creating a key'
    const { changes } = this.engine
    await this.engine.assertSameStore(what)
    const made: string[] = []
    let outcome: KeyOutcome = 'created'
    for (const pointer of [layout.idKey(key.id), layout.digestKey(key.digest)]) {
      const answer = await changes.prepareDurably(what, layout.CLAIM, [pointer], [ownerOf(key)])
      const [claimed, owner] = listOf(answer)
      if (claimed === 1) made.push(pointer)
      else if (owner !== ownerOf(key)) {
        outcome = 'id_taken'
        break
      }
    }
    if (outcome === 'created') outcome = await this.put(key, maxKeys, auditEntries)
    if (outcome !== 'created') await this.release(what, made, ownerOf(key))
    return outcome
  }

  private async put(
    key: ApiKey,
    maxKeys: number | null,
    auditEntries: readonly AuditEntry[],
  ): Promise<KeyOutcome> {
    const { accountId, id, digest, revokedAtMs } = key
    const { changes, channel } = this.engine
    const keys = [...orderKeys(accountId), layout.pendingAuditKey(accountId)]
    const limits = [maxKeys ?? '', revokedAtMs ?? '', channel, this.maxKeysPerAccount]
    const args = [digest, id, writeKey(key), ...limits]
    return this.trail.withAuditEntries(accountId, auditEntries, async (texts) =>
      outcomeOf(
        await changes.runDurably('creating a key', layout.PUT_KEY, keys, [...args, ...texts]),
      ),
    )
  }

  async list(accountId: string, { order, after, limit }: PageQuery): Promise<Page<ApiKey>> {
    if (!isAccountId(accountId) || !isCursor(after)) return this.engine.answerIfOpen(EMPTY_PAGE)
    const what = 'listing keys'
    // One more item shows whether there is another page.
    const args = [after ?? '', limit + 1, order]
    const own = orderKeys(accountId)
    const parts = listOf(await this.engine.admin.run(what, layout.LIST_KEYS, own, args))
    if (parts.length === 0) await this.engine.assertSameStore(what)
    const items: ApiKey[] = []
    for (let at = 0; at < Math.min(parts.length, PARTS * limit); at += PARTS) {
      const digest = String(parts[at])
      const key = this.keyOf(what, digest, parts[at + 2], parts[at + 3])
      if (key === null)
        throw unavailable(`${what} failed`, damaged(nameOfKey(digest), 'it is gone'))
      items.push(key)
    }
    const isLast = parts.length <= PARTS * limit
    return { items, next: isLast ? null : String(parts[PARTS * (limit - 1) + 1]) }
  }

  async byId(accountId: string, keyId: string): Promise<ApiKey | null> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.answerIfOpen(null)
    return (await this.record('reading a key', accountId, keyId))?.key ?? null
  }

  async countLive(accountId: string): Promise<number> {
    if (!isAccountId(accountId)) return this.engine.answerIfOpen(0)
    const what = 'counting keys'
    const live = await this.engine.admin.send(what, 'hget', [layout.accountKey(accountId), 'live'])
    if (live === null) await this.engine.assertSameStore(what)
    return Number(live ?? 0)
  }

  async change(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    auditEntries: AuditEntriesOf<ApiKey>,
  ): Promise<ApiKey | null> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.answerIfOpen(null)
    const what = 'changing a key'
    for (;;) {
      const found = await this.record(what, accountId, keyId)
      if (found === null || found.key.revokedAtMs !== undefined) return null
      const key = editedKey(found.key, edit)
      const keys = [layout.accountKey(accountId), layout.pendingAuditKey(accountId)]
      const args = [key.digest, found.text, writeKey(key), this.engine.channel]
      // If another change or a revocation came in between, it is read again.
      const done = await this.trail.withAuditEntries(
        accountId,
        auditEntries(found.key, key),
        (texts) =>
          this.engine.changes.runDurably(what, layout.REPLACE_KEY, keys, [...args, ...texts]),
      )
      if (done === 1) return key
    }
  }

  async revoke(
    accountId: string,
    keyId: string,
    atMs: number,
    auditEntries: readonly AuditEntry[],
  ): Promise<boolean> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.answerIfOpen(false)
    const what = 'revoking a key'
    const keys = [layout.accountKey(accountId), layout.pendingAuditKey(accountId)]
    const args = [keyId, atMs, this.engine.channel]
    const digest = await this.trail.withAuditEntries(accountId, auditEntries, (texts) =>
      this.engine.changes.runDurably(what, layout.REVOKE_KEY, keys, [...args, ...texts]),
    )
    if (typeof digest === 'string') {
      putIntoCache(this.revocations, digest, atMs)
      return true
    }
    await this.engine.assertSameStore(what)
    return false
  }

  /**
   * Revokes expired keys first, then deletes the pointers, then the records: after a crash in between, the next call
   * continues.
   */
  async remove(
    accountId: string,
    keyIds: readonly string[],
    endedBeforeMs: number,
  ): Promise<number> {
    const ids = keyIds.filter(isName)
    if (!isAccountId(accountId) || ids.length === 0) return this.engine.answerIfOpen(0)
    const what = 'removing keys'
    const { changes, channel } = this.engine
    const own = [layout.accountKey(accountId)]
    const ended = listOf(
      await changes.prepareDurably(what, layout.END_KEYS, own, [endedBeforeMs, ...ids]),
    ).map(String)
    if (ended.length === 0) return 0
    for (let at = 0; at < ended.length; at += 2) {
      const [id = '', digest = ''] = ended.slice(at, at + 2)
      const pointers = [layout.digestKey(digest), layout.idKey(id)]
      await this.release(what, pointers, ownerOf({ accountId, id, digest }))
      this.owners.delete(digest)
    }
    const args = [channel, ...ended]
    const keys = orderKeys(accountId)
    return Number(await changes.runDurably(what, layout.REMOVE_KEYS, keys, args))
  }

  async find(digest: string): Promise<KeyLookup | null> {
    if (!isName(digest)) return this.engine.answerIfOpen(null)
    const what = 'looking a key up'
    const known = this.owners.get(digest)
    const owner = known?.accountId ?? (await this.ownerOf(what, digest))
    if (owner === null) return null
    const fields = ['account', `key:${digest}`, `revoked:${digest}`, 'removed-before']
    const args = [layout.accountKey(owner), ...fields]
    const [account, text, revoked, removedBefore] = listOf(
      await this.engine.lookups.send(what, 'hmget', args),
    )
    // A pointer without its account: a part of the store was lost, so 401 would be wrong.
    if (typeof account !== 'string') {
      throw unavailable(`${what} failed`, damaged(`account '${owner}'`, 'it is gone'))
    }
    const key = this.keyOf(what, digest, text, revoked)
    if (key === null) {
      this.assertRemoved(what, digest, known, Number(removedBefore ?? 0))
      return null
    }
    const validAtMs = key.revokedAtMs === undefined ? Date.now() : 0
    putIntoCache(this.owners, digest, { accountId: owner, validAtMs })
    return { key, account: parseAccount(what, owner, account) }
  }

  /** Throws for a key that was valid after the last removal: it was not removed, but lost. */
  private assertRemoved(
    what: string,
    digest: string,
    known: CachedOwner | undefined,
    removedBeforeMs: number,
  ): void {
    const isRemoved = known !== undefined && known.validAtMs < removedBeforeMs
    if (!isRemoved && !(known !== undefined && this.revocations.has(digest))) {
      const reason = damaged(nameOfKey(digest), 'it is gone and was not revoked')
      throw unavailable(`${what} failed`, reason)
    }
    this.owners.delete(digest)
  }

  private async ownerOf(what: string, digest: string): Promise<string | null> {
    const { lookups } = this.engine
    const [pointer, refusal] = await Promise.all([
      lookups.send(what, 'get', [layout.digestKey(digest)]),
      this.engine.assertStoreId(what, lookups),
    ])
    if (typeof pointer === 'string') return pointer.slice(0, pointer.indexOf(' '))
    this.engine.assertWritable(what, refusal)
    return null
  }

  private async record(what: string, accountId: string, keyId: string) {
    const { admin } = this.engine
    const own = layout.accountKey(accountId)
    const digest = await admin.send(what, 'hget', [own, `id:${keyId}`])
    if (typeof digest !== 'string') {
      await this.engine.assertSameStore(what)
      return null
    }
    const args = [own, `key:${digest}`, `revoked:${digest}`]
    const [text, revoked] = listOf(await admin.send(what, 'hmget', args))
    const key = this.keyOf(what, digest, text, revoked)
    if (key === null || typeof text !== 'string') {
      throw unavailable(`${what} failed`, damaged(`key '${keyId}'`, MISMATCH))
    }
    return { key, text }
  }

  /** Deletes pointers of this owner. */
  private async release(what: string, pointers: readonly string[], owner: string): Promise<void> {
    for (const pointer of pointers) {
      await this.engine.admin.run(what, layout.RELEASE, [pointer], [owner])
    }
  }

  private keyOf(what: string, digest: string, text: unknown, revoked: unknown): ApiKey | null {
    const key = parseKey(what, digest, text, revoked)
    if (key === null) return null
    const revokedAtMs = key.revokedAtMs ?? this.revocations.get(digest)
    if (revokedAtMs === undefined) return key
    putIntoCache(this.revocations, digest, revokedAtMs)
    return { ...key, revokedAtMs }
  }
}

/** The value of a key's pointers. */
function ownerOf({ accountId, id, digest }: Pick<ApiKey, 'accountId' | 'id' | 'digest'>): string {
  return `${accountId} ${id} ${digest}`
}

const OUTCOMES = ['created', 'plan_limit', 'account_full', 'no_account', 'id_taken'] as const

function outcomeOf(answer: unknown): KeyOutcome {
  for (const outcome of OUTCOMES) if (answer === outcome) return outcome
  throw unavailable('creating a key failed', new Error('unexpected reply of the script'))
}

/** The Redis keys of an account's order of keys; all in one slot. */
function orderKeys(accountId: string): string[] {
  return [layout.accountKey, layout.orderKey, layout.formerOrderKey].map((name) => name(accountId))
}

/** Sets an item of a cache, and removes the oldest item of a full one. */
function putIntoCache<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value)
  const [oldest] = map.size > MAX_CACHED ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}
