/** The gateways of a fleet in Redis: a record of each, which expires unless it is renewed. */
import { isObject, numberOf, stringOf } from '../../chat/json.js'
import { MAX_MEMBERS, type Fleet, type FleetMember } from '../fleet.js'
import type { RedisEngine } from './connection/engine.js'
import { loadScript } from './connection/script.js'
import { stringsOf } from './connection/parse-replies.js'

const PUBLISH = loadScript('records/publish-gateway')

const ENDS = 'sluice:{fleet}:ends'
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
    const answer = await this.engine.admin.run(what, PUBLISH, { keys: [ENDS, RECORDS], args })
    const members = stringsOf(answer).flatMap(memberOf)
    return members.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async leave(id: string): Promise<void> {
    await this.engine.admin.send('leaving the fleet', 'zrem', [ENDS, id])
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
