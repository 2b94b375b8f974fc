/**
 * The embedded store: one SQLite file that every process of a machine opens for itself.
 */
import { textIn } from './driver.js'
import { buildStore } from '../build-store.js'
import { unavailable } from '../errors.js'
import { STORE_CAPACITY, type Store, type StoreOptions } from '../store.js'
import { SqliteAccounts } from './keys/accounts.js'
import { KeyChanges } from './keys/key-changes.js'
import { Engine } from './engine.js'
import { SqliteKeys } from './keys/keys.js'
import { SqliteLedger } from './ledger/ledger.js'
import { SqliteSharedCache } from './shared-cache.js'
import { SqliteSignInTokens } from './keys/sign-in-tokens.js'
import { SqliteThrottle } from './keys/throttle.js'
import { SqliteAuditTrail } from './keys/audit-trail.js'

/** What a test may set otherwise. */
export interface SqliteOptions extends StoreOptions {
  /** Changes kept for other processes to read; the same in every process that opens the store. */
  readonly changesKept?: number
}

/** Opens the file at `path`, and creates it if it is not there. Rejects with `GatewayError(store_unavailable)`. */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<Store> {
  const engine = await Engine.open(path, options)
  const bounds = { ...STORE_CAPACITY, ...options.capacity }
  const changes = new KeyChanges(engine, options.changesKept)
  const trail = new SqliteAuditTrail(engine, bounds)
  const accounts = new SqliteAccounts(engine, trail, changes)
  return buildStore({
    id: engine.id,
    isNew: engine.isNew,
    cache: new SqliteSharedCache(engine),
    ledger: new SqliteLedger(engine, options.nowMs ?? Date.now),
    signInTokens: new SqliteSignInTokens(engine),
    auditTrail: trail,
    throttle: new SqliteThrottle(engine),
    fleet: null,
    accounts,
    keys: new SqliteKeys({ engine, accounts, trail, changes, bounds }),
    subscribe: (listener) => changes.subscribe(listener),
    probe: prober(engine),
    close: async () => {
      changes.close()
      await engine.close()
    },
  })
}

/** Writes something, and reads it back. */
function prober(engine: Engine): () => Promise<void> {
  const put = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', ?)")
  const get = engine.prepare("SELECT value FROM meta WHERE name = 'probe'")
  return async () => {
    const mark = `${process.pid} ${process.hrtime.bigint()}`
    const back = await engine.write('probing', () => {
      put.run(mark)
      const row = get.get()
      return row === undefined ? null : textIn(row, 'value')
    })
    if (back !== mark) throw unavailable('probing failed', new Error('read something else back'))
  }
}
