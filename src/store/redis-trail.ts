/**
 * The audit trail in Redis: texts by id, with an index in order of ids and one by account, in one slot.
 */
import { readTrailEntry, writeTrailEntry } from './record.js'
import { damaged, unavailable } from './failure.js'
import { isName, type RedisEngine } from './redis-engine.js'
import { script } from './redis-link.js'
import { MISFIT, intact, listOf } from './redis-records.js'
import { TRAIL_LENGTH, type Trail, type TrailEntry, type TrailQuery } from './trail.js'

const TEXTS = 'sluice:{trail}:texts'
const IDS = 'sluice:{trail}:ids'
/** Account and id. */
const OWNERS = 'sluice:{trail}:owners'
const KEYS = [TEXTS, IDS, OWNERS]

/** ARGV: id, text, owner, most entries. */
const ADD = script(`
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], 0, ARGV[3])
if redis.call('ZCARD', KEYS[2]) <= tonumber(ARGV[4]) then return 0 end
local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
local text = redis.call('HGET', KEYS[1], oldest)
if text then
  redis.call('ZREM', KEYS[3], cjson.decode(text).accountId .. '\\0' .. oldest)
end
redis.call('HDEL', KEYS[1], oldest)
redis.call('ZREM', KEYS[2], oldest)
return 1`)

/** The trail of a store. */
export class RedisTrail implements Trail {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  async add(entry: TrailEntry): Promise<void> {
    const { id, accountId } = entry
    const args = [id, writeTrailEntry(entry), `${accountId}\0${id}`, TRAIL_LENGTH]
    await this.engine.admin.runDurably('adding to the audit trail', ADD, KEYS, args)
  }

  async page({ accountId, after, limit }: TrailQuery): Promise<TrailEntry[]> {
    if (after !== null && !isName(after)) return this.engine.none([])
    if (accountId !== null && !isName(accountId)) return this.engine.none([])
    const what = 'reading the audit trail'
    const start = accountId === null ? '' : `${accountId}\0`
    const first = after === null ? `[${start}\uffff` : `(${start}${after}`
    const index = accountId === null ? IDS : OWNERS
    const range = [index, first, `[${start}`, 'LIMIT', 0, limit]
    const places = listOf(await this.engine.admin.send(what, 'zrevrangebylex', range)).map(String)
    if (places.length === 0) return []
    const ids = places.map((place) => place.slice(start.length))
    const texts = listOf(await this.engine.admin.send(what, 'hmget', [TEXTS, ...ids]))
    return texts.map((text) => {
      if (typeof text !== 'string') throw unavailable(`${what} failed`, damaged('an entry', MISFIT))
      return intact(what, 'an entry', () => readTrailEntry(text))
    })
  }
}
