/**
 * Goal: a store that comes back, or is asked by very many, is asked by a few at a time.
 * Method: a clock and a chance that are set by hand, and a store whose answers wait to be let go.
 */
import t from 'tap'
import { digestOf } from '../../src/accounts/key-secret.js'
import { kind, newBench } from './bench.js'

void t.test('a crowd is not a failure: known keys pass, and the store is asked on', async (t) => {
  const bench = newBench()
  const secrets = Array.from({ length: 400 }, () => bench.store.add())
  for (const secret of secrets) await kind(bench, secret)
  bench.store.tell(null)
  bench.store.mode = 'held'
  const answers = secrets.map((secret) => kind(bench, secret))
  bench.store.mode = 'async'
  bench.store.release()
  t.same(new Set(await Promise.all(answers)), new Set(['ok']), 'nobody is turned away')
  const asked = bench.store.asked.length
  await Promise.all(secrets.map((secret) => kind(bench, secret)))
  t.equal(bench.store.asked.length, asked + 400 - 32 - 256, 'who was not asked for is, at once')
})

void t.test('processes do not come back to the store all at once', async (t) => {
  const bench = newBench()
  bench.chance.random = 1
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.mode = 'down'
  bench.clock.ms += 31_000
  await kind(bench, secret)
  const asked = bench.store.asked.length
  bench.clock.ms += 1_249
  await kind(bench, secret)
  t.equal(bench.store.asked.length, asked, 'the unluckiest waits a quarter longer')
  bench.clock.ms += 1
  await kind(bench, secret)
  t.equal(bench.store.asked.length, asked + 1)
})

void t.test(
  'when anything may have changed, all that runs is looked up, a few at a time',
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
    bench.store.tell(null)
    bench.store.tell(null)
    while (ended.length < 3) await new Promise((resolve) => setImmediate(resolve))
    t.same(ended.sort(), digests.slice(0, 3).sort())
    t.ok(bench.store.mostRunning <= 16, `${bench.store.mostRunning} at once`)
  },
)
