/**
 * The embedded store: one SQLite file that every process of a machine opens for itself.
 */
import { textIn } from './driver.js'
import { buildStore } from '../build-store.js'
import { unavailable } from '../store-errors.js'
import { STORE_CAPACITY, type Store, type StoreOptions } from '../store.js'
import { SqliteAccounts } from './keys/accounts.js'
import type { DirectoryTables } from './keys/account-and-key-lists.js'
import { SqliteDenials } from './keys/denials.js'
import { SqliteDimensionValues } from './dimension-values.js'
import { SqliteAdminTokens } from './keys/admin-tokens.js'
import { SqliteNotifications } from './keys/notifications.js'
import { Engine } from './engine.js'
import { SqliteKeys } from './keys/keys.js'
import { transact } from './keys/account-changes.js'
import { SqliteUsers } from './keys/users.js'
import { SqliteProviderObjects } from './keys/provider-objects.js'
import { SqliteSealedRecords } from './keys/sealed-records.js'
import { SqliteLedger } from './ledger/ledger.js'
import { SqliteSharedCache, SqliteThrottle } from './shared-state.js'
import { SqliteSignInTokens } from './keys/sign-in-tokens.js'
import { SqliteAuditTrail } from './keys/audit-trail.js'

/** Options for tests. */
export interface SqliteOptions extends StoreOptions {
  /** Key changes kept for other processes to read; equal in every process that opens the store. */
  readonly changesKept?: number
  /** Size of the write-ahead log from which on it starts again. */
  readonly longLogBytes?: number
}

/**
 * Opens the file at `path`, and creates it if it is not there. Rejects with
 * `GatewayError(store_unavailable)`.
 */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<Store> {
  const engine = await Engine.open(path, options, options.longLogBytes)
  const capacity = { ...STORE_CAPACITY, ...options.capacity }
  const notifications = new SqliteNotifications(engine, options.changesKept)
  const auditTrail = new SqliteAuditTrail(engine, capacity)
  const users = new SqliteUsers(engine, notifications, auditTrail)
  const accounts = new SqliteAccounts({ engine, users, notifications })
  const keys = new SqliteKeys({ engine, accounts, notifications })
  const tables = {
    ...{ engine, statements: engine, accounts, keys, changes: notifications },
    ...{ notifications, capacity },
  }
  return buildStore({
    id: engine.id,
    isNew: engine.isNew,
    cache: new SqliteSharedCache(engine),
    ledger: new SqliteLedger(engine, options),
    signInTokens: new SqliteSignInTokens(engine, notifications, auditTrail),
    adminTokens: new SqliteAdminTokens(engine, auditTrail),
    auditTrail,
    throttle: new SqliteThrottle(engine),
    dimensionValues: new SqliteDimensionValues(engine, notifications, auditTrail),
    providerObjects: new SqliteProviderObjects(engine, capacity),
    denials: new SqliteDenials({ engine, auditTrail, notifications, capacity }),
    sealedRecords: new SqliteSealedRecords(engine, auditTrail),
    fleet: null,
    users,
    directory: {
      keys: (query) => engine.background.run('listing keys', 'listKeys', query),
      accounts: (query) => engine.background.run('listing accounts', 'listAccounts', query),
      keyNames: async (accountId) => {
        const text = await engine.background.run('reading names of keys', 'keyNames', accountId)
        const names = JSON.parse(text) as ReturnType<DirectoryTables['keyNames']>
        return new Map(
          names.map(([id, name, createdBy]) => [
            id,
            createdBy === undefined ? { name } : { name, createdBy },
          ]),
        )
      },
    },
    accounts,
    keys,
    transact: (change) => transact(tables, change),
    subscribe: (listener) => notifications.subscribe(listener),
    probe: prober(engine),
    close: async () => {
      notifications.close()
      await engine.close()
    },
  })
}

/** Writes a value and reads it back. */
function prober(engine: Engine): () => Promise<void> {
  const put = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', ?)")
  const get = engine.prepare("SELECT value FROM meta WHERE name = 'probe'")
  return async () => {
    const written = `${process.pid} ${process.hrtime.bigint()}`
    const read = await engine.write('probing', () => {
      put.run(written)
      const row = get.get()
      return row === undefined ? null : textIn(row, 'value')
    })
    if (read !== written) throw unavailable('probing failed', new Error('read another value back'))
  }
}
