/**
 * Goal: a store that recovers or gets many lookups has a limited number of lookups at a time.
 * Method: a manual clock, a fixed random number, and a store whose replies the test holds.
 */
import t from 'tap'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { kind, newBench } from './authenticator-setup.js'

void t.test('cached keys are accepted while too many lookups run', async (t) => {
  const bench = newBench()
  const secrets = Array.from({ length: 400 }, () => bench.store.add())
  for (const secret of secrets) await kind(bench, secret)
  bench.store.notify(null)
  bench.store.mode = 'held'
  const results = secrets.map((secret) => kind(bench, secret))
  bench.store.mode = 'async'
  bench.store.release()
  t.same(new Set(await Promise.all(results)), new Set(['ok']), 'no request is refused')
  const lookups = bench.store.lookedUp.length
  await Promise.all(secrets.map((secret) => kind(bench, secret)))
  t.equal(bench.store.lookedUp.length, lookups + 400 - 32 - 256, 'the remaining keys are looked up at once')
})

void t.test('processes retry a failing store at different times', async (t) => {
  const bench = newBench()
  bench.chance.random = 1
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.mode = 'down'
  bench.clock.ms += 31_000
  await kind(bench, secret)
  const lookups = bench.store.lookedUp.length
  bench.clock.ms += 1_249
  await kind(bench, secret)
  t.equal(bench.store.lookedUp.length, lookups, 'the maximum delay is a quarter longer')
  bench.clock.ms += 1
  await kind(bench, secret)
  t.equal(bench.store.lookedUp.length, lookups + 1)
})

void t.test(
  'after an unspecified change, the keys of all running requests are looked up, 16 at a time',
  async (t) => {
    const bench = newBench()
    const secrets = Array.from({ length: 100 }, () => bench.store.add())
    for (const secret of secrets) await kind(bench, secret)
    const ended: string[] = []
    const digests = secrets.map(digestOf)
    bench.auth.watch({
      digests: () => new Set(digests.filter((digest) => !ended.includes(digest))),
      end: (digest) => ended.push(digest),
    })
    for (const secret of secrets.slice(0, 3)) bench.store.edit(secret, {}, { revokedAtMs: 1 })
    bench.store.mode = 'async'
    bench.store.mostRunning = 0
    bench.store.notify(null)
    bench.store.notify(null)
    while (ended.length < 3) await new Promise((resolve) => setImmediate(resolve))
    t.same(ended.sort(), digests.slice(0, 3).sort())
    t.ok(bench.store.mostRunning <= 16, `${bench.store.mostRunning} at once`)
  },
)
