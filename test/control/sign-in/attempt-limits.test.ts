/**
 * Goal: guessing is slow across all processes, the owner is never locked out, and the memory for counts is
 * bounded.
 * Method: a manual clock, and counts that two instances share, as processes share a store.
 */
import t from 'tap'
import { AttemptLimits } from '../../../src/control/sign-in/attempt-limits.js'
import { GatewayError } from '../../../src/errors.js'
import { throttleFullAtMs, throttleWaitMs, type ThrottledSubject } from '../../../src/store/throttle.js'

/** Counts like the store's engines, whose own tests check the same behaviour. */
class Counts {
  asked = 0
  private readonly fullAt = new Map<string, number>()

  take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]> {
    this.asked += 1
    const waits = subjects.map((each) => throttleWaitMs(each, this.fullAt.get(each.name) ?? 0, nowMs))
    if (waits.every((wait) => wait === 0)) {
      for (const each of subjects) {
        this.fullAt.set(each.name, throttleFullAtMs(each, this.fullAt.get(each.name) ?? 0, nowMs))
      }
    }
    return Promise.resolve(waits)
  }

  forget(name: string): Promise<void> {
    this.fullAt.delete(name)
    return Promise.resolve()
  }
}

function bench() {
  const clock = { ms: 1_000_000 }
  const counts = new Counts()
  const [attemptLimits, other] = [
    new AttemptLimits(counts, () => clock.ms),
    new AttemptLimits(counts, () => clock.ms),
  ]
  /** Seconds to wait; 0 if the attempt is allowed. */
  const wait = async (
    name: string,
    address: string,
    { device = null, at = attemptLimits }: { device?: string | null; at?: AttemptLimits } = {},
  ): Promise<number> => {
    try {
      await at.attempt(name, address, device)
      return 0
    } catch (error) {
      if (error instanceof GatewayError && error.kind === 'rate_limited') {
        return error.wire.retryAfterSeconds ?? -1
      }
      throw error
    }
  }
  return { clock, counts, attemptLimits, other, wait }
}

void t.test('an account accepts five guesses from a network, then one in ten seconds', async (t) => {
  const { clock, wait } = bench()
  for (let at = 0; at < 5; at += 1) t.equal(await wait('ada', `10.1.1.${at}`), 0)
  t.equal(await wait('ada', '10.1.1.9'), 10)
  t.equal(await wait('ada', '::ffff:10.1.1.9'), 10, 'however the address is written')
  clock.ms += 9_999
  t.equal(await wait('ada', '10.1.1.9'), 1, 'a refused attempt costs nothing')
  clock.ms += 1
  t.equal(await wait('ada', '10.1.1.9'), 0)
  t.equal(await wait('ada', '10.1.1.9'), 10)
  t.equal(await wait('bob', '10.1.1.9'), 0, 'another account')
})

void t.test('guesses from another network do not lock an account', async (t) => {
  const { attemptLimits, wait } = bench()
  for (let at = 0; at < 9; at += 1) await wait('ada', '10.1.1.1')
  t.equal(await wait('ada', '10.1.2.1'), 0, 'from another network')
  t.equal(await wait('ada', '10.1.1.2', { device: 'known device' }), 0, 'from a device that signed in before')
  await attemptLimits.reset('ada', '10.1.1.1', null)
  t.equal(await wait('ada', '10.1.1.1'), 0, 'and a right password forgives')
})

void t.test('attempts are limited per address and in total', async (t) => {
  const { clock, attemptLimits, wait } = bench()
  let first = -1
  for (let at = 0; first === -1 && at < 100; at += 1) if ((await wait(`a${at}`, '10.0.0.1')) > 0) first = at
  t.equal(first, 50)
  await t.rejects(attemptLimits.countStep('10.0.0.1'), { message: /Too many attempts/ })
  const six = '2001:db8:1:2'
  for (let at = 0; at < 50; at += 1) await wait(`b${at}`, `${six}::${at}`)
  t.ok((await wait('b', `${six}:9:9:9:9`)) > 0, 'a /64 is one customer')
  t.equal(await wait('b', '2001:db8:1:3::1'), 0)
  clock.ms += 60_000
  let passed = 0
  for (let at = 0; at < 500; at += 1)
    if ((await wait(`c${at}`, `10.${at >> 8}.${at & 255}.1`)) === 0) passed += 1
  t.equal(passed, 200)
})

void t.test('all processes count together', async (t) => {
  const { clock, wait, attemptLimits, other } = bench()
  const waits: number[] = []
  for (let at = 0; at < 8; at += 1) {
    waits.push(await wait('ada', '10.1.1.1', { at: at % 2 === 0 ? attemptLimits : other }))
  }
  t.same(waits.filter((wait) => wait === 0).length, 5, 'five in both, not in each')
  await attemptLimits.reset('ada', '10.1.1.1', null)
  clock.ms += 1_000
  t.equal(await wait('ada', '10.1.1.1', { at: other }), 0, 'a reset applies to all processes')
})

void t.test('a flood reaches the store once per second, and the cache of refusals is bounded', async (t) => {
  const { clock, counts, attemptLimits, wait } = bench()
  for (let at = 0; at < 1_000; at += 1) await wait('ada', '10.1.1.1')
  t.equal(counts.asked, 6, 'five that counted, and one that did not')
  clock.ms += 1_000
  await wait('ada', '10.1.1.1')
  t.equal(counts.asked, 7)
  const full = new AttemptLimits({
    take: () => Promise.resolve([60_000, 0, 0]),
    forget: () => Promise.resolve(),
  })
  for (let at = 0; at < 20_010; at += 1) await wait(`x${at}`, '11.0.0.1', { at: full })
  t.equal(full.size, 20_000)
  clock.ms += 1_000_000
  attemptLimits.sweep()
  t.equal(attemptLimits.size, 0, 'expired refusals are dropped')
  t.ok(attemptLimits.size < 10)
})
