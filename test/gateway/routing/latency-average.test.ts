/**
 * Goal: the expected latency of a target rises at once with a slow reply, falls slowly with fast ones and
 * without samples, and grows with the load.
 * Method: a clock that the test sets.
 */
import t from 'tap'
import { PeakEwma } from '../../../src/gateway/routing/latency-average.js'

function sampled(samples: readonly (readonly [atMs: number, tookMs: number])[]): PeakEwma {
  const latency = new PeakEwma()
  for (const [atMs, tookMs] of samples) latency.begin(atMs - tookMs)(atMs, true)
  return latency
}

void t.test('a target that has not been used yet is tried before all others', (t) => {
  const fresh = new PeakEwma()
  t.equal(fresh.expectedMs(0), 0)
  fresh.begin(0)
  t.ok(fresh.expectedMs(1) > 100_000, 'one request at a time until it has content')
  t.end()
})

void t.test('a slow reply raises the average at once, fast ones lower it over time', (t) => {
  const latency = sampled([[1_000, 100]])
  t.equal(latency.expectedMs(1_000), 100)
  latency.begin(1_000)(3_000, true)
  t.equal(latency.expectedMs(3_000), 2_000)
  latency.begin(3_900)(4_000, true)
  t.ok(latency.expectedMs(4_000) > 1_500, 'one fast reply')
  for (let atMs = 5_000; atMs < 60_000; atMs += 1_000) latency.begin(atMs - 100)(atMs, true)
  t.ok(latency.expectedMs(60_000) < 150, 'a minute of fast ones')
  t.end()
})

void t.test('the load multiplies it, and it decays without samples', (t) => {
  const latency = sampled([[1_000, 100]])
  const ends = [latency.begin(1_000), latency.begin(1_000)]
  t.equal(latency.waiting, 2)
  t.equal(latency.expectedMs(1_000), 300)
  for (const end of ends) end(1_050, false)
  t.equal(latency.waiting, 0)
  t.equal(Math.round(latency.expectedMs(1_000)), 100, 'a fast failure does not lower it')
  t.ok(latency.expectedMs(61_000) < 1)
  t.end()
})

void t.test('a slow failure counts as a slow reply', (t) => {
  const latency = sampled([[1_000, 100]])
  latency.begin(1_000)(6_000, false)
  t.equal(latency.expectedMs(6_000), 5_000)
  t.end()
})
