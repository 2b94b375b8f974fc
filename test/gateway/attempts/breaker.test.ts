/**
 * Goal (E-85, E-86, E-87): a breaker opens after consecutive failures or a high rate, tests the upstream with
 * one request at a time, closes with a slow start, and never leaves a request without a candidate.
 * Method: a clock that the test sets.
 */
import t from 'tap'
import type { BreakerConfig } from '../../../src/config/config.js'
import { Breaker } from '../../../src/gateway/attempts/breaker.js'
import { CandidateQueue } from '../../../src/gateway/attempts/skip-open-breakers.js'
import { TestClock } from './clock.js'

const CONFIG: BreakerConfig = {
  failures: 5,
  errorRate: 0.5,
  minRequests: 20,
  windowMs: 10_000,
  openMs: 30_000,
}

function scene(config: Partial<BreakerConfig> = {}): { clock: TestClock; breaker: Breaker } {
  const clock = new TestClock()
  return { clock, breaker: new Breaker({ ...CONFIG, ...config }, clock) }
}

function fail(breaker: Breaker, times: number): void {
  for (let time = 0; time < times; time++) breaker.begin().failed()
}

void t.test('it opens after consecutive failures; a success in between resets the count', (t) => {
  const { breaker } = scene()
  fail(breaker, 4)
  breaker.begin().succeeded()
  fail(breaker, 4)
  t.equal(breaker.state, 'closed')
  t.equal(breaker.allows(), true)
  fail(breaker, 1)
  t.equal(breaker.state, 'open')
  t.equal(breaker.allows(), false)
  t.end()
})

void t.test('E-85: it opens at the error rate once there are enough attempts in the window', (t) => {
  const { breaker, clock } = scene()
  const pair = (): void => {
    breaker.begin().succeeded()
    breaker.begin().failed()
  }
  for (let index = 0; index < 9; index++) pair()
  t.equal(breaker.state, 'closed', '18 attempts')
  clock.pass(11_000)
  for (let index = 0; index < 9; index++) pair()
  t.equal(breaker.state, 'closed', 'those before the window do not count')
  pair()
  t.equal(breaker.state, 'open', '20 attempts, half of them failed')
  t.end()
})

void t.test('attempts that ended for other reasons are not counted', (t) => {
  const { breaker } = scene({ failures: 2, minRequests: 2 })
  breaker.begin().failed()
  for (let index = 0; index < 100; index++) breaker.begin().abandoned()
  t.equal(breaker.state, 'closed')
  const pass = breaker.begin()
  pass.abandoned()
  pass.failed()
  t.equal(breaker.state, 'closed', 'only the first report of an attempt counts')
  breaker.begin().failed()
  t.equal(breaker.state, 'open')
  t.end()
})

void t.test('E-86: half-open: one request at a time; a success closes it, a failure opens it again', (t) => {
  const { breaker, clock } = scene()
  fail(breaker, 5)
  t.equal(breaker.testInMs, 30_000)
  clock.pass(29_999)
  t.equal(breaker.state, 'open')
  clock.pass(1)
  t.equal(breaker.state, 'half_open')
  const test = breaker.begin()
  t.equal(breaker.allows(), false, 'while the test runs')
  test.failed()
  t.equal(breaker.state, 'open')
  clock.pass(30_000)
  breaker.begin().abandoned()
  t.equal(breaker.allows(), true, 'a test whose client left has no result')
  breaker.begin().succeeded()
  t.equal(breaker.state, 'closed')
  t.end()
})

void t.test('workers test at different times', (t) => {
  const { breaker, clock } = scene()
  clock.randomness = 0.5
  fail(breaker, 5)
  t.equal(breaker.testInMs, 31_500)
  t.end()
})

void t.test('results of attempts from before it opened or closed are ignored', (t) => {
  const { breaker, clock } = scene()
  const late = breaker.begin()
  const slow = Array.from({ length: 10 }, () => breaker.begin())
  fail(breaker, 5)
  late.succeeded()
  t.equal(breaker.state, 'open')
  clock.pass(30_000)
  breaker.begin().succeeded()
  for (const each of slow) each.failed()
  t.equal(breaker.state, 'closed')
  t.end()
})

