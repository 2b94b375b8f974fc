/**
 * The embedded store: one SQLite file that every process of a machine opens for itself.
 */
import type { Account, ApiKey } from '../../accounts/account.js'
import { unavailable } from '../failure.js'
import {
  STORE_BOUNDS,
  type AccountEdit,
  type AccountOutcome,
  type KeyChange,
  type KeyEdit,
  type KeyLookup,
  type KeyOutcome,
  type Page,
  type PageQuery,
  type Store,
  type StoreOptions,
} from '../store.js'
import type { Told, TrailEntry } from '../trail.js'
import { SqliteAccounts } from './accounts.js'
import { Changes } from './changes.js'
import { textIn, type Statement } from '../../sqlite-driver.js'
import { Engine } from './engine.js'
import { SqliteKeys } from './keys.js'
import { SqliteLedger } from './ledger/ledger.js'
import { SqliteShelf } from './shelf.js'
import { SqliteAttempts, SqlitePasses } from './sign-in.js'
import { SqliteTrail } from './trail.js'

/** What a test may set otherwise. */
export interface SqliteOptions extends StoreOptions {
  /** Changes kept for other processes to hear of; the same in every process that opens the store. */
  readonly changesKept?: number
}

/** Opens the file at `path`, and creates it if it is not there. Rejects with `GatewayError(store_unavailable)`. */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<Store> {
  return new SqliteStore(await Engine.open(path, options), options)
}

class SqliteStore implements Store {
  readonly shelf: SqliteShelf
  readonly ledger: SqliteLedger
  readonly passes: SqlitePasses
  readonly trail: SqliteTrail
  readonly attempts: SqliteAttempts
  private readonly engine: Engine
  private readonly changes: Changes
  private readonly accounts: SqliteAccounts
  private readonly keys: SqliteKeys
  private readonly putMark: Statement
  private readonly getMark: Statement

  constructor(engine: Engine, options: SqliteOptions) {
    const bounds = { ...STORE_BOUNDS, ...options.bounds }
    this.engine = engine
    this.changes = new Changes(engine, options.changesKept)
    this.trail = new SqliteTrail(engine, bounds)
    this.accounts = new SqliteAccounts(engine, this.trail, this.changes)
    const { trail, accounts, changes } = this
    this.keys = new SqliteKeys({ engine, accounts, trail, changes, bounds })
    this.ledger = new SqliteLedger(engine, options.nowMs ?? Date.now)
    this.shelf = new SqliteShelf(engine)
    this.passes = new SqlitePasses(engine)
    this.attempts = new SqliteAttempts(engine)
    this.putMark = engine.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', ?)")
    this.getMark = engine.prepare("SELECT value FROM meta WHERE name = 'probe'")
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
    return this.keys.countLive(accountId)
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

  findKey(digest: string): KeyLookup | null {
    return this.keys.find(digest)
  }

  subscribe(listener: (change: KeyChange) => void): () => void {
    return this.changes.subscribe(listener)
  }

  async probe(): Promise<void> {
    const mark = `${process.pid} ${process.hrtime.bigint()}`
    const back = await this.engine.write('probing', () => {
      this.putMark.run(mark)
      const row = this.getMark.get()
      return row === undefined ? null : textIn(row, 'value')
    })
    if (back !== mark) throw unavailable('probing failed', new Error('read something else back'))
  }

  async close(): Promise<void> {
    this.changes.close()
    await this.engine.close()
  }
}
