/**
 * The engine for a fleet: gateways on many machines share one Redis (single, Sentinel or Cluster).
 * Knows nothing of HTTP, plans' limits or secrets; a digest is all it ever sees of a key.
 */
import type { Account, ApiKey } from '../../accounts/account.js'
import { unavailable } from '../failure.js'
import { RedisAttempts } from './keys/sign-in-attempts.js'
import { RedisAccounts } from './keys/accounts.js'
import { RedisEngine } from './connection/engine.js'
import { RedisKeys } from './keys/keys.js'
import { RedisLedger } from './ledger/ledger.js'
import { RedisNews } from './connection/notifications.js'
import { RedisPasses } from './keys/sessions.js'
import { RedisShelf } from './reasoning-state.js'
import { RedisTrail } from './keys/audit-trail.js'
import type { RedisPlace } from './connection/address.js'
import type { Told, TrailEntry } from '../trail.js'
import type {
  AccountEdit,
  AccountOutcome,
  KeyChange,
  KeyEdit,
  KeyLookup,
  KeyOutcome,
  Page,
  PageQuery,
  Store,
  StoreBounds,
  StoreOptions,
} from '../store.js'
import { STORE_BOUNDS } from '../store.js'

/**
 * Connects to the Redis at `place` and checks that keys can be kept there; An operator is
 * warned of what is not as it should be, now and later. Rejects with `GatewayError(store_unavailable)`.
 */
export async function openRedis(place: RedisPlace, options: StoreOptions): Promise<Store> {
  const timeoutMs = Math.max(place.timeoutMs, options.patienceMs ?? 0)
  const engine = await RedisEngine.open({ ...place, timeoutMs }, options)
  const store = new RedisStore(engine, { ...STORE_BOUNDS, ...options.bounds }, options.nowMs)
  try {
    await store.opened()
    return store
  } catch (cause) {
    await store.close()
    throw unavailable('opening the store failed', messageOf(cause))
  }
}

class RedisStore implements Store {
  readonly shelf: RedisShelf
  readonly ledger: RedisLedger
  readonly passes: RedisPasses
  readonly trail: RedisTrail
  readonly attempts: RedisAttempts
  private readonly engine: RedisEngine
  private readonly accounts: RedisAccounts
  private readonly keys: RedisKeys
  private readonly news: RedisNews
  private readonly listeners = new Set<(change: KeyChange) => void>()
  private closed = false

  constructor(engine: RedisEngine, bounds: StoreBounds, nowMs: (() => number) | undefined) {
    this.engine = engine
    this.ledger = new RedisLedger(engine, nowMs)
    this.shelf = new RedisShelf(engine)
    this.passes = new RedisPasses(engine)
    this.trail = new RedisTrail(engine, bounds)
    this.attempts = new RedisAttempts(engine)
    this.accounts = new RedisAccounts(engine, this.trail)
    this.keys = new RedisKeys(engine, this.trail, bounds.keysPerAccount)
    const tell = (change: KeyChange): void => {
      for (const listener of this.listeners) listener(change)
    }
    // Who was looked up last while it was away was let in on trust.
    engine.lookups.onBack = () => tell({ digest: null })
    this.news = new RedisNews(engine.place, engine.channel, tell, engine.warn)
  }

  /** Resolves when every connection is there: none has to be made while a request waits. */
  async opened(): Promise<void> {
    await Promise.all([this.news.opened(), this.ledger.opened(), this.shelf.opened()])
  }

  get id(): string {
    return this.engine.id
  }

  get isNew(): boolean {
    return this.engine.isNew
  }

  createAccount(account: Account, told: readonly TrailEntry[] = []): Promise<AccountOutcome> {
    return this.accounts.create(account, told)
  }

  accountById(id: string): Promise<Account | null> {
    return this.accounts.byId(id)
  }

  accountByEmail(email: string): Promise<Account | null> {
    return this.accounts.byEmail(email)
  }

  listAccounts(query: PageQuery): Promise<Page<Account>> {
    return this.accounts.list(query)
  }

  changeAccount(
    accountId: string,
    edit: AccountEdit,
    told: Told<Account> = () => [],
  ): Promise<Account | null> {
    return this.accounts.change(accountId, edit, told)
  }

  createKey(
    key: ApiKey,
    maxKeys: number | null,
    told: readonly TrailEntry[] = [],
  ): Promise<KeyOutcome> {
    return this.keys.create(key, maxKeys, told)
  }

  listKeys(accountId: string, query: PageQuery): Promise<Page<ApiKey>> {
    return this.keys.list(accountId, query)
  }

  keyById(accountId: string, keyId: string): Promise<ApiKey | null> {
    return this.keys.byId(accountId, keyId)
  }

  countKeys(accountId: string): Promise<number> {
    return this.keys.count(accountId)
  }

  changeKey(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    told: Told<ApiKey> = () => [],
  ): Promise<ApiKey | null> {
    return this.keys.change(accountId, keyId, edit, told)
  }

  revokeKey(
    accountId: string,
    keyId: string,
    atMs: number,
    told: readonly TrailEntry[] = [],
  ): Promise<boolean> {
    return this.keys.revoke(accountId, keyId, atMs, told)
  }

  removeKeys(accountId: string, keyIds: readonly string[], endedBeforeMs: number): Promise<number> {
    return this.keys.remove(accountId, keyIds, endedBeforeMs)
  }

  findKey(digest: string): Promise<KeyLookup | null> {
    return this.keys.find(digest)
  }

  subscribe(listener: (change: KeyChange) => void): () => void {
    const own = (change: KeyChange) => listener(change)
    if (!this.closed) this.listeners.add(own)
    return () => {
      this.listeners.delete(own)
    }
  }

  probe(): Promise<void> {
    return this.engine.probe()
  }

  async close(): Promise<void> {
    this.closed = true
    this.listeners.clear()
    this.news.close()
    await this.ledger.close()
    this.engine.close()
  }
}

function messageOf(cause: unknown): Error {
  return new Error(cause instanceof Error ? cause.message : String(cause))
}
