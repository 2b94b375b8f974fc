/**
 * Goal: an outage of the store leaves the gateway ready (`degraded`) while known keys are served, and unready
 * when they have become too old; it is ready within seconds after the store is back.
 * Method: the program with one and two workers on a real redis-server, which is killed and started again.
 */
import t from 'tap'
import { isObject } from '../../src/base/json.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { startServe, until, type Served } from '../process/program.js'
import { ofToday } from '../helpers/long-suite.js'

const missing = redisMissing()
const options = { timeout: 120_000, ...(missing === false ? {} : { skip: missing }) }
const STALE_SECONDS = 6

async function readiness(served: Served, path = '/readyz') {
  const { status, text } = await served.ops(path)
  const page: unknown = JSON.parse(text)
  return { status, degraded: isObject(page) ? page['degraded'] : null }
}

for (const workers of ofToday([1, 2], 2)) {
  void t.test(`Redis is away, ${String(workers)} workers`, options, async (t) => {
    const redis = await startRedis(t)
    const served = await startServe(t, {
      store: `${redis.url()}?timeout_ms=500`,
      server: `workers: ${String(workers)}, drain_ms: 1000`,
      more: `auth: { fresh_seconds: 1, stale_seconds: ${String(STALE_SECONDS)} }`,
    })
    for (let sent = 0; sent < 8; sent += 1) t.equal((await served.chat()).status, 200)
    t.strictSame(await readiness(served), { status: 200, degraded: [] })
    t.strictSame(await readiness(served, '/readyz?strict'), { status: 200, degraded: [] })

    await redis.kill()
    const awayMs = performance.now()
    await until(async () => (await served.ops('/readyz')).text.includes('"degraded":["store"]'))
    t.strictSame(await readiness(served), { status: 200, degraded: ['store'] })
    t.strictSame(await readiness(served, '/readyz?strict'), { status: 503, degraded: ['store'] })
    t.equal((await served.chat()).status, 200, 'a known key is served')

    await until(async () => (await readiness(served)).status === 503)
    t.ok(performance.now() - awayMs > (STALE_SECONDS - 3) * 1000, 'not before the keys are too old')
    t.equal((await served.chat()).status, 503)

    await redis.start()
    await until(async () => (await readiness(served)).status === 200, 10_000)
    await until(async () => (await readiness(served, '/readyz?strict')).status === 200, 10_000)
    t.equal((await served.chat()).status, 200)
  })
}
