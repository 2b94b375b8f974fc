/**
 * The embedded engine: one LMDB environment that every process of a machine opens for itself.
 * Knows nothing of HTTP, plans' limits or secrets; a digest is all it ever sees of a key.
 *
 * A write is one LMDB transaction, and its promise resolves after the commit has been synced to the
 * disk (`overlappingSync` off). Transactions are begun and committed off the event loop, so a
 * process that waits for another's lock, or for the disk, goes on serving.
 *
 * Every change that may make a cached look-up wrong is appended, in the same transaction, to a
 * bounded log under a sequence number that only grows; each process polls that number.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import type { Account, ApiKey, PlanName } from '../accounts/account.js'
import { quietly, reasonOf, unavailable } from './lmdb-failure.js'
import { assertLmdbFile } from './lmdb-file.js'
import { LmdbShelf } from './lmdb-shelf.js'
import { readAccount, readKey, writeAccount, writeKey, type AccountRecord } from './record.js'
import type { AccountOutcome, KeyChange, KeyLookup, KeyOutcome, Store } from './store.js'

/** Changes kept in the log: 4,096 in 200 ms is 20,000 key changes a second. */
const LOG_LENGTH = 4096
/** Half of what `Store.subscribe` promises, so that one late timer does not break it. */
const POLL_MS = 200
/**
 * Address space, not disk: room for about two million keys. Fixed, because growing a map that
 * other processes have open is the least trodden path of the engine.
 */
const MAP_BYTES = 4 * 1024 ** 3
/** Processes and threads that read at once; the engine's own default is 126. */
const MAX_READERS = 512
/** Longer names cannot be keys of the engine (1,978 bytes), and none of ours comes near. */
const NAME = /^[^\0-\x20\x7f]{1,400}$/

type Names = 'accounts' | 'emails' | 'order' | 'keys' | 'keyIds' | 'accountKeys' | 'changes'
type Tables = Readonly<Record<Names | 'meta', Database<string>>>

/** What a test may set otherwise. */
export interface LmdbOptions {
  /** Changes kept in the log; the same in every process that opens the store. */
  readonly logLength?: number
}

/**
 * Opens, and creates where it is not there, the store in the folder `path` (mode 0700, since it
 * holds password hashes). Rejects with `GatewayError(store_unavailable)`.
 */
export async function openLmdb(path: string, options: LmdbOptions = {}): Promise<Store> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
    await assertLmdbFile(join(path, 'data.mdb'))
    const root = open<string>({
      path,
      noSubdir: false,
      encoding: 'string',
      overlappingSync: false,
      // Batching makes promises of its own that nobody can catch: a full disk then ended the process.
      eventTurnBatching: false,
      mapSize: MAP_BYTES,
      maxReaders: MAX_READERS,
      maxDbs: 16,
    })
    const shelf = new LmdbShelf(join(path, 'shelf'))
    return new LmdbStore(root, shelf, options.logLength ?? LOG_LENGTH)
  } catch (cause) {
    throw unavailable(`opening the store in '${path}' failed`, cause)
  }
}

class LmdbStore implements Store {
  readonly shelf: LmdbShelf
  private readonly root: RootDatabase<string>
  private readonly tables: Tables
  private readonly logLength: number
  private readonly listeners = new Set<(change: KeyChange) => void>()
  private timer: NodeJS.Timeout | null = null
  /** The last change that listeners were told of. */
  private seen = 0
  private pollFailed = false
  private closed = false

  constructor(root: RootDatabase<string>, shelf: LmdbShelf, logLength: number) {
    this.root = root
    this.shelf = shelf
    this.logLength = logLength
    const table = (name: string) => root.openDB<string>(name, { encoding: 'string' })
    this.tables = {
      accounts: table('accounts'),
      emails: table('emails'),
      order: table('order'),
      keys: table('keys'),
      keyIds: table('key-ids'),
      accountKeys: table('account-keys'),
      changes: table('changes'),
      meta: table('meta'),
    }
  }

  async createAccount(account: Account): Promise<AccountOutcome> {
    const email = account.email.toLowerCase()
    if (!NAME.test(account.id) || !NAME.test(email)) return 'bad_name'
    return this.write<AccountOutcome>('creating an account', () => {
      const { accounts, emails, order } = this.tables
      if (emails.get(email) !== undefined) return 'email_taken'
      if (accounts.get(account.id) !== undefined) return 'id_taken'
      const place = this.next('accounts')
      put(accounts, account.id, writeAccount({ account, order: place, liveKeys: 0 }))
      put(emails, email, account.id)
      put(order, place, account.id)
      return 'created'
    })
  }

  accountById(id: string): Promise<Account | null> {
    return this.read('reading an account', () => this.account(id)?.account ?? null)
  }

  accountByEmail(email: string): Promise<Account | null> {
    return this.read('reading an account', () => {
      const name = email.toLowerCase()
      const id = NAME.test(name) ? this.tables.emails.get(name) : undefined
      return id === undefined ? null : this.indexedAccount(id).account
    })
  }

  listAccounts(): Promise<Account[]> {
    return this.read('listing accounts', () =>
      Array.from(this.tables.order.getRange(), ({ value }) => this.indexedAccount(value).account),
    )
  }

  async setPlan(accountId: string, plan: PlanName): Promise<boolean> {
    return this.write("changing an account's plan", () => {
      const record = this.account(accountId)
      if (record === null) return false
      const account = { ...record.account, plan }
      this.log(null)
      put(this.tables.accounts, accountId, writeAccount({ ...record, account }))
      return true
    })
  }

