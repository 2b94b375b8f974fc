/**
 * Goal (G9, E-88): retries and hedges stay within their budgets; waits follow `Retry-After` within bounds,
 * else full jitter.
 * Method: a clock that the test sets; random traffic.
 */
import t from 'tap'
import { backOffMs } from '../../../src/gateway/attempts/retry-or-fallback.js'
import { HedgeBudget, RetryBudget } from '../../../src/gateway/attempts/retry-and-hedge-budgets.js'
import { RollingSums } from '../../../src/base/rolling-sums.js'
import { seeded } from '../routing/fixtures.js'
import { TestClock } from './clock.js'

void t.test('three retries are always allowed, more in proportion to the requests', (t) => {
  const clock = new TestClock()
  const budget = new RetryBudget(clock)
  const retries = (): number => {
    let taken = 0
    while (taken < 1_000 && budget.tryRetry(0.2)) taken += 1
    return taken
  }
  t.equal(retries(), 3)
  for (let index = 0; index < 100; index++) budget.request()
  t.equal(retries(), 17, '20 of 100')
  clock.pass(11_000)
  t.equal(retries(), 3, 'requests older than ten seconds are not counted')
  t.equal(budget.tryRetry(0), false)
  t.equal(budget.denied, 4, 'each refusal is counted')
  t.end()
})

void t.test('if all requests fail, retries add at most their share (G9)', (t) => {
  const clock = new TestClock()
  const budget = new RetryBudget(clock)
  let sent = 0
  for (let request = 0; request < 30_000; request++) {
    budget.request()
    sent += 1
    for (let attempt = 1; attempt < 3 && budget.tryRetry(0.2); attempt++) sent += 1
    clock.pass(1)
  }
  t.ok(sent / 30_000 <= 1.2, String(sent / 30_000))
  t.ok(sent / 30_000 > 1.15, 'and the share is used')
  t.end()
})

void t.test('hedges cost at most their share, and one a minute is always allowed', (t) => {
  const clock = new TestClock()
  const budget = new HedgeBudget(clock)
  t.equal(budget.tryHedge(1_000, 0.02), true, 'the first of a minute')
  t.equal(budget.tryHedge(1_000, 0.02), false)
  clock.pass(60_000)
  t.equal(budget.tryHedge(1_000, 0.02), true)
  for (let index = 0; index < 1_000; index++) budget.request(1_000)
  let taken = 2
  while (budget.tryHedge(1_000, 0.02)) taken += 1
  t.equal(taken, 20, '2 % of the cost of 1,000 requests')
  clock.pass(700_000)
  budget.request(1_000)
  t.equal(budget.tryHedge(1, 0.02), true)
  t.end()
})

void t.test('if requests cost nothing, the share of hedges is that of their number', (t) => {
  const clock = new TestClock()
  const budget = new HedgeBudget(clock)
  for (let index = 0; index < 500; index++) budget.request(0)
  let taken = 0
  while (taken < 1_000 && budget.tryHedge(0, 0.02)) taken += 1
  t.equal(taken, 10)
  t.end()
})

void t.test('waits: exponential back-off with full jitter, within max_wait_ms', (t) => {
  const wait = (retry: number, random: number, maxWaitMs = 5_000) =>
    backOffMs({ retry, retryAfterMs: null, maxWaitMs, random })
  t.equal(wait(1, 0), 0)
  t.equal(wait(1, 0.5), 125)
  t.equal(wait(2, 0.5), 250)
  t.equal(wait(9, 0.5), 2_500)
  t.equal(wait(3, 0.5, 100), 50)
  t.equal(wait(1, 0.9, 0), 0)
  t.end()
})

void t.test('the gateway waits for Retry-After in full, or tries another target', (t) => {
  const wait = (retryAfterMs: number, random = 0) =>
    backOffMs({ retry: 1, retryAfterMs, maxWaitMs: 5_000, random })
  t.equal(wait(1_000), 1_000)
  t.equal(wait(1_000, 0.5), 1_050)
  t.equal(wait(5_000, 0.9), 5_000)
  t.equal(wait(5_001), null)
  t.equal(wait(9_999_999_000), null)
  t.equal(wait(0), 0)
  t.end()
})

void t.test('rolling sums include between nine and ten tenths of the window', (t) => {
  const random = seeded(3)
  for (let round = 0; round < 200; round++) {
    const sums = new RollingSums(10_000, 2)
    const events: [atMs: number, field: number, amount: number][] = []
    let nowMs = Math.floor(random() * 1e9)
    for (let index = 0; index < 100; index++) {
      nowMs += Math.floor(random() * (index % 7 === 0 ? 5_000 : 300))
      const event: [number, number, number] = [nowMs, index % 2, Math.ceil(random() * 9)]
      events.push(event)
      sums.add(event[1], event[2], nowMs)
    }
    for (const field of [0, 1]) {
      const within = (ms: number) =>
        events
          .filter(([atMs, of]) => of === field && atMs > nowMs - ms)
          .reduce((total, [, , amount]) => total + amount, 0)
      const sum = sums.sum(field, nowMs)
      if (sum < within(9_000) || sum > within(10_001)) t.fail(`round ${round}: ${sum}`)
    }
  }
  t.pass('200 random sequences')
  t.end()
})
