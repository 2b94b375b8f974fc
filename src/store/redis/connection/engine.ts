/**
 * The connections of a store in Redis, and the checks that it is the store that was opened.
 */
import { randomBytes } from 'node:crypto'
import { CannotOpen, LostStore, storeReplaced, unavailable } from '../../errors.js'
import type { RedisAddress } from '../../store-address.js'
import type { StoreOptions } from '../../store.js'
import { notificationChannel, PROBE_KEY, STORE_KEY, KEY_SCRIPTS } from '../keys/key-names.js'
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
    if (typeof id !== 'string')
      throw unavailable('opening failed', new Error('the store has no id'))
    this.id = id
    this.isNew = id === made
    for (const link of [this.lookups, this.ledger]) link.expected = { key: STORE_KEY, value: id }
  }
}

function markUnavailable(reason: Error, ...links: RedisConnection[]): void {
  for (const link of links) link.markUnavailable(reason)
}

/** `ZADD GT`, `XTRIM MINID`, `XADD NOMKSTREAM` came with it. */
const OLDEST: readonly [number, number] = [6, 2]
const MAX_SKEW_MS = 1_000

/**
 * Rejects if the server would lose data, with the setting to change. Calls `warn` with further advice to the
 * operator.
 *
 * Checks once, at the start, that the server keeps what it stores. A managed server may forbid `CONFIG`; the
 * check then skips what it cannot read.
 */
async function checkServer(
  link: RedisConnection,
  waitReplicas: number,
  warn: (message: string) => void,
): Promise<void> {
  const info = fieldsOf(await link.send('reading the version of Redis', 'info', []))
  const version = info.get('redis_version') ?? ''
  if (isOlder(version)) throw refused(`Redis ${version} is too old; 6.2 or newer is needed`)
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  if (policy !== 'noeviction') {
    throw refused(
      `maxmemory-policy is ${policy}: keys and usage would vanish when memory is short; set it to noeviction`,
    )
  }
  if (info.get('role') === 'master') {
    const replicas = Number(info.get('connected_slaves') ?? '0')
    if (replicas < waitReplicas) {
      warn(
        `Redis has ${replicas} replicas; changes of keys are refused until there are ${waitReplicas} (wait_replicas)`,
      )
    }
  }
  if (info.get('aof_enabled') === '0') await warnOfPersistence(link, warn)
  await checkClock(link, warn)
}

async function warnOfPersistence(
  link: RedisConnection,
  warn: (message: string) => void,
): Promise<void> {
  const saves = await link
    .send('reading the settings of Redis', 'config', ['get', 'save'])
    .catch(() => null)
  const points = Array.isArray(saves) ? String(saves[1]) : null
  if (points === '')
    warn('Redis writes nothing to disk: a restart loses all keys; set appendonly yes')
  else warn('Redis has no append-only file: a crash loses the last minutes; set appendonly yes')
}

async function checkClock(link: RedisConnection, warn: (message: string) => void): Promise<void> {
  const beganMs = Date.now()
  const answer = await link.send('reading the time of Redis', 'time', [])
  const endedMs = Date.now()
  const [seconds, micros] = Array.isArray(answer) ? answer.map(Number) : []
  const serverMs = (seconds ?? Number.NaN) * 1000 + (micros ?? Number.NaN) / 1000
  const skewMs = Math.max(beganMs - serverMs, serverMs - endedMs)
  if (skewMs > MAX_SKEW_MS) {
    warn(
      `the clocks of Redis and of this machine are ${Math.round(skewMs)} ms apart; run NTP on both`,
    )
  }
}

function fieldsOf(info: unknown): Map<string, string> {
  const lines = typeof info === 'string' ? info.split('\r\n') : []
  const fields = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1))
  }
  return fields
}

function isOlder(version: string): boolean {
  const [major, minor] = version.split('.').map(Number)
  if (major === undefined || minor === undefined || Number.isNaN(major + minor)) return false
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
}

function refused(why: string) {
  return unavailable('the store cannot be used', new CannotOpen(why))
}
