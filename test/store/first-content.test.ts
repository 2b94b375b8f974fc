/**
 * Goal: quantiles made of counts are near those of the times, and counters of earlier versions are read.
 * Method: counts times as stores do.
 */
import t from 'tap'
import { quantile } from '../../src/control/dashboard/usage-figures.js'
import {
  countersOfParts,
  countersOfTime,
  FIRST_CONTENT_BOUNDS_MS,
  FIRST_CONTENT_COUNTERS,
  FORMER_COUNTERS,
  partsOfCounters,
} from '../../src/store/first-content.js'
import { dice } from '../helpers/seeded-random.js'

function counted(times: readonly number[]): number[] {
  const counters = FIRST_CONTENT_COUNTERS.map(() => 0)
  for (const ms of times) {
    for (const at of countersOfTime(ms)) if (at !== null) counters[at] = (counters[at] ?? 0) + 1
  }
  return counters
}

void t.test('bounds are eight a decade or more', (t) => {
  for (const [at, bound] of FIRST_CONTENT_BOUNDS_MS.entries()) {
    const next = FIRST_CONTENT_BOUNDS_MS[at + 1] ?? bound * 1.1
    t.ok(next > bound && next / bound <= 10 ** (1 / 8) + 1e-9, `${bound} to ${next}`)
  }
  t.end()
})

void t.test('each counter counts the times of its interval', (t) => {
  for (const ms of [0, 10, 10.1, 49, 50, 50.1, 1_760, 2_450, 30_000, 30_001, 1e9]) {
    const counters = counted([ms])
    for (const [at, { overMs, upToMs }] of FIRST_CONTENT_COUNTERS.entries()) {
      const isIn = (ms > overMs || (overMs === 0 && ms === 0)) && ms <= upToMs
      t.equal(counters[at], isIn ? 1 : 0, `${ms} in ${overMs} to ${upToMs}`)
    }
  }
  t.end()
})

void t.test('quantiles are near those of the times', (t) => {
  const random = dice(7)
  for (const median of [24, 180, 900, 1_760, 6_000]) {
    const times = Array.from({ length: 5_000 }, () => median * Math.exp((random() + random() - 1) * 1.2))
    const parts = partsOfCounters(counted(times))
    const sorted = [...times].sort((a, b) => a - b)
    for (const share of [0.5, 0.95]) {
      const [exact = 0, found] = [sorted[Math.ceil(share * times.length) - 1], quantile(parts, share)]
      t.ok(Math.abs((found ?? 0) / exact - 1) < 0.05, `${share}: ${found} of ${exact}`)
    }
    t.same(partsOfCounters(countersOfParts(parts)), parts)
  }
  t.end()
})

void t.test('counters of earlier versions are in the middle of their interval', (t) => {
  const former = Array.from({ length: FORMER_COUNTERS }, () => 3)
  const parts = partsOfCounters(former)
  t.equal(
    parts.reduce((sum, count) => sum + count, 0),
    3 * FORMER_COUNTERS,
  )
  t.end()
})
