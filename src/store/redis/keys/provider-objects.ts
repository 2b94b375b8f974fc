/**
 * The owners of providers' objects in Redis: records by upstream and id, with an index by expiry time and one
 * for each account, all in one slot.
 */
import { isObject, objectOf, stringOf } from '../../../base/json.js'
import { endOf, type ProviderObject, type ProviderObjects } from '../../provider-objects.js'
import type { StoreCapacity } from '../../store.js'
import { isName, type RedisEngine } from '../connection/redis-engine.js'
import { listOf, parseRecord } from '../connection/parse-replies.js'
import { loadScript } from '../connection/script.js'

const RECORDS = 'sluice:{objects}:records'
/** Names by expiry time. */
const ENDS = 'sluice:{objects}:ends'
/** Objects that one script removes. */
const BATCH = 256

const PUT = loadScript('records/put-provider-objects')
const REMOVE = loadScript('records/remove-provider-objects')

/** The objects of a store. */
export class RedisProviderObjects implements ProviderObjects {
  private readonly engine: RedisEngine
  private readonly capacity: StoreCapacity

  constructor(engine: RedisEngine, capacity: StoreCapacity) {
    this.engine = engine
    this.capacity = capacity
  }

  async put(objects: readonly ProviderObject[], nowMs: number): Promise<void> {
    const { providerObjectsPerAccount, providerObjects } = this.capacity
    for (const accountId of new Set(objects.map((object) => object.accountId))) {
      const own = objects.filter((object) => object.accountId === accountId && isName(object.id))
      if (own.length === 0) continue
      const keys = [RECORDS, ENDS, `sluice:{objects}:of:${accountId}`]
      const items = own.flatMap((object) => [nameOf(object), recordOf(object), endOf(object)])
      const args = [nowMs, accountId, providerObjectsPerAccount, providerObjects, ...items]
      await this.engine.changes.runDurably("storing providers' objects", PUT, { keys, args })
    }
  }

  async find(upstream: string, ids: readonly string[], nowMs: number): Promise<(ProviderObject | null)[]> {
    const what = "reading providers' objects"
    if (ids.length === 0) return []
    const names = ids.map((id) => nameOf({ upstream, id: isName(id) ? id : '' }))
    const records = listOf(await this.engine.lookups.send(what, 'hmget', [RECORDS, ...names]))
    const found = records.map((record) => (typeof record === 'string' ? read(what, record) : null))
    // A store that lost its data must not hide the objects of every account.
    if (found.includes(null)) await this.engine.assertSameStore(what)
    return found.map((object) => (object !== null && endOf(object) > nowMs ? object : null))
  }

  async remove(upstream: string, id: string): Promise<void> {
    const args = ['', nameOf({ upstream, id })]
    const what = "removing a provider's object"
    if (isName(id)) await this.engine.changes.run(what, REMOVE, { keys: [RECORDS, ENDS], args })
  }

  async *all(): AsyncIterable<readonly ProviderObject[]> {
    const what = "reading providers' objects"
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const args = [RECORDS, cursor, 'COUNT', BATCH]
      const [next, items] = listOf(await this.engine.admin.send(what, 'hscan', args))
      cursor = String(next)
      const records = listOf(items).filter((_, at) => at % 2 === 1)
      yield records.map((record) => read(what, String(record)))
    }
  }

  async sweep(nowMs: number): Promise<number> {
    const parameters = { keys: [RECORDS, ENDS], args: [nowMs] }
    for (let count = 0; ;) {
      const what = 'removing expired objects of providers'
      const removed = Number(await this.engine.admin.run(what, REMOVE, parameters))
      count += removed
      if (removed < BATCH) return count
    }
  }
}

function nameOf({ upstream, id }: Pick<ProviderObject, 'upstream' | 'id'>): string {
  return `${upstream}\0${id}`
}

function recordOf({ upstream, id, accountId, keyId, expiresAtMs, facts }: ProviderObject): string {
  return JSON.stringify({ upstream, id, accountId, keyId, expiresAtMs, facts })
}

function read(what: string, record: string): ProviderObject {
  return parseRecord(what, "a provider's object", () => {
    const value: unknown = JSON.parse(record)
    if (!isObject(value)) throw new Error('it is no object')
    const { upstream, id, accountId, keyId, expiresAtMs, facts } = objectOf(value)
    const text = (member: unknown): string => {
      if (typeof member !== 'string') throw new Error('a member has another type')
      return member
    }
    return {
      upstream: text(upstream),
      id: text(id),
      accountId: text(accountId),
      keyId: text(keyId),
      expiresAtMs: typeof expiresAtMs === 'number' ? expiresAtMs : null,
      facts: stringOf(facts) ?? '',
    }
  })
}
