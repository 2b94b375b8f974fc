/**
 * The Redis that a store is kept in: its connections, which store it is, and what is asked at the start.
 * Knows nothing of what is kept.
 */
import { randomBytes } from 'node:crypto'
import { CannotOpen, LostStore, storeReplaced, unavailable } from '../../errors.js'
import { checkServer } from './server-check.js'
import { CLAIM, notificationChannel, PROBE_KEY, STORE_KEY } from '../keys/key-names.js'
import { OTHER_STORE, RedisLink } from './link.js'
import type { RedisAddress } from './address.js'
import type { StoreOptions } from '../../store.js'

/** For what a person waits for. */
const ADMIN_MS = 1_000
/** So much longer than a look-up may the shelf take: its values may have megabytes. */
const CACHE_TIMEOUT_FACTOR = 3
const PROBE_SECONDS = 10
const NAME = /^[^\0-\x20\x7f]{1,400}$/
const ACCOUNT_ID = /^[^\0-\x20\x7f{}]{1,400}$/

/** Whether something may be kept under the name: as with the embedded engine. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** Braces in it would put an account's keys into several slots. */
export function isAccountId(id: string): boolean {
  return ACCOUNT_ID.test(id)
}

/** Open until `close`. */
export class RedisEngine {
  readonly address: RedisAddress
  /** For what people ask, and for what makes sure of an answer. */
  readonly admin: RedisLink
  /** For what people change: until the replicas have it, which may take long, a connection does nothing else. */
  readonly changes: RedisLink
  /** For what requests wait for. */
  readonly lookups: RedisLink
  /** The same, for what is limited and written down. */
  readonly ledger: RedisLink
  /** For reasoning state, which they wait for a little. */
  readonly cache: RedisLink
  readonly warn: (message: string) => void
  private made: { readonly id: string; readonly isNew: boolean } = { id: '', isNew: false }
  private closed = false

  private constructor(address: RedisAddress, warn: (message: string) => void) {
    this.address = address
    this.warn = warn
    const adminMs = Math.max(ADMIN_MS, address.timeoutMs)
    this.admin = new RedisLink(address, 'admin', adminMs)
    this.changes = new RedisLink(address, 'changes', adminMs)
    this.lookups = new RedisLink(address, 'lookups', address.timeoutMs)
    this.ledger = new RedisLink(address, 'ledger', address.timeoutMs)
    this.cache = new RedisLink(address, 'shelf', CACHE_TIMEOUT_FACTOR * address.timeoutMs)
    // A request asks on all: it waits for a server that does not answer once, not once on each.
    this.lookups.onUnavailable = (reason) => suspect(reason, this.ledger, this.cache)
    this.ledger.onUnavailable = (reason) => suspect(reason, this.lookups, this.cache)
  }

  /** Connects, checks the server and learns which store it is. Rejects with `GatewayError`. */
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

  /** As `Store.id`. */
  get id(): string {
    return this.made.id
  }

  /** As `Store.isNew`. */
  get isNew(): boolean {
    return this.made.isNew
  }

  /** Where changes are told. */
  get channel(): string {
    return notificationChannel(this.id)
  }

  /** A write and a read that prove that it works, and that it is the store that was opened. */
  async probe(): Promise<void> {
    // Of nobody else, not even another probe of this process: process ids are alike in all containers.
    const mark = randomBytes(9).toString('base64url')
    const key = `${PROBE_KEY}:${mark}`
    await this.admin.send('probing', 'set', [key, mark, 'EX', PROBE_SECONDS])
    const back = await this.admin.send('probing', 'get', [key])
    if (back !== mark) throw unavailable('probing failed', new Error('read something else back'))
    await this.assertSameStore('probing')
  }

  /**
   * "Not there" means something only of the store that we opened, and of a server that takes writes: one
   * that came back empty does not know any key, one that was replaced not those of this moment, and to say
   * so of good ones would lock everybody out.
   */
  async assertSameStore(what: string): Promise<void> {
    this.assertWritable(what, await this.assertStoreId(what, this.admin))
  }

  /** The first half of that, for what was found; resolves with why the server takes no writes, or null. */
  async assertStoreId(what: string, link: RedisLink): Promise<string | null> {
    const { value, writeError: refusal } = await link.readFromPrimary(what, STORE_KEY)
    if (value === this.id) return refusal
    // Rows must not go where nobody will look for them.
    const reason = new LostStore(OTHER_STORE)
    if (this.id !== '') suspect(reason, this.ledger)
    throw unavailable(`${what} failed`, reason)
  }

  /** The second half. */
  assertWritable(what: string, refusal: string | null): void {
    if (refusal === null) return
    throw unavailable(`${what} failed`, new Error(`Redis takes no writes: ${refusal}`))
  }

  /** What there is of what no store could have; an engine that is closed has no answer. */
  answerIfOpen<T>(answer: T): T {
    if (this.closed) throw unavailable('reading failed', new Error('the store has been closed'))
    return answer
  }

  close(): void {
    this.closed = true
    this.admin.close()
    this.changes.close()
    this.lookups.close()
    this.ledger.close()
    this.cache.close()
  }

  /** The name of the store, given by whoever opened it first. */
  private async identify(): Promise<void> {
    const made = randomBytes(9).toString('base64url')
    const claim = this.changes.runDurably('opening', CLAIM, [STORE_KEY], [made])
    // Replicas that are not there yet are warned of already; they will have the name when they are.
    await claim.catch(() => undefined)
    const id = await this.admin.send('opening', 'get', [STORE_KEY])
    if (typeof id !== 'string') throw unavailable('opening failed', new Error('it has no name'))
    this.made = { id, isNew: id === made }
    for (const link of [this.lookups, this.ledger]) link.expected = { key: STORE_KEY, value: id }
  }
}

function suspect(reason: Error, ...links: RedisLink[]): void {
  for (const link of links) link.markUnavailable(reason)
}
