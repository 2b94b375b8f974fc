/**
 * The stored replies that all processes of a store share, and what drops them: orders of
 * `sluice cache clear`, and revoked keys and accounts. Replies are encrypted with their key, so that the
 * store has no text of them.
 */
import { randomUUID } from 'node:crypto'
import { isObject, numberOf, objectOf, stringOf } from '../base/json.js'
import { Seal } from '../store/seal.js'
import type { RecordFilter, RecordHead } from '../store/sealed-records.js'
import type { KeyChange, Store } from '../store/store.js'
import { CacheEntry, matches, type EntryFilter, type ReplyMemory } from './cache-in-memory.js'

/** Time between two looks for orders; a gateway follows within a second. */
const POLL_MS = 400
/** Orders are kept for a minute, in which every running gateway reads them. */
const ORDER_MS = 60_000
/** Clocks of machines may differ by this much. */
const SKEW_MS = 5_000

/** The store of the replies, and the secret that encrypts them. */
export interface CacheStore {
  readonly store: Pick<
    Store,
    'sealedRecords' | 'auditTrail' | 'subscribe' | 'findKey' | 'keyById' | 'accountById'
  >
  readonly secret: string
}

/** The current settings. */
interface SharedRepliesSettings {
  /** Whether replies are kept in the store. */
  readonly store: boolean
  /** Maximum size of the replies in the store. */
  readonly maxBytes: number
}

/** The replies in the store, for one process. Open until `close`. */
export class SharedReplies {
  private readonly records: Store['sealedRecords']
  private readonly store: CacheStore['store']
  private readonly seal: Seal
  private readonly memory: ReplyMemory
  private readonly settings: () => SharedRepliesSettings
  private readonly timer: NodeJS.Timeout
  private readonly unsubscribe: () => void
  private readonly processId = randomUUID()
  private readonly done = new Set<string>()
  private isPolling = false
  /** None in the first look: the process stores its first reply after the orders that it finds. */
  private skewMs = 0

  constructor({ store, secret }: CacheStore, memory: ReplyMemory, settings: () => SharedRepliesSettings) {
    this.store = store
    this.records = store.sealedRecords
    this.seal = new Seal(secret)
    this.memory = memory
    this.settings = settings
    this.timer = setInterval(() => void this.poll(), POLL_MS).unref()
    void this.poll()
    this.unsubscribe = store.subscribe((change) => void this.changed(change))
  }

  /** The entry; null if there is none. A store that fails has none. */
  async find(key: string, nowMs: number): Promise<CacheEntry | null> {
    if (!this.settings().store) return null
    const name = this.nameOf(key)
    try {
      const record = await this.records.find('reply', name, nowMs)
      const text = record === null ? null : this.seal.open(name, record.value)
      if (record === null || text === null) return null
      const { accountId, keyId, model, atMs, expiresAtMs, info } = record
      const route = stringOf(objectOf(JSON.parse(info))['route']) ?? ''
      const owner = { accountId, keyId, model, route }
      return new CacheEntry(owner, Buffer.from(text), { storedAtMs: atMs, expiresAtMs })
    } catch {
      return null
    }
  }

  /** Stores an entry with its text; null if replies are not kept in the store. Never rejects. */
  put(key: string, entry: CacheEntry, text: string): Promise<void> | null {
    const { store, maxBytes } = this.settings()
    if (!store) return null
    const id = this.nameOf(key)
    const { owner, storedAtMs: atMs, expiresAtMs } = entry
    const { accountId, keyId, model, route } = owner
    const value = this.seal.seal(id, text)
    const info = JSON.stringify({ route })
    const record = { kind: 'reply' as const, id, accountId, keyId, model, atMs, expiresAtMs }
    // The store counts its failures.
    return this.records.put({ ...record, info, value }, maxBytes, atMs).catch(() => undefined)
  }

  close(): void {
    clearInterval(this.timer)
    this.unsubscribe()
  }

  private nameOf(key: string): string {
    return this.seal.name(['cached', key])
  }

