/**
 * Goal (E-88): requests rotate through the keys of an upstream; a refused key rests alone, for `Retry-After`
 * or the documented times; a single key never rests.
 * Method: a clock that the test sets.
 */
import t from 'tap'
import { Credentials } from '../../../src/gateway/attempts/rotate-api-keys.js'
import { TestClock } from './clock.js'

const NONE: ReadonlySet<number> = new Set()

function scene(...keys: string[]) {
  const clock = new TestClock()
  const credentials = new Credentials(keys, clock)
  const next = (...tried: number[]) => credentials.next(new Set(tried), null)?.index ?? null
  return { clock, credentials, next }
}

void t.test('requests rotate through the keys', (t) => {
  const { next } = scene('a', 'b', 'c')
  const first = [next(), next(), next()]
  t.same([...first].sort(), [0, 1, 2])
  t.same([next(), next(), next()], first)
  t.end()
})

void t.test(
  'a refused key rests: 60 s after 401 and 403, 10 s after 429, or the time of the provider',
  (t) => {
    for (const [status, retryAfterMs, restMs] of [
      [401, null, 60_000],
      [403, null, 60_000],
      [429, null, 10_000],
      [429, 2_000, 2_000],
      [401, 5_000, 5_000],
      [429, 9_999_999_000, 3_600_000],
    ] as const) {
      const { clock, credentials, next } = scene('a', 'b')
      credentials.refused(0, status, retryAfterMs)
      t.equal(credentials.resting, 1)
      t.same([next(), next()], [1, 1])
      clock.pass(restMs - 1)
      t.equal(next(), 1, `${status} rests for ${restMs} ms`)
      clock.pass(1)
      t.same([next(), next()].sort(), [0, 1])
      t.equal(credentials.resting, 0)
    }
    t.end()
  },
)

void t.test('within a request the next key is used at once, each key once', (t) => {
  const { credentials, next } = scene('a', 'b', 'c')
  credentials.refused(0, 429, null)
  t.equal(next(0, 1), 2)
  credentials.refused(2, 429, null)
  t.equal(next(0, 2), 1)
  t.equal(next(0, 1, 2), null)
  credentials.refused(1, 401, null)
  t.equal(next(0), null, 'keys that rest are not tried again for it')
  t.end()
})

void t.test('if all keys rest, a new request gets the one that is ready soonest', (t) => {
  const { credentials, next } = scene('a', 'b')
  credentials.refused(0, 401, null)
  credentials.refused(1, 429, null)
  t.same([next(), next()], [1, 1])
  t.end()
})

void t.test('a single key never rests; an upstream without keys has one empty key', (t) => {
  const only = scene('a')
  only.credentials.refused(0, 401, null)
  t.equal(only.credentials.resting, 0)
  t.equal(only.next(), 0)
  t.equal(only.next(0), null)
  const none = scene()
  t.same(none.credentials.next(NONE, null), { index: 0, key: null })
  t.equal(none.credentials.size, 1)
  t.end()
})

void t.test('a sticky key keeps its credential unless that rests', (t) => {
  const { credentials, clock } = scene('a', 'b', 'c')
  const of = (sticky: string) => credentials.next(NONE, sticky)?.index
  const keys = Array.from({ length: 300 }, (_, position) => `conversation ${position}`)
  const before = keys.map(of)
  t.same(keys.map(of), before)
  for (const index of [0, 1, 2]) t.ok(before.filter((each) => each === index).length > 60)
  credentials.refused(1, 429, null)
  const during = keys.map(of)
  t.ok(
    before.every((index, position) => index === 1 || index === during[position]),
    'only those of the key move',
  )
  clock.pass(10_000)
  t.same(keys.map(of), before)
  t.end()
})
