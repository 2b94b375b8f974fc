/**
 * Goal: an account store that lost its data is reported as such: 503 for every key, a reason in /readyz and
 * the log, a counted failure; neither a restart nor a command creates a new store without an explicit
 * command.
 * Method: the program over a real redis-server, which is emptied, or one record of it damaged; commands in
 * this process.
 */
import t from 'tap'
import { newSecret } from '../../../src/accounts/key-secret.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { sluiceHere } from '../../cli/session.js'
import { prepare, run, startServe, until } from '../program.js'

const missing = redisMissing()
const options = { timeout: 120_000, ...(missing === false ? {} : { skip: missing }) }

void t.test('a store that is emptied while the gateway runs is reported', { ...options }, async (t) => {
  const redis = await startRedis(t)
  const store = `${redis.url()}?timeout_ms=2000`
  const settings = {
    store,
    server: 'workers: 1, drain_ms: 1000',
    more: 'auth: { fresh_seconds: 1, stale_seconds: 5 }',
  }
  const served = await startServe(t, settings)
  t.equal((await served.chat()).status, 200)
  t.equal((await served.chat({}, newSecret())).status, 401, 'a wrong key')

  await redis.ask('flushall')
  await until(async () => (await served.ops('/readyz')).text.includes('"degraded":["store"]'))
  const ready = await served.ops('/readyz')
  t.equal(ready.status, 200, 'known keys are served')
  t.equal((await served.chat()).status, 200)
  t.match(ready.text, /the store was emptied or replaced/, '/readyz contains the reason')
  for (let at = 0; at < 5; at += 1) {
    const answer = await served.chat({}, newSecret())
    t.equal(answer.status, 503, 'no key is reported as wrong')
    t.match(await answer.text(), /"kind":"store_unavailable"/)
  }
  await until(() => served.program.lines().some(({ msg }) => msg === 'store failed'))
  const line = served.program.lines().find(({ msg }) => msg === 'store failed')
  t.match(line?.['reason'], /the store was emptied or replaced/)
  const metrics = (await served.ops('/metrics')).text
  t.match(metrics, /^sluice_store_errors_total\{op="(?:find_key|probe)"\} [1-9]/m)
  t.match(metrics, /^sluice_auth_total\{result="store_unavailable"\} [1-9]/m)
  await until(async () => (await served.ops('/readyz')).status === 503)
  t.equal((await served.chat()).status, 503, 'known keys have become too old')
  served.program.child.kill('SIGTERM')
  await served.program.ended

  const again = run(t, ['serve', '--config', served.file])
  t.not(await again.ended, 0, 'a restart does not create a new store')
  t.match(again.out() + again.err(), /store is empty.*sluice store accept/)
  const sluice = (...args: string[]) => sluiceHere([...args, '--config', served.file])
  const email = ['--email', 'new@example.com', '--plan', 'pro']
  for (const args of [['list'], ['create', ...email]]) {
    const { status, err } = await sluice('accounts', ...args)
    t.equal(status, 1)
    t.match(err, /lost its data.*store is empty.*sluice store accept/)
  }
  t.equal(await redis.ask('get', 'sluice:store'), null, 'no store was created')

  const accepted = await sluice('store', 'accept')
  t.match(accepted, { status: 0, out: /^accepted store / })
  t.match(accepted.err, /the store was empty; created a new one/)
  t.match(await sluice('accounts', 'create', ...email), { status: 0 })
  t.match(await sluice('accounts', 'list'), { status: 0, out: /new@example\.com/ })
})

void t.test('the first command reports that it creates a store', { ...options }, async (t) => {
  const redis = await startRedis(t)
  const { file } = await prepare(t, { store: redis.url() })
  const { err } = await sluiceHere(['accounts', 'list', '--config', file])
  t.match(err, /the store was empty; created a new one without accounts and keys/)
})

void t.test('a damaged record is reported as a store failure', { ...options }, async (t) => {
  const redis = await startRedis(t)
  const store = `${redis.url()}?timeout_ms=2000`
  const served = await startServe(t, { store, server: 'workers: 1, drain_ms: 1000' })
  const names = (await redis.ask('keys', 'sluice:{acc_*}:account')) as string[]
  const [hash = ''] = names
  const fields = (await redis.ask('hkeys', hash)) as string[]
  const field = fields.find((name) => name.startsWith('key:')) ?? ''
  const digest = field.slice('key:'.length)
  await redis.ask('hset', hash, field, '{"v":1,"name":')
  const answer = await served.chat()
  t.equal(answer.status, 503, 'a damaged record is not a wrong key')
  t.match(await answer.text(), /A record of the key store is damaged/)
  await until(() => served.program.lines().some(({ msg }) => msg === 'store failed'))
  const line = served.program.lines().find(({ msg }) => msg === 'store failed')
  t.match(line?.['reason'], `the key with digest ${digest.slice(0, 12)}… is damaged: not JSON`)
  t.notMatch(served.program.out(), digest, 'the whole digest is not in the log')
  t.notMatch(served.program.out(), served.secret)
  t.equal((await served.ops('/readyz')).status, 200, 'everything else works')
  t.equal((await served.chat({}, newSecret())).status, 401)
})
