/**
 * Keys in Redis: all there is to know of one stands with its account, and pointers say whose it is.
 * Pointers are written first: killed before the rest, they point to nothing, which is an unknown key.
 */
import type { ApiKey } from '../accounts/account.js'
import { damaged, unavailable } from './failure.js'
import { editedKey, writeKey } from './record.js'
import { isAccountId, isName, type RedisEngine } from './redis-engine.js'
import * as layout from './redis-layout.js'
import { MISFIT, accountOf, keyOf, listOf } from './redis-records.js'
import type { RedisTrail } from './redis-trail.js'
import type { KeyEdit, KeyLookup, KeyOutcome } from './store.js'
import type { Told, TrailEntry } from './trail.js'

/** Digests whose account, or whose revocation, is remembered. */
const MOST_REMEMBERED = 100_000
/** Records read with one command. */
const CHUNK = 500

/** The part of `Store` that is about keys. */
export class RedisKeys {
  private readonly engine: RedisEngine
  private readonly trail: RedisTrail
  /** Whose a digest is never changes, so it is asked once. */
  private readonly owners = new Map<string, string>()
  /** When keys were revoked: what was seen once holds, whatever a store that lost it says later. */
  private readonly tombstones = new Map<string, number>()

  constructor(engine: RedisEngine, trail: RedisTrail) {
    this.engine = engine
    this.trail = trail
  }

  async create(
    key: ApiKey,
    maxKeys: number | null,
    told: readonly TrailEntry[],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    if (!isAccountId(key.accountId)) return 'no_account'
    const what = 'creating a key'
    const { changes, channel } = this.engine
    await this.engine.assertSame(what)
    const mine = `${key.accountId} ${key.id} ${key.digest}`
    const made: string[] = []
    for (const claim of [layout.idKey(key.id), layout.digestKey(key.digest)]) {
      const answer = await changes.runDurably(what, layout.CLAIM, [claim], [mine])
      const [claimed, owner] = listOf(answer)
      if (claimed === 1) made.push(claim)
      else if (owner !== mine) return this.undo(what, made, mine, 'id_taken')
    }
    const { accountId } = key
    const own = [layout.accountKey, layout.orderKey, layout.toldKey].map((name) => name(accountId))
    const revoked = key.revokedAtMs ?? ''
    const args = [key.digest, key.id, writeKey(key), maxKeys ?? '', revoked, channel]
    const outcome = await this.trail.along(accountId, told, async (texts) =>
      outcomeOf(await changes.runDurably(what, layout.PUT_KEY, own, [...args, ...texts])),
    )
    return outcome === 'created' ? outcome : this.undo(what, made, mine, outcome)
  }

  async list(accountId: string): Promise<ApiKey[]> {
    if (!isAccountId(accountId)) return this.engine.none([])
    const what = 'listing keys'
    const order = [layout.orderKey(accountId), 0, -1]
    const digests = listOf(await this.engine.admin.send(what, 'lrange', order)).map(String)
    if (digests.length === 0) await this.engine.assertSame(what)
    const keys: ApiKey[] = []
    for (let from = 0; from < digests.length; from += CHUNK) {
      const some = digests.slice(from, from + CHUNK)
      const fields = some.flatMap((digest) => [`key:${digest}`, `revoked:${digest}`])
      const args = [layout.accountKey(accountId), ...fields]
      const texts = listOf(await this.engine.admin.send(what, 'hmget', args))
      some.forEach((digest, at) => {
        const key = this.keyOf(what, digest, texts[2 * at], texts[2 * at + 1])
        if (key === null) throw unavailable(`${what} failed`, damaged('the order of keys', MISFIT))
        keys.push(key)
      })
    }
    return keys
  }

