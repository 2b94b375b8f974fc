/**
 * State that processes share and that need not survive: the cache, counts of attempts, and the list of the
 * fleet's members.
 */
import { isObject, numberOf, stringOf } from '../../base/json.js'
import { unavailable } from '../store-errors.js'
import {
  MAX_MEMBERS,
  type CacheCapacity,
  type CachedValue,
  type NamedValue,
  type SharedCache,
  type Fleet,
  type FleetMember,
} from '../store.js'
import type { ThrottleStore, ThrottledSubject } from '../throttle.js'
import type { RedisEngine } from './connection/redis-engine.js'
import { listOf, stringsOf } from './connection/parse-replies.js'
import type { RedisConnection } from './connection/redis-connection.js'
import { loadScript } from './connection/script.js'

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

  async put(
    item: NamedValue,
    capacity: CacheCapacity,
    nowMs: number,
    existing: 'replaced' | 'kept' = 'replaced',
  ): Promise<void> {
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeDoubleBE(item.expiresAtMs)
    const value = Buffer.concat([head, item.value])
    const args = [nowMs, capacity.entries, capacity.bytes, item.name, item.expiresAtMs, value, existing]
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

const TAKE = loadScript('records/throttle')

/**
 * Counts of a store.
 *
 * Counts of attempts in Redis: the time at which each subject's bucket is full again. Redis removes a count
 * at that time.
 */
export class RedisThrottle implements ThrottleStore {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  async take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]> {
    const rates = subjects.flatMap(({ burst, everyMs }) => [burst, everyMs])
    const keys = subjects.map(({ name }) => keyOf(name))
    const args = [Math.floor(nowMs), ...rates]
    const waits = await this.engine.admin.run('counting an attempt', TAKE, { keys, args })
    return listOf(waits).map(Number)
  }

  async forget(name: string): Promise<void> {
    await this.engine.admin.send('forgetting attempts', 'del', [keyOf(name)])
  }

  sweep(): Promise<number> {
    return Promise.resolve(0)
  }
}

/** All in one slot, so that one step can count several. */
function keyOf(name: string): string {
  return `sluice:{attempts}:${name}`
}

const PUBLISH = loadScript('records/publish-gateway')

const FLEET_ENDS = 'sluice:{fleet}:ends'
const RECORDS = 'sluice:{fleet}:records'

/** The gateways of a store. */
export class RedisFleet implements Fleet {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  async publish(member: FleetMember, ttlMs: number): Promise<FleetMember[]> {
    const args = [member.id, JSON.stringify(member), Math.ceil(ttlMs), MAX_MEMBERS]
    const what = 'publishing the generation'
    const answer = await this.engine.admin.run(what, PUBLISH, { keys: [FLEET_ENDS, RECORDS], args })
    const members = stringsOf(answer).flatMap(memberOf)
    return members.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async leave(id: string): Promise<void> {
    await this.engine.admin.send('leaving the fleet', 'zrem', [FLEET_ENDS, id])
  }
}

/** Empty for a record of another version that this one cannot read. */
function memberOf(text: string): FleetMember[] {
  try {
    const value: unknown = JSON.parse(text)
    if (!isObject(value)) return []
    const [id, host, hash] = ['id', 'host', 'hash'].map((key) => stringOf(value[key]))
    const generation = numberOf(value['generation'])
    if (id === undefined || host === undefined || hash === undefined) return []
    return generation === undefined ? [] : [{ id, host, generation, hash }]
  } catch {
    return []
  }
}
