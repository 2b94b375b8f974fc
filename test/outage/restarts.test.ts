/**
 * Goal: a gateway that starts while Redis is unavailable reports it and does not serve. A worker that exits
 * during the outage is replaced when Redis recovers; the others keep serving (H-116).
 * Method: the whole program with a redis-server that is killed and restarted.
 */
import t from 'tap'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { hasAllWorkers, prepare, run, startServe, until } from '../process/program.js'

const missing = redisMissing()
const options = { timeout: 120_000, ...(missing === false ? {} : { skip: missing }) }
t.setTimeout(240_000)

void t.test('H-116: a gateway that starts while Redis is unavailable', options, async (t) => {
  const redis = await startRedis(t)
  const { file } = await prepare(t, { store: redis.url(), server: 'workers: 1' })
  await redis.kill()
  const program = run(t, ['serve', '--config', file])
  t.equal(await program.ended, 1, 'it ends, for its supervisor to try again')
  t.match(program.err(), /connecting to Redis failed.*ECONNREFUSED/)
  t.notMatch(program.out(), 'sluice serves', 'and was never ready')
  await redis.start()
  const again = run(t, ['serve', '--config', file])
  await until(() => again.out().includes('"sluice serves"'), 60_000)
})

void t.test('H-116: a worker that exits while Redis is unavailable', options, async (t) => {
  const redis = await startRedis(t)
  const served = await startServe(t, { store: redis.url() })
  const workers = served.program.workers()
  await until(async () => {
    await (await served.chat()).text()
    const met = served.program.lines().flatMap(({ msg, pid }) => (msg === 'exchange' ? [pid] : []))
    return new Set(met).size === workers.length
  })
  await redis.kill()
  const [victim = 0] = workers
  process.kill(victim, 'SIGKILL')
  const readyz = async (): Promise<string> => (await served.ops('/readyz')).text
  await until(async () => /restarting after: .*connecting to Redis failed/.test(await readyz()))
  for (let at = 0; at < 10; at += 1) {
    const res = await served.chat()
    await res.text()
    t.equal(res.status, 200, 'a worker that has the key in its cache serves it')
  }
  await redis.start()
  await until(async () => hasAllWorkers(await served.ops('/readyz')), 60_000)
  t.equal(served.program.workers().length, workers.length)
})
