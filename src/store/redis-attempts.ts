/**
 * Counts of attempts in Redis: when each subject's bucket is full again, gone by itself once it is.
 */
import type { Attempts, Tried } from './attempts.js'
import type { RedisEngine } from './redis-engine.js'
import { script } from './redis-link.js'
import { listOf } from './redis-records.js'

/** KEYS: the subjects. ARGV: now, then burst and interval of each. As `waitOf` and `fullAfter`. */
const TAKE = script(`
local now, waits, isFull = tonumber(ARGV[1]), {}, false
local full = {}
for n = 1, #KEYS do
  local burst, every = tonumber(ARGV[2 * n]), tonumber(ARGV[2 * n + 1])
  full[n] = tonumber(redis.call('GET', KEYS[n]) or '0')
  waits[n] = math.max(0, full[n] + every - now - burst * every)
  if waits[n] > 0 then isFull = true end
end
if isFull then return waits end
for n = 1, #KEYS do
  local after = math.max(now, full[n]) + tonumber(ARGV[2 * n + 1])
  redis.call('SET', KEYS[n], string.format('%.0f', after), 'PX', string.format('%.0f', after - now))
end
return waits`)

/** Counts of a store. */
export class RedisAttempts implements Attempts {
  private readonly engine: RedisEngine

  constructor(engine: RedisEngine) {
    this.engine = engine
  }

  async take(subjects: readonly Tried[], nowMs: number): Promise<number[]> {
    const rates = subjects.flatMap(({ burst, everyMs }) => [burst, everyMs])
    const keys = subjects.map(({ name }) => keyOf(name))
    const args = [Math.floor(nowMs), ...rates]
    const waits = await this.engine.admin.run('counting an attempt', TAKE, keys, args)
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