  async byId(accountId: string, keyId: string): Promise<ApiKey | null> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.none(null)
    return (await this.record('reading a key', accountId, keyId))?.key ?? null
  }

  async count(accountId: string): Promise<number> {
    if (!isAccountId(accountId)) return this.engine.none(0)
    const what = 'counting keys'
    const live = await this.engine.admin.send(what, 'hget', [layout.accountKey(accountId), 'live'])
    if (live === null) await this.engine.assertSame(what)
    return Number(live ?? 0)
  }

  async change(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    told: Told<ApiKey>,
  ): Promise<ApiKey | null> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.none(null)
    const what = 'changing a key'
    for (;;) {
      const found = await this.record(what, accountId, keyId)
      if (found === null || found.key.revokedAtMs !== undefined) return null
      const key = editedKey(found.key, edit)
      const keys = [layout.accountKey(accountId), layout.toldKey(accountId)]
      const args = [key.digest, found.text, writeKey(key), this.engine.channel]
      // Another change may have come in between, or its end; then it is read again.
      const done = await this.trail.along(accountId, told(found.key, key), (texts) =>
        this.engine.changes.runDurably(what, layout.REPLACE_KEY, keys, [...args, ...texts]),
      )
      if (done === 1) return key
    }
  }

  async revoke(
    accountId: string,
    keyId: string,
    atMs: number,
    told: readonly TrailEntry[],
  ): Promise<boolean> {
    if (!isAccountId(accountId) || !isName(keyId)) return this.engine.none(false)
    const what = 'revoking a key'
    const keys = [layout.accountKey(accountId), layout.toldKey(accountId)]
    const args = [keyId, atMs, this.engine.channel]
    const digest = await this.trail.along(accountId, told, (texts) =>
      this.engine.changes.runDurably(what, layout.REVOKE_KEY, keys, [...args, ...texts]),
    )
    if (typeof digest === 'string') {
      remember(this.tombstones, digest, atMs)
      return true
    }
    await this.engine.assertSame(what)
    return false
  }

  async find(digest: string): Promise<KeyLookup | null> {
    if (!isName(digest)) return this.engine.none(null)
    const what = 'looking a key up'
    const owner = this.owners.get(digest) ?? (await this.ownerOf(what, digest))
    if (owner === null) return null
    const fields = ['account', `key:${digest}`, `revoked:${digest}`]
    const args = [layout.accountKey(owner), ...fields]
    const [account, text, revoked] = listOf(await this.engine.lookups.send(what, 'hmget', args))
    // A pointer without its account: a part of the store is gone, which is not an unknown key.
    if (typeof account !== 'string')
      throw unavailable(`${what} failed`, damaged('its account', MISFIT))
    const key = this.keyOf(what, digest, text, revoked)
    if (key === null) return null
    remember(this.owners, digest, owner)
    return { key, account: accountOf(what, owner, account) }
  }

  private async ownerOf(what: string, digest: string): Promise<string | null> {
    const { lookups } = this.engine
    const [pointer, refusal] = await Promise.all([
      lookups.send(what, 'get', [layout.digestKey(digest)]),
      this.engine.assertOurs(what, lookups),
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
      await this.engine.assertSame(what)
      return null
    }
    const args = [own, `key:${digest}`, `revoked:${digest}`]
    const [text, revoked] = listOf(await admin.send(what, 'hmget', args))
    const key = this.keyOf(what, digest, text, revoked)
    if (key === null || typeof text !== 'string') {
      throw unavailable(`${what} failed`, damaged('a key', MISFIT))
    }
    return { key, text }
  }

  private async undo(
    what: string,
    claims: readonly string[],
    mine: string,
    outcome: KeyOutcome,
  ): Promise<KeyOutcome> {
    for (const claim of claims) await this.engine.admin.run(what, layout.RELEASE, [claim], [mine])
    return outcome
  }

  private keyOf(what: string, digest: string, text: unknown, revoked: unknown): ApiKey | null {
    const key = keyOf(what, digest, text, revoked)
    if (key === null) return null
    const revokedAtMs = key.revokedAtMs ?? this.tombstones.get(digest)
    if (revokedAtMs === undefined) return key
    remember(this.tombstones, digest, revokedAtMs)
    return { ...key, revokedAtMs }
  }
}

function outcomeOf(answer: unknown): KeyOutcome {
  for (const outcome of ['created', 'plan_limit', 'no_account', 'id_taken'] as const) {
    if (answer === outcome) return outcome
  }
  throw unavailable('creating a key failed', new Error('the script gave no answer'))
}

/** The oldest is forgotten; it is asked for again. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.has(key)) return
  map.set(key, value)
  if (map.size <= MOST_REMEMBERED) return
  const [oldest] = map.keys()
  if (oldest !== undefined) map.delete(oldest)
}
