/** Checks, at the start, that the server keeps what it stores: version, eviction, persistence, clock. */
import { CannotOpen, unavailable } from '../../store-errors.js'
import type { RedisConnection } from './redis-connection.js'

/** `ZADD GT`, `XTRIM MINID`, `XADD NOMKSTREAM` came with it. */
const OLDEST: readonly [number, number] = [6, 2]
const MAX_SKEW_MS = 1_000

/**
 * Rejects if the server would lose data, with the setting to change. Calls `warn` with further advice to the
 * operator. A managed server may forbid `CONFIG`; the check then skips what it cannot read.
 */
export async function checkServer(
  link: RedisConnection,
  waitReplicas: number,
  warn: (message: string) => void,
): Promise<void> {
  const info = infoFields(await link.send('reading the version of Redis', 'info', []))
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

async function warnOfPersistence(link: RedisConnection, warn: (message: string) => void): Promise<void> {
  const saves = await link.send('reading the settings of Redis', 'config', ['get', 'save']).catch(() => null)
  const points = Array.isArray(saves) ? String(saves[1]) : null
  if (points === '') warn('Redis writes nothing to disk: a restart loses all keys; set appendonly yes')
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
    warn(`the clocks of Redis and of this machine are ${Math.round(skewMs)} ms apart; run NTP on both`)
  }
}

/** The fields of a reply to `INFO`. */
export function infoFields(info: unknown): ReadonlyMap<string, string> {
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
