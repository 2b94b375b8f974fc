/**
 * The shared cache in Redis. It has a connection of its own, and all its keys are in one slot, so that one
 * script changes values, sizes and order of expiry.
 */
import { unavailable } from '../errors.js'
import type { RedisEngine } from './connection/engine.js'
import { loadScript } from './connection/script.js'
import type { RedisConnection } from './connection/redis-connection.js'
import type { CacheCapacity, CachedValue, NamedValue, SharedCache } from '../store.js'

/** Values that the script deletes in one step. */
const BATCH = 256
/** The expiry time precedes each value, as a double. */
const HEAD_BYTES = 8

const VALUES = 'sluice:{shelf}:values'
/** Names by time of expiry. */
const ENDS = 'sluice:{shelf}:ends'
/** Bytes of names and values. */
const BYTES = 'sluice:{shelf}:bytes'
const KEYS = [VALUES, ENDS, BYTES]

const PUT_AND_TRIM = loadScript('records/shared-cache')

/** The cache, on a connection of the engine. */
export class RedisSharedCache implements SharedCache {
  private readonly link: RedisConnection

  constructor({ cache }: RedisEngine) {
    this.link = cache
  }

  async put(item: NamedValue, capacity: CacheCapacity, nowMs: number): Promise<void> {
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeDoubleBE(item.expiresAtMs)
    const value = Buffer.concat([head, item.value])
    const args = [nowMs, capacity.entries, capacity.bytes, item.name, item.expiresAtMs, value]
    await this.link.run('caching a value', PUT_AND_TRIM, { keys: KEYS, args })
  }

  async get(names: readonly string[], nowMs: number): Promise<(CachedValue | null)[]> {
    if (names.length === 0) return []
    const answer = await this.link.sendForBytes('reading values', 'hmget', [VALUES, ...names])
    const values: unknown[] = Array.isArray(answer) ? answer : []
    return names.map((_, at) => {
      const item = itemOf(values[at])
      return item === null || item.expiresAtMs <= nowMs ? null : item
    })
  }

  async sweep(capacity: CacheCapacity, nowMs: number): Promise<number> {
    for (let count = 0; ;) {
      const deleted = await this.link.run('sweeping', PUT_AND_TRIM, {
        keys: KEYS,
        args: [nowMs, capacity.entries, capacity.bytes],
      })
      if (typeof deleted !== 'number') throw unavailable('sweeping failed', new Error('no count'))
      count += deleted
      if (deleted < BATCH) return count
    }
  }

  /** Resolves when connected. */
  opened(): Promise<void> {
    return this.link.opened()
  }
}

function itemOf(record: unknown): CachedValue | null {
  if (!(record instanceof Buffer) || record.length < HEAD_BYTES) return null
  return { expiresAtMs: record.readDoubleBE(), value: record.subarray(HEAD_BYTES) }
}
