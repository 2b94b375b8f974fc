/**
 * Counts of attempts in Redis: the time at which each subject's bucket is full again. Redis removes a count
 * at that time.
 */
import type { ThrottleStore, ThrottledSubject } from '../../throttle.js'
import type { RedisEngine } from '../connection/engine.js'
import { loadScript } from '../connection/script.js'
import { listOf } from '../connection/parse-replies.js'

const TAKE = loadScript('records/throttle')

/** Counts of a store. */
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
