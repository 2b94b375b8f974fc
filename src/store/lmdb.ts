/**
 * The embedded engine: one LMDB environment that every process of a machine opens for itself.
 * Knows nothing of HTTP, plans' limits or secrets; a digest is all it ever sees of a key.
 *
 * Every change that may make a cached look-up wrong is appended, in the same transaction, to a
 * bounded log under a sequence number that only grows; each process polls that number.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from 'lmdb'
import type { Account, ApiKey } from '../accounts/account.js'
import { LmdbAttempts } from './lmdb-attempts.js'
import { isName, LmdbEngine, put, remove, type Place } from './lmdb-engine.js'
import { storeLost } from './failure.js'
import { identify, type Identity } from './lmdb-identity.js'
import { endOf, hasEndedBefore, pageOf } from './lmdb-lists.js'
import { unavailable } from './lmdb-failure.js'
import { LmdbLedger } from './lmdb-ledger.js'
import { LmdbPasses } from './lmdb-passes.js'
import { LmdbRecords } from './lmdb-records.js'
import { LmdbShelf } from './lmdb-shelf.js'
import { LmdbTrail } from './lmdb-trail.js'
import type { Told, TrailEntry } from './trail.js'
import { editedAccount, editedKey, writeAccount, writeKey } from './record.js'
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
} from './store.js'
import { STORE_BOUNDS } from './store.js'

/** Changes kept in the log: 4,096 in 200 ms is 20,000 key changes a second. */
const LOG_LENGTH = 4096
/** Half of what `Store.subscribe` promises, so that one late timer does not break it. */
const POLL_MS = 200

type Names = 'accounts' | 'emails' | 'order' | 'keys' | 'keyIds' | 'accountKeys' | 'changes'
type Tables = Readonly<Record<Names | 'meta', Database<string>>>

/** What a test may set otherwise. */
export interface LmdbOptions extends StoreOptions {
  /** Changes kept in the log; the same in every process that opens the store. */
  readonly logLength?: number
  /** What stands for the machine's present start; another one means that it crashed in between. */
  readonly boot?: string
}

/**
 * Opens, and creates where it is not there, the store in the folder `path`. Rejects with
 * `GatewayError(store_unavailable)`.
 */
export async function openLmdb(path: string, options: LmdbOptions = {}): Promise<Store> {
  const isThere = existsSync(join(path, 'data.mdb'))
  if (options.expectedId !== undefined && !isThere) throw storeLost('none')
  if (options.mustExist === true && !isThere) {
    throw unavailable(`opening the store in '${path}' failed`, new Error('there is none'))
  }
  const engine = await LmdbEngine.open(path)
  try {
    const identity = await identify(engine, options.expectedId)
    return new LmdbStore(engine, path, options, identity)
  } catch (error) {
    await engine.close()
    throw error
  }
}

class LmdbStore implements Store {
  readonly id: string
  readonly isNew: boolean
  readonly shelf: LmdbShelf
  readonly ledger: LmdbLedger
  readonly passes: LmdbPasses
  readonly trail: LmdbTrail
  readonly attempts: LmdbAttempts
  private readonly engine: LmdbEngine
  private readonly tables: Tables
  private readonly records: LmdbRecords
  private readonly logLength: number
  private readonly bounds: StoreBounds
  private readonly listeners = new Set<(change: KeyChange) => void>()
  private timer: NodeJS.Timeout | null = null
  /** The last change that listeners were told of. */
  private seen = 0
  private pollFailed = false
  private closed = false

  constructor(engine: LmdbEngine, path: string, options: LmdbOptions, { id, isNew }: Identity) {
    this.id = id
    this.isNew = isNew
    this.engine = engine
    this.bounds = { ...STORE_BOUNDS, ...options.bounds }
    this.shelf = new LmdbShelf(join(path, 'shelf'))
    this.ledger = new LmdbLedger(join(path, 'ledger'), options.nowMs ?? Date.now, options.boot)
    this.passes = new LmdbPasses(engine)
    this.trail = new LmdbTrail(engine, this.bounds)
    this.attempts = new LmdbAttempts(engine)
    this.logLength = options.logLength ?? LOG_LENGTH
    this.tables = {
      accounts: engine.table('accounts'),
      emails: engine.table('emails'),
      order: engine.table('order'),
      keys: engine.table('keys'),
      keyIds: engine.table('key-ids'),
      accountKeys: engine.table('account-keys'),
      changes: engine.table('changes'),
      meta: engine.table('meta'),
    }
    this.records = new LmdbRecords(this.tables)
    // Whoever changed something here hears of it now and not at the next poll.
    engine.onWritten = () => {
      if (this.timer !== null) this.poll()
    }
  }