  /** Drops the entries that new orders name, and reports their number. */
  private async poll(): Promise<void> {
    if (this.isPolling) return
    this.isPolling = true
    try {
      const nowMs = Date.now()
      const sinceMs = nowMs - ORDER_MS
      for (const head of await this.records.list('clear', { sinceMs }, nowMs)) {
        const order = orderIn(head)
        if (order === null || this.done.has(head.id)) continue
        this.done.add(head.id)
        const dropped = this.memory.drop(
          ({ owner, storedAtMs }) => storedAtMs <= head.atMs + this.skewMs && matches(owner, order),
          'cleared',
        )
        await this.records.put(reportOf(head, this.processId, dropped), MAX_ORDER_BYTES, nowMs)
      }
      if (this.done.size > 1_000) this.done.clear()
    } catch {
      // The store counts its failures; the next look finds the orders.
    } finally {
      this.isPolling = false
      this.skewMs = SKEW_MS
    }
  }

  /** Drops the entries of revoked keys and disabled accounts. */
  private async changed({ digest }: KeyChange): Promise<void> {
    try {
      if (digest === null) return await this.dropEnded()
      const found = await this.store.findKey(digest)
      if (found === null) return await this.dropEnded()
      if (found.key.revokedAtMs !== undefined) await this.drop({ keyId: found.key.id })
    } catch {
      // The store does not answer; its next change is followed by another one.
    }
  }

  /** Looks all owners of entries up. */
  private async dropEnded(): Promise<void> {
    const owners = new Map<string, Pick<RecordHead, 'accountId' | 'keyId'>>()
    const add = ({ accountId, keyId }: Pick<RecordHead, 'accountId' | 'keyId'>): void =>
      void owners.set(`${accountId} ${keyId}`, { accountId, keyId })
    for (const { owner } of this.memory.all()) add(owner)
    if (this.settings().store) {
      for (const head of await this.records.list('reply', {}, Date.now())) add(head)
    }
    for (const { accountId, keyId } of owners.values()) {
      const account = await this.store.accountById(accountId)
      if (account === null || account.disabled) {
        await this.drop({ accountId })
        continue
      }
      // The dashboard's chat has no key.
      if (keyId === 'playground') continue
      const key = await this.store.keyById(accountId, keyId)
      if (key === null || key.revokedAtMs !== undefined) await this.drop({ keyId })
    }
  }

  private async drop(filter: EntryFilter): Promise<void> {
    this.memory.drop(({ owner }) => matches(owner, filter), 'revoked')
    if (this.settings().store) await this.records.remove('reply', filter)
  }
}

const MAX_ORDER_BYTES = 1_048_576

/** The filter of an order; null for the report of a gateway. */
function orderIn({ info }: RecordHead): EntryFilter | null {
  const value: unknown = JSON.parse(info)
  if (!isObject(value) || !isObject(value['filter'])) return null
  const filter: { accountId?: string; keyId?: string; model?: string } = {}
  for (const name of ['accountId', 'keyId', 'model'] as const) {
    const wanted = stringOf(value['filter'][name])
    if (wanted !== undefined) filter[name] = wanted
  }
  return filter
}

function recordOf(id: string, info: object, atMs: number) {
  const owner = { accountId: '', keyId: '', model: '' }
  return {
    kind: 'clear' as const,
    id,
    ...owner,
    atMs,
    expiresAtMs: atMs + ORDER_MS,
    info: JSON.stringify(info),
    value: new Uint8Array(),
  }
}

function reportOf({ id, atMs }: RecordHead, processId: string, dropped: number) {
  return recordOf(`${id}.${processId}`, { dropped }, atMs)
}

/** Time in which running gateways report what they have dropped. */
const REPORT_MS = 1_000

/**
 * Drops replies in the store and in the memory of running gateways. Resolves with their number, when running
 * gateways have followed.
 */
export async function clearReplies(records: Store['sealedRecords'], filter: EntryFilter): Promise<number> {
  const own: RecordFilter = filter
  const removed = await records.remove('reply', own)
  const id = randomUUID()
  const atMs = Date.now()
  await records.put(recordOf(id, { filter }, atMs), MAX_ORDER_BYTES, atMs)
  await new Promise((resolve) => setTimeout(resolve, REPORT_MS))
  let inMemory = 0
  for (const head of await records.list('clear', { sinceMs: atMs }, Date.now())) {
    if (!head.id.startsWith(`${id}.`)) continue
    inMemory += numberOf(objectOf(JSON.parse(head.info))['dropped']) ?? 0
  }
  // Replies in the store are in the memory of the processes that used them, too.
  return removed > 0 ? removed : inMemory
}