void t.test('E-86: slow start: after closing, the share of requests grows to all in five seconds', (t) => {
  const { breaker, clock } = scene()
  fail(breaker, 5)
  clock.pass(30_000)
  breaker.begin().succeeded()
  const share = (): number => {
    let allowed = 0
    for (let index = 0; index < 100; index++) {
      clock.randomness = index / 100
      if (breaker.allows()) allowed += 1
    }
    return allowed
  }
  t.equal(share(), 10)
  clock.pass(2_500)
  t.equal(share(), 55)
  clock.pass(2_500)
  t.equal(share(), 100)
  const short = scene({ openMs: 600 })
  fail(short.breaker, 5)
  short.clock.pass(600)
  short.breaker.begin().succeeded()
  short.clock.randomness = 0.99
  t.equal(short.breaker.allows(), false)
  short.clock.pass(100)
  t.equal(short.breaker.allows(), true, 'a sixth of a short open time')
  t.end()
})

void t.test('probes: failures in a row open it, a success allows a test request at once', (t) => {
  const { breaker, clock } = scene({ failures: 3 })
  breaker.probeFailed()
  breaker.probeFailed()
  breaker.probeSucceeded()
  breaker.probeFailed()
  breaker.probeFailed()
  t.equal(breaker.state, 'closed')
  breaker.probeFailed()
  t.equal(breaker.state, 'open')
  clock.pass(29_000)
  breaker.probeFailed()
  clock.pass(2_000)
  t.equal(breaker.state, 'open', 'a failed probe keeps it open')
  breaker.probeSucceeded()
  t.equal(breaker.state, 'half_open')
  breaker.begin().succeeded()
  t.equal(breaker.state, 'closed', 'only a request closes it')
  t.end()
})

interface Named {
  readonly name: string
  readonly breaker: Breaker
}

function queueOf(candidates: readonly Named[]): () => string | null {
  const queue = new CandidateQueue(candidates, ({ breaker }) => breaker)
  return () => queue.take()?.name ?? null
}

void t.test('candidates come in order, without those whose breakers are open', (t) => {
  const clock = new TestClock()
  const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name, breaker: new Breaker(CONFIG, clock) }))
  if (a === undefined || b === undefined || c === undefined) throw new Error('no candidates')
  fail(b.breaker, 5)
  const takeNext = queueOf([a, b, c])
  t.same([takeNext(), takeNext(), takeNext(), takeNext()], ['a', 'c', null, null])
  t.end()
})

void t.test('E-87: if all breakers are open, the candidates are used in the order of their tests', (t) => {
  const clock = new TestClock()
  const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name, breaker: new Breaker(CONFIG, clock) }))
  if (a === undefined || b === undefined || c === undefined) throw new Error('no candidates')
  fail(b.breaker, 5)
  clock.pass(5_000)
  fail(c.breaker, 5)
  clock.pass(5_000)
  fail(a.breaker, 5)
  const takeNext = queueOf([a, b, c])
  t.same([takeNext(), takeNext(), takeNext(), takeNext()], ['b', 'c', 'a', null])
  for (let request = 1; request < 10; request += 1) {
    const next = queueOf([a, b])
    t.same([next(), next()], ['b', 'a'])
  }
  const late = queueOf([a, b])
  t.same([late(), late()], ['b', null], 'an open breaker is the later target of 10 requests')
  t.equal(queueOf([a])(), 'a', 'a request is never failed by a breaker alone')
  t.equal(queueOf([])(), null)
  a.breaker.begin().succeeded()
  t.equal(a.breaker.state, 'closed', 'its success closes the breaker')
  b.breaker.begin().failed()
  t.equal(b.breaker.testInMs, 20_000, 'its failure does not move the next test')
  t.end()
})

void t.test('a candidate in slow start comes after the others and is never removed', (t) => {
  const clock = new TestClock()
  const [a, b] = ['a', 'b'].map((name) => ({ name, breaker: new Breaker(CONFIG, clock) }))
  if (a === undefined || b === undefined) throw new Error('no candidates')
  fail(a.breaker, 5)
  clock.pass(30_000)
  a.breaker.begin().succeeded()
  clock.randomness = 0.99
  const takeNext = queueOf([a, b])
  t.same([takeNext(), takeNext(), takeNext()], ['b', 'a', null])
  t.equal(queueOf([a])(), 'a')
  t.end()
})