  async createKey(key: ApiKey, maxKeys: number | null): Promise<KeyOutcome> {
    if (!NAME.test(key.id) || !NAME.test(key.digest)) return 'bad_name'
    return this.write<KeyOutcome>('creating a key', () => {
      const { accounts, keys, keyIds, accountKeys } = this.tables
      const record = this.account(key.accountId)
      if (record === null) return 'no_account'
      if (maxKeys !== null && record.liveKeys >= maxKeys) return 'plan_limit'
      // A digest once used is never written again: that could bring a revoked key back to life.
      if (keys.get(key.digest) !== undefined || keyIds.get(key.id) !== undefined) return 'id_taken'
      const place = this.next('keys')
      const liveKeys = record.liveKeys + (key.revokedAtMs === undefined ? 1 : 0)
      this.log(key.digest)
      put(keys, key.digest, writeKey(key))
      put(keyIds, key.id, key.digest)
      put(accountKeys, [key.accountId, place], key.digest)
      put(accounts, key.accountId, writeAccount({ ...record, liveKeys }))
      return 'created'
    })
  }

  listKeys(accountId: string): Promise<ApiKey[]> {
    return this.read('listing keys', () => {
      if (!NAME.test(accountId)) return []
      const range = { start: [accountId, 0], end: [accountId, Number.MAX_SAFE_INTEGER] }
      return Array.from(this.tables.accountKeys.getRange(range), ({ value }) =>
        this.indexedKey(value),
      )
    })
  }

  async revokeKey(accountId: string, keyId: string, atMs: number): Promise<boolean> {
    return this.write('revoking a key', () => {
      const digest = NAME.test(keyId) ? this.tables.keyIds.get(keyId) : undefined
      if (digest === undefined) return false
      const key = this.indexedKey(digest)
      if (key.accountId !== accountId) return false
      if (key.revokedAtMs !== undefined) return true
      const record = this.indexedAccount(accountId)
      const liveKeys = Math.max(0, record.liveKeys - 1)
      this.log(digest)
      put(this.tables.keys, digest, writeKey({ ...key, revokedAtMs: atMs }))
      put(this.tables.accounts, accountId, writeAccount({ ...record, liveKeys }))
      return true
    })
  }

  findKey(digest: string): KeyLookup | null {
    return this.readNow('looking a key up', () => {
      const key = this.key(digest)
      if (key === null) return null
      return { key, account: this.indexedAccount(key.accountId).account }
    })
  }

  subscribe(listener: (change: KeyChange) => void): () => void {
    // A wrapper, so that one function subscribed twice is called twice and stopped once.
    const own = (change: KeyChange) => listener(change)
    if (this.timer === null && !this.closed) {
      this.seen = this.readNow('reading the log of changes', () => this.sequence('changes'))
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
    const back = await this.write('probing', () => {
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
    try {
      await this.shelf.close()
      await this.root.close()
    } catch (cause) {
      throw unavailable('closing failed', cause)
    }
  }

  /** Tells the listeners what happened since the last time, in order. */
  private poll(): void {
    let changes: KeyChange[]
    try {
      changes = this.readNow('reading the log of changes', () => this.changesSince())
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
    if (at > this.logLength) quietly(this.tables.changes.remove(at - this.logLength))
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

  private account(id: string): AccountRecord | null {
    const text = NAME.test(id) ? this.tables.accounts.get(id) : undefined
    if (text === undefined) return null
    const record = intact(`account '${id}'`, () => readAccount(text))
    if (record.account.id !== id) throw damaged(`account '${id}'`, 'it is another account')
    return record
  }

  private key(digest: string): ApiKey | null {
    const text = NAME.test(digest) ? this.tables.keys.get(digest) : undefined
    if (text === undefined) return null
    const key = intact('a key', () => readKey(text))
    // The answer must be to this question and no other, whatever went wrong below.
    if (key.digest !== digest) throw damaged(`key '${key.id}'`, 'its digest is not the one asked')
    return key
  }

  private indexedAccount(id: string): AccountRecord {
    const record = this.account(id)
    if (record === null) throw damaged(`account '${id}'`, 'an index or a key names it; it is gone')
    return record
  }

  private indexedKey(digest: string): ApiKey {
    const key = this.key(digest)
    if (key === null) throw damaged('a key', 'an index names it; it is gone')
    return key
  }

  private read<T>(what: string, action: () => T): Promise<T> {
    // A promise in every case: a caller with `.catch` must not be surprised by a throw.
    return new Promise((resolve) => resolve(this.readNow(what, action)))
  }

  private readNow<T>(what: string, action: () => T): T {
    try {
      this.assertOpen()
      // Otherwise a read may see the snapshot of an earlier one in the same turn of the loop.
      this.root.resetReadTxn()
      return action()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /**
   * One transaction, synced when this resolves. Every rule is checked and every text is made before
   * the first `put`, because an exception does not undo the puts before it.
   */
  private async write<T>(what: string, action: () => T): Promise<T> {
    let result: T
    try {
      this.assertOpen()
      result = await this.root.transaction(action)
    } catch (cause) {
      throw unavailable(`${what} failed`, await reasonOf(cause))
    }
    // Whoever changed something here hears of it now and not at the next poll.
    if (this.timer !== null) this.poll()
    return result
  }

  private assertOpen(): void {
    if (this.closed) throw new Error('the store has been closed')
  }
}

/** Inside a transaction a put has happened when it returns; its promise is that of the commit. */
function put(table: Database<string>, key: string | number | (string | number)[], text: string) {
  quietly(table.put(key, text))
}

function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}

function damaged(what: string, why: string): Error {
  return new Error(`the store's record of ${what} is damaged: ${why}`)
}