  async createAccount(account: Account, told: readonly TrailEntry[] = []): Promise<AccountOutcome> {
    const email = account.email.toLowerCase()
    if (!isName(account.id) || !isName(email)) return 'bad_name'
    return this.engine.write<AccountOutcome>('creating an account', () => {
      const { accounts, emails, order } = this.tables
      if (emails.get(email) !== undefined) return 'email_taken'
      if (accounts.get(account.id) !== undefined) return 'id_taken'
      const tell = this.trail.prepared(told)
      const place = this.next('accounts')
      tell()
      put(accounts, account.id, writeAccount({ account, order: place, liveKeys: 0 }))
      put(emails, email, account.id)
      put(order, place, account.id)
      return 'created'
    })
  }

  accountById(id: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => this.records.account(id)?.account ?? null)
  }

  accountByEmail(email: string): Promise<Account | null> {
    return this.engine.read('reading an account', () => {
      const name = email.toLowerCase()
      const id = isName(name) ? this.tables.emails.get(name) : undefined
      return id === undefined ? null : this.records.indexedAccount(id).account
    })
  }

  listAccounts(query: PageQuery): Promise<Page<Account>> {
    return this.engine.read('listing accounts', () => {
      const last = Number.MAX_SAFE_INTEGER
      return pageOf(
        this.tables.order,
        query,
        [0, last],
        (id) => this.records.indexedAccount(id).account,
      )
    })
  }

  async changeAccount(
    accountId: string,
    edit: AccountEdit,
    told: Told<Account> = () => [],
  ): Promise<Account | null> {
    return this.engine.write('changing an account', () => {
      const record = this.records.account(accountId)
      if (record === null) return null
      const account = editedAccount(record.account, edit)
      const tell = this.trail.prepared(told(record.account, account))
      // A password concerns no key.
      if (edit.plan !== undefined || edit.disabled !== undefined) this.log(null)
      tell()
      put(this.tables.accounts, accountId, writeAccount({ ...record, account }))
      return account
    })
  }

  async createKey(
    key: ApiKey,
    maxKeys: number | null,
    told: readonly TrailEntry[] = [],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    return this.engine.write<KeyOutcome>('creating a key', () => {
      const { accounts, keys, keyIds, accountKeys } = this.tables
      const record = this.records.account(key.accountId)
      if (record === null) return 'no_account'
      if (maxKeys !== null && record.liveKeys >= maxKeys) return 'plan_limit'
      const all = accountKeys.getKeysCount({ start: [key.accountId, 0], end: endOf(key.accountId) })
      if (all >= this.bounds.keysPerAccount) return 'account_full'
      // A digest once used is never written again: that could bring a revoked key back to life.
      if (keys.get(key.digest) !== undefined || keyIds.get(key.id) !== undefined) return 'id_taken'
      const tell = this.trail.prepared(told)
      const place = this.next('keys')
      const liveKeys = record.liveKeys + (key.revokedAtMs === undefined ? 1 : 0)
      tell()
      this.log(key.digest)
      put(keys, key.digest, writeKey(key))
      put(keyIds, key.id, key.digest)
      put(accountKeys, [key.accountId, place], key.digest)
      put(accounts, key.accountId, writeAccount({ ...record, liveKeys }))
      return 'created'
    })
  }

  listKeys(accountId: string, query: PageQuery): Promise<Page<ApiKey>> {
    return this.engine.read('listing keys', () => {
      if (!isName(accountId)) return { items: [], next: null }
      const { accountKeys } = this.tables
      const range: [Place, Place] = [[accountId, 0], endOf(accountId)]
      return pageOf(accountKeys, query, range, (digest) => this.records.indexedKey(digest))
    })
  }

  keyById(accountId: string, keyId: string): Promise<ApiKey | null> {
    return this.engine.read('reading a key', () => this.records.keyOf(accountId, keyId))
  }

  countKeys(accountId: string): Promise<number> {
    return this.engine.read('counting keys', () => this.records.account(accountId)?.liveKeys ?? 0)
  }

  async changeKey(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    told: Told<ApiKey> = () => [],
  ): Promise<ApiKey | null> {
    return this.engine.write('changing a key', () => {
      const key = this.records.keyOf(accountId, keyId)
      if (key === null || key.revokedAtMs !== undefined) return null
      const edited = editedKey(key, edit)
      const text = writeKey(edited)
      const tell = this.trail.prepared(told(key, edited))
      tell()
      this.log(key.digest)
      put(this.tables.keys, key.digest, text)
      return edited
    })
  }

  async revokeKey(
    accountId: string,
    keyId: string,
    atMs: number,
    told: readonly TrailEntry[] = [],
  ): Promise<boolean> {
    return this.engine.write('revoking a key', () => {
      const key = this.records.keyOf(accountId, keyId)
      if (key === null) return false
      if (key.revokedAtMs !== undefined) return true
      const record = this.records.indexedAccount(accountId)
      const liveKeys = Math.max(0, record.liveKeys - 1)
      const tell = this.trail.prepared(told)
      tell()
      this.log(key.digest)
      put(this.tables.keys, key.digest, writeKey({ ...key, revokedAtMs: atMs }))
      put(this.tables.accounts, accountId, writeAccount({ ...record, liveKeys }))
      return true
    })
  }

  async removeKeys(
    accountId: string,
    keyIds: readonly string[],
    endedBeforeMs: number,
  ): Promise<number> {
    return this.engine.write('removing keys', () => {
      const record = this.records.account(accountId)
      const { keys, keyIds: ids, accountKeys, accounts } = this.tables
      const found = [...new Set(keyIds)].map((id) => this.records.keyOf(accountId, id))
      const ended = found.filter((key) => key !== null && hasEndedBefore(key, endedBeforeMs))
      const gone = new Map(ended.flatMap((key) => (key === null ? [] : [[key.digest, key]])))
      if (record === null || gone.size === 0) return 0
      const range = { start: [accountId, 0], end: endOf(accountId) }
      const places = Array.from(accountKeys.getRange(range)).filter(({ value }) => gone.has(value))
      let { liveKeys } = record
      for (const { digest, id, revokedAtMs } of gone.values()) {
        this.log(digest)
        remove(keys, digest)
        remove(ids, id)
        if (revokedAtMs === undefined) liveKeys -= 1
      }
      for (const { key } of places) remove(accountKeys, key as Place)
      put(accounts, accountId, writeAccount({ ...record, liveKeys: Math.max(0, liveKeys) }))
      return gone.size
    })
  }

  findKey(digest: string): KeyLookup | null {
    return this.engine.readNow('looking a key up', () => {
      const key = this.records.key(digest)
      if (key === null) return null
      return { key, account: this.records.indexedAccount(key.accountId).account }
    })
  }

  subscribe(listener: (change: KeyChange) => void): () => void {
    // A wrapper, so that one function subscribed twice is called twice and stopped once.
    const own = (change: KeyChange) => listener(change)
    if (this.timer === null && !this.closed) {
      this.seen = this.engine.readNow('reading the log of changes', () => this.sequence('changes'))
      this.timer = setInterval(() => this.poll(), POLL_MS).unref()
    }
    this.listeners.add(own)
    return () => {
      this.listeners.delete(own)
      if (this.listeners.size === 0) this.stopPolling()
    }
  }

  async probe(): Promise<void> {
    const mark = `${process.pid} ${process.hrtime.bigint()}`
    const back = await this.engine.write('probing', () => {
      put(this.tables.meta, 'probe', mark)
      return this.tables.meta.get('probe')
    })
    if (back !== mark) throw unavailable('probing failed', new Error('read something else back'))
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    this.stopPolling()
    this.listeners.clear()
    await this.ledger.close()
    await this.shelf.close()
    await this.engine.close()
  }

  /** Tells the listeners what happened since the last time, in order. */
  private poll(): void {
    let changes: KeyChange[]
    try {
      changes = this.engine.readNow('reading the log of changes', () => this.changesSince())
      this.pollFailed = false
    } catch {
      // Listeners must stop trusting what they hold; their own look-ups report the failure itself.
      changes = this.pollFailed ? [] : [{ digest: null }]
      this.pollFailed = true
    }
    for (const change of changes) for (const listener of this.listeners) listener(change)
  }

  private changesSince(): KeyChange[] {
    const last = this.sequence('changes')
    const first = this.seen + 1
    this.seen = last
    // Fewer than before: somebody put another store in this one's place.
    if (last < first - 1 || last - first >= this.logLength) return [{ digest: null }]
    const changes: KeyChange[] = []
    for (let at = first; at <= last; at += 1) {
      const digest = this.tables.changes.get(at)
      if (digest === undefined) return [{ digest: null }]
      changes.push({ digest: digest === '' ? null : digest })
    }
    return changes
  }

  private stopPolling(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  /** Only inside a transaction. */
  private log(digest: string | null): void {
    const at = this.next('changes')
    put(this.tables.changes, at, digest ?? '')
    if (at > this.logLength) remove(this.tables.changes, at - this.logLength)
  }

  /** The next number of a sequence; only inside a transaction. */
  private next(name: string): number {
    const value = this.sequence(name) + 1
    put(this.tables.meta, name, String(value))
    return value
  }

  private sequence(name: string): number {
    const value = Number(this.tables.meta.get(name) ?? '0')
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new Error(`the store is damaged: the sequence of ${name} is not a number`)
    }
    return value
  }
}
