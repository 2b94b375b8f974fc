/**
 * Finds keys by their digest. A process caches the account of each digest, and the revocations that it has
 * seen: a key that disappears without a revocation is a failure of the store, and a revocation stays in force
 * if the store loses it.
 */
import type { ApiKey } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../errors.js'
import type { KeyLookup } from '../../store.js'
import { isName, type RedisEngine } from '../connection/engine.js'
import { accountKey, digestKey } from './key-names.js'
import {
  listOf,
  nameOfKey,
  parseAccount,
  parseKey,
  type KeyReplies,
} from '../connection/parse-replies.js'

/** Maximum number of digests in each of the two caches. */
const MAX_CACHED = 100_000

/** The operation, for messages. */
const WHAT = 'looking a key up'

/** The account of a digest, and when its key was last found valid. */
interface CachedOwner {
  readonly accountId: string
  readonly validAtMs: number
}

/** The look-ups of one process. */
export class KeyLookups {
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
    const fields = ['account', `key:${digest}`, `revoked:${digest}`, 'removed-before']
    const args = [accountKey(owner), ...fields]
    const [account, text, revoked, removedBefore] = listOf(
      await this.engine.lookups.send(WHAT, 'hmget', args),
    )
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
    return { key, account: parseAccount(WHAT, owner, account) }
  }

  /** Throws for a key that was valid after the last removal: it was not removed, but lost. */
  private assertRemoved(
    digest: string,
    known: CachedOwner | undefined,
    removedBeforeMs: number,
  ): void {
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
