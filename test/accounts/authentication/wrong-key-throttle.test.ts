/**
 * Goal: an address that sends many wrong keys is throttled without lookups, while valid keys from the
 * same address work.
 * Method: the counts with a manual clock; an authenticator with a store that records its lookups; and a
 * flood of wrong keys next to valid ones at a running gateway.
 */
import { Agent, request } from 'node:http'
import t from 'tap'
import { newSecret } from '../../../src/accounts/key-secret.js'
import {
  addressName,
  WrongKeyCounts,
  FAILURES_BURST,
  LOOKUPS_BURST,
} from '../../../src/accounts/authentication/wrong-key-throttle.js'
import { GatewayError } from '../../../src/errors.js'
import { startGateway } from '../../helpers/gateway.js'
import { newBench, type Bench } from './authenticator-setup.js'

const HERE = '192.0.2.1'

async function kindFrom({ auth }: Bench, secret: string | null, address: string): Promise<string> {
  try {
    await auth.identify(secret, address)
    return 'ok'
  } catch (error) {
    if (error instanceof GatewayError) return error.kind
    throw error
  }
}

void t.test('after a burst of wrong keys the store gets no more lookups', async (t) => {
  const bench = newBench()
  const good = bench.store.add()
  t.equal(await kindFrom(bench, good, HERE), 'ok')
  for (let index = 0; index < FAILURES_BURST; index += 1) {
    t.equal(await kindFrom(bench, newSecret(), HERE), 'unauthenticated')
  }
  const lookups = bench.store.lookedUp.length
  for (const wrong of ['', 'wrong', `sk_${'a'.repeat(40)}`, null]) {
    t.equal(await kindFrom(bench, wrong, HERE), 'auth_throttled', String(wrong))
  }
  t.equal(bench.store.lookedUp.length, lookups)
  t.equal(await kindFrom(bench, good, HERE), 'ok', 'a key in use works')
  t.equal(await kindFrom(bench, bench.store.add(), HERE), 'ok', 'a new key is looked up')
  const kinds = await Promise.all(Array.from({ length: 100 }, () => kindFrom(bench, newSecret(), HERE)))
  t.equal(kinds.filter((kind) => kind === 'auth_throttled').length, 81)
  t.equal(bench.store.lookedUp.length, lookups + LOOKUPS_BURST, 'a few well-formed keys are looked up')
  t.equal(await kindFrom(bench, newSecret(), '192.0.2.2'), 'unauthenticated', 'another address')
  t.equal(await kindFrom(bench, null, ''), 'unauthenticated', 'no address')
  bench.clock.ms += 10_000
  t.equal(await kindFrom(bench, newSecret(), HERE), 'unauthenticated', 'some time later')
  t.ok(bench.results.includes('throttled'))
})

void t.test('IPv6 addresses are counted by /64, and the number of counts is bounded', (t) => {
  const names: Readonly<Record<string, string>> = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
    '2001:db8:1:2::9': '2001:db8:1:2',
    '2001:db8::9': '2001:db8:0:0',
    '::1': '0:0:0:0',
    '': '',
  }
  for (const [address, name] of Object.entries(names)) t.equal(addressName(address), name)
  const failures = new WrongKeyCounts(100)
  for (let index = 0; index < 10_000; index += 1) failures.note(`10.0.${index >> 8}.${index & 255}`, 0)
  t.ok(failures.size <= 100)
  for (let index = 0; index < FAILURES_BURST; index += 1) failures.note('2001:db8::1', 0)
  t.ok(failures.isThrottled('2001:db8:0:0:ffff::', 0), 'the whole /64')
  t.notOk(failures.isThrottled('2001:db8:0:1::1', 0))
  t.ok(failures.size <= 100)
  t.end()
})

/** Status and `retry-after` of one GET. */
function get(port: number, agent: Agent, key: string): Promise<[number, string | undefined]> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` }
    const sent = request({ port, host: '127.0.0.1', path: '/v1/models', agent, headers }, (res) => {
      res.resume()
      res.once('end', () => resolve([res.statusCode ?? 0, res.headers['retry-after']]))
    })
    sent.once('error', reject)
    sent.end()
  })
}

void t.test('a flood of wrong keys gets 429 while valid keys work', async (t) => {
  const gateway = await startGateway(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  t.teardown(() => agent.destroy())
  t.equal((await get(gateway.port, agent, gateway.secret))[0], 200, 'a key in use')
  const statuses = new Map<number, number>()
  const endMs = Date.now() + 2_000
  const flood = Array.from({ length: 32 }, async (_, index) => {
    while (Date.now() < endMs) {
      const [status, wait] = await get(gateway.port, agent, index % 2 === 0 ? newSecret() : 'wrong')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 429) t.equal(wait, '1')
    }
  })
  const waits: number[] = []
  while (Date.now() < endMs) {
    const startMs = performance.now()
    t.equal((await get(gateway.port, agent, gateway.secret))[0], 200)
    waits.push(performance.now() - startMs)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await Promise.all(flood)
  const { 401: refused = 0, 429: throttled = 0, ...others } = Object.fromEntries(statuses)
  t.same(others, {})
  t.ok(refused >= FAILURES_BURST && refused < 100, `${refused} got 401`)
  t.ok(throttled > 0 && throttled < 1_000, `${throttled} were throttled, each after a wait`)
  const text = await gateway.metrics.text()
  t.match(text, new RegExp(`sluice_auth_total{result="throttled"} ${throttled}`))
  t.comment(`${waits.length} good requests, the slowest took ${Math.max(...waits).toFixed(1)} ms`)
})
