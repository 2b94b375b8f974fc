/**
 * The connections of a store in Redis, and the checks that it is the store that was opened.
 */
import { randomBytes } from 'node:crypto'
import { CannotOpen, LostStore, storeReplaced, unavailable } from '../../store-errors.js'
import type { RedisAddress } from '../../store-address.js'
import type { StoreOptions } from '../../store.js'
import { notificationChannel, PROBE_KEY, STORE_KEY, KEY_SCRIPTS } from '../keys/key-names.js'
import { checkServer } from './check-server.js'
import { OTHER_STORE, RedisConnection } from './redis-connection.js'

/** Time limit of commands of the dashboard and the CLI. */
const ADMIN_MS = 1_000
/** Values of the cache may have megabytes. */
const CACHE_TIMEOUT_FACTOR = 3
const PROBE_SECONDS = 10
const NAME = /^[^\0-\x20\x7f]{1,400}$/
const ACCOUNT_ID = /^[^\0-\x20\x7f{}]{1,400}$/

/** Whether the engine accepts the name of a record. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** The same for an account's id: braces would put its keys into several slots. */
export function isAccountId(id: string): boolean {
  return ACCOUNT_ID.test(id)
}

/** Open until `close`. */
export class RedisEngine {
  readonly address: RedisAddress
  /** For reads of the dashboard and the CLI, and for checks. */
  readonly admin: RedisConnection
  /** For changes of accounts and keys: `WAIT` blocks its connection until the replicas have the change. */
  readonly changes: RedisConnection
  /** For authentication of requests. */
  readonly lookups: RedisConnection
  /** For limits and ledger entries of requests. */
  readonly ledger: RedisConnection
  /** For the shared cache. */
  readonly cache: RedisConnection
  readonly warn: (message: string) => void
  /** As `Store.id`; empty until it is open. */
  id = ''
  /** As `Store.isNew`. */
  isNew = false

  private constructor(address: RedisAddress, warn: (message: string) => void) {
    this.address = address
    this.warn = warn
    const adminMs = Math.max(ADMIN_MS, address.timeoutMs)
    this.admin = new RedisConnection(address, 'admin', adminMs)
    this.changes = new RedisConnection(address, 'changes', adminMs)
    this.lookups = new RedisConnection(address, 'lookups', address.timeoutMs)
    this.ledger = new RedisConnection(address, 'ledger', address.timeoutMs)
    this.cache = new RedisConnection(address, 'shelf', CACHE_TIMEOUT_FACTOR * address.timeoutMs)
    // A request uses all of them: it waits for one timeout, not for one on each.
    this.lookups.onUnavailable = (reason) => markUnavailable(reason, this.ledger, this.cache)
    this.ledger.onUnavailable = (reason) => markUnavailable(reason, this.lookups, this.cache)
  }

  /** Connects, checks the server and reads the id of the store. Rejects with `GatewayError`. */
  static async open(address: RedisAddress, options: StoreOptions): Promise<RedisEngine> {
    const { warn = () => undefined, mustExist, expectedId } = options
    const engine = new RedisEngine(address, warn)
    try {
      await Promise.all([engine.admin, engine.changes, engine.lookups].map((link) => link.opened()))
      await checkServer(engine.admin, address.waitReplicas, warn)
      const there = await engine.admin.send('opening', 'get', [STORE_KEY])
      if (expectedId !== undefined && there !== expectedId) {
        throw storeReplaced(there === null ? 'none' : 'another')
      }
      if (mustExist === true && there === null) {
        throw unavailable('opening the store failed', new CannotOpen('this Redis has no store'))
      }
      await engine.identify()
      await engine.probe()
      return engine
    } catch (error) {
      engine.close()
      throw error
    }
  }

  /** The channel of notifications. */
  get channel(): string {
    return notificationChannel(this.id)
  }

  /** Writes a value, and checks that it is the store that was opened. */
  async probe(): Promise<void> {
    await this.admin.send('probing', 'set', [PROBE_KEY, Date.now(), 'EX', PROBE_SECONDS])
    await this.assertSameStore('probing')
  }

  /**
   * Rejects unless it is the store that was opened and accepts writes. Called before a record is reported as
   * missing: an emptied server has no keys, a former primary not the newest, and 401 for a valid key would be
   * wrong.
   */
  async assertSameStore(what: string): Promise<void> {
    this.assertWritable(what, await this.assertStoreId(what, this.admin))
  }

  /** Checks the id only; resolves with the reason why the server accepts no writes, or null. */
  async assertStoreId(what: string, link: RedisConnection): Promise<string | null> {
    const { value, writeError } = await link.readFromPrimary(what, STORE_KEY)
    if (value === this.id) return writeError
    // No ledger entries into another store.
    const reason = new LostStore(OTHER_STORE)
    if (this.id !== '') markUnavailable(reason, this.ledger)
    throw unavailable(`${what} failed`, reason)
  }

  /** Throws if there is a reason. */
  assertWritable(what: string, writeError: string | null): void {
    if (writeError === null) return
    throw unavailable(`${what} failed`, new Error(`Redis accepts no writes: ${writeError}`))
  }

  close(): void {
    const { admin, changes, lookups, ledger, cache } = this
    for (const link of [admin, changes, lookups, ledger, cache]) link.close()
  }

  /** Reads the id of the store, or creates it. */
  private async identify(): Promise<void> {
    const made = randomBytes(9).toString('base64url')
    const claim = this.changes.runDurably('opening', KEY_SCRIPTS.createPointer, {
      keys: [STORE_KEY],
      args: [made],
    })
    // Missing replicas caused a warning already; they get the id when they connect.
    await claim.catch(() => undefined)
    const id = await this.admin.send('opening', 'get', [STORE_KEY])
    if (typeof id !== 'string') throw unavailable('opening failed', new Error('the store has no id'))
    this.id = id
    this.isNew = id === made
    for (const link of [this.lookups, this.ledger]) link.expected = { key: STORE_KEY, value: id }
  }
}

function markUnavailable(reason: Error, ...links: RedisConnection[]): void {
  for (const link of links) link.markUnavailable(reason)
}
