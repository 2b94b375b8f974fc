/**
 * The store of a fleet: gateways on many machines share one Redis (single, Sentinel or Cluster).
 */
import { buildStore } from '../build-store.js'
import { unavailable } from '../store-errors.js'
import { STORE_CAPACITY, type KeyChange, type Store, type StoreOptions } from '../store.js'
import type { RedisAddress } from '../store-address.js'
import { RedisEngine } from './connection/redis-engine.js'
import { RedisNotifications } from './connection/receive-notifications.js'
import { RedisFleet, RedisThrottle, RedisSharedCache } from './shared-state.js'
import { AccountTree } from './keys/account-tree.js'
import { RedisAccounts } from './keys/accounts.js'
import { RedisDenials } from './keys/denials.js'
import { RedisDimensionValues } from './keys/dimension-values.js'
import { RedisDirectory } from './keys/account-and-key-lists.js'
import { RedisAdminTokens } from './keys/admin-tokens.js'
import { RedisAuditTrail } from './keys/audit-trail.js'
import { RedisKeys } from './keys/keys.js'
import { RedisProviderObjects } from './keys/provider-objects.js'
import { RedisSealedRecords } from './keys/sealed-records.js'
import { RedisSignInTokens } from './keys/sign-in-tokens.js'
import { RedisTransactions } from './keys/account-changes.js'
import { RedisUsers } from './keys/users.js'
import { RedisLedger } from './ledger/ledger.js'

/**
 * Connects to the Redis at `address` and checks that keys can be kept there. Warns of settings that an
 * operator should change, now and later. Rejects with `GatewayError(store_unavailable)`.
 */
export async function openRedis(address: RedisAddress, options: StoreOptions): Promise<Store> {
  const timeoutMs = Math.max(address.timeoutMs, options.minTimeoutMs ?? 0)
  const engine = await RedisEngine.open({ ...address, timeoutMs }, options)
  const { store, opened } = assemble(engine, options)
  try {
    await opened()
    return store
  } catch (cause) {
    await store.close()
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw unavailable('opening the store failed', new Error(reason))
  }
}

/** `opened` resolves when every connection is open, so that no request has to wait for one. */
function assemble(
  engine: RedisEngine,
  options: StoreOptions,
): { store: Store; opened: () => Promise<unknown> } {
  const capacity = { ...STORE_CAPACITY, ...options.capacity }
  const listeners = new Set<(change: KeyChange) => void>()
  const notify = (change: KeyChange): void => {
    for (const listener of listeners) listener(change)
  }
  // While Redis was away, a revoked key may have been accepted from the cache.
  engine.lookups.onReconnect = () => notify({ digest: null })
  const notifications = new RedisNotifications({
    address: engine.address,
    channel: engine.channel,
    notify,
    warn: engine.warn,
  })
  const cache = new RedisSharedCache(engine)
  const auditTrail = new RedisAuditTrail(engine, capacity)
  const keys = new RedisKeys(engine)
  const tree = new AccountTree(engine)
  const signInTokens = new RedisSignInTokens(engine, auditTrail)
  const users = new RedisUsers({ engine, tree, signInTokens, trail: auditTrail })
  const transactions = new RedisTransactions({
    ...{ engine, users, tree, signInTokens },
    trail: auditTrail,
    maxKeysPerAccount: capacity.keysPerAccount,
    keysOf: (accountId) => keys.all(accountId),
    noteRevocation: (digest, atMs) => keys.noteRevocation(digest, atMs),
  })
  const accounts = new RedisAccounts({ engine, users, tree, signInTokens, transactions })
  const ledger = new RedisLedger(engine, options, {
    keyName: async (accountId, id) => (await keys.byId(accountId, id))?.name ?? null,
    accountName: async (id) => (await accounts.byId(id))?.name ?? null,
  })
  let isClosed = false
  const store = buildStore({
    id: engine.id,
    isNew: engine.isNew,
    cache,
    ledger,
    signInTokens,
    adminTokens: new RedisAdminTokens(engine, auditTrail),
    auditTrail,
    throttle: new RedisThrottle(engine),
    dimensionValues: new RedisDimensionValues(engine, auditTrail),
    providerObjects: new RedisProviderObjects(engine, capacity),
    denials: new RedisDenials(engine, capacity),
    sealedRecords: new RedisSealedRecords(engine, auditTrail),
    fleet: new RedisFleet(engine),
    users,
    directory: new RedisDirectory({ engine, keys, ledger }),
    accounts,
    keys,
    transact: (change) => transactions.transact(change),
    subscribe(listener) {
      const own = (change: KeyChange) => listener(change)
      if (!isClosed) listeners.add(own)
      return () => void listeners.delete(own)
    },
    probe: () => engine.probe(),
    async close() {
      isClosed = true
      listeners.clear()
      notifications.close()
      await ledger.close()
      engine.close()
    },
  })
  const opened = async (): Promise<void> => {
    await Promise.all([notifications.opened(), ledger.opened(), cache.opened()])
    await accounts.nameAll()
  }
  return { store, opened }
}
