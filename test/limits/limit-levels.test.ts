/**
 * Goal: the arithmetic of limits is exact.
 * Method: examples at each edge, then ten thousand random histories compared with a simple count.
 */
import t from 'tap'
import { dice } from '../helpers/seeded-random.js'
import {
  budgetState,
  dayOf,
  leftOf,
  monthOf,
  periodOf,
  RUNNING_RETRY_MS,
  slotState,
  remainingUnits,
  rateFits,
  rateState,
  UNITS,
} from '../../src/store/limit-arithmetic.js'

const HISTORIES = 10_000
const MOST = Number.MAX_SAFE_INTEGER
const RATES = [1, 2, 3, 7, 59, 60, 61, 999, 60_000, 123_457, 1e9]

void t.test('random histories', (t) => {
  const roll = dice(20_261_120)
  let wrong = 0
  for (let history = 0; history < HISTORIES; history += 1) {
    const perMinute = RATES[Math.floor(roll() * RATES.length)] ?? 1
    if (!isTrue(perMinute, roll)) wrong += 1
  }
  t.equal(wrong, 0)
  t.end()
})

void t.test('a full bucket admits exactly the requests of a minute', (t) => {
  for (const perMinute of RATES.filter((rate) => rate <= 123_457)) {
    let units = 0
    let taken = 0
    while (rateFits(units, perMinute, 1)) {
      units += UNITS
      taken += 1
    }
    t.equal(taken, perMinute)
    t.equal(remainingUnits(units, 60_000, perMinute), 0, 'and is full again after exactly a minute')
    t.ok(remainingUnits(units, 59_999, perMinute) > 0)
  }
  t.end()
})

void t.test('limit states at the edges', (t) => {
  t.same(rateState(0, 0, 0), { limit: 0, remaining: 0, resetMs: 0, retryAfterMs: 0 })
  t.same(rateState(0, 0, 1), { limit: 0, remaining: 0, resetMs: 0, retryAfterMs: -1 })
  t.same(
    rateState(UNITS * 10, 5, 1),
    { limit: 5, remaining: 0, resetMs: 120_000, retryAfterMs: 72_000 },
    'overdrawn',
  )
  t.same(
    rateState(UNITS * 10, 5, 0),
    { limit: 5, remaining: 0, resetMs: 120_000, retryAfterMs: 60_000 },
    'overdrawn, for nothing',
  )
  t.same(
    rateState(1, 5, 1),
    { limit: 5, remaining: 4, resetMs: 1, retryAfterMs: 0 },
    'a unit taken is not a whole request left',
  )
  t.same(slotState(0, 0), { limit: 0, remaining: 0, resetMs: 0, retryAfterMs: -1 })
  t.same(slotState(4, 5), { limit: 5, remaining: 1, resetMs: 0, retryAfterMs: 0 })
  t.same(slotState(5, 5), { limit: 5, remaining: 0, resetMs: 0, retryAfterMs: RUNNING_RETRY_MS })
  t.same(
    slotState(9, 5),
    { limit: 5, remaining: 0, resetMs: 0, retryAfterMs: RUNNING_RETRY_MS },
    'a limit that was made smaller',
  )
  t.same(budgetState({ limit: 10, spent: 0, reserved: 0 }, 10, 77), {
    limit: 10,
    remaining: 10,
    resetMs: 0,
    retryAfterMs: 0,
  })
  t.same(budgetState({ limit: 10, spent: 1, reserved: 0 }, 10, 77), {
    limit: 10,
    remaining: 9,
    resetMs: 77,
    retryAfterMs: 77,
  })
  t.same(budgetState({ limit: 10, spent: 0, reserved: 0 }, 11, 77), {
    limit: 10,
    remaining: 10,
    resetMs: 0,
    retryAfterMs: -1,
  })
  t.same(
    budgetState({ limit: 10, spent: 12, reserved: 0 }, 0, 77),
    { limit: 10, remaining: 0, resetMs: 77, retryAfterMs: 77 },
    'overspent, for nothing',
  )
  t.same(budgetState({ limit: MOST, spent: MOST, reserved: 0 }, MOST, 77), {
    limit: MOST,
    remaining: 0,
    resetMs: 77,
    retryAfterMs: 77,
  })
  t.same(
    budgetState({ limit: 10, spent: 9, reserved: 5 }, 6, 9_000),
    { limit: 10, remaining: 1, resetMs: 9_000, retryAfterMs: RUNNING_RETRY_MS },
    'reserved',
  )
  t.same(
    budgetState({ limit: 10, spent: 9, reserved: 5 }, 7, 9_000),
    { limit: 10, remaining: 1, resetMs: 9_000, retryAfterMs: 9_000 },
    'too much even then',
  )
  t.same(
    budgetState({ limit: 10, spent: 9, reserved: 5 }, 6, 77),
    { limit: 10, remaining: 1, resetMs: 77, retryAfterMs: 77 },
    'the day ends sooner',
  )
  t.equal(remainingUnits(500, -1, 60), 500, 'a clock that moves back refills nothing')
  t.equal(remainingUnits(500, 0, 60), 500)
  t.equal(remainingUnits(500, 1, MOST), 0)
  t.end()
})

void t.test('days, weeks and months are those of UTC', (t) => {
  const roll = dice(7)
  for (let count = 0; count < HISTORIES; count += 1) {
    const nowMs = Math.floor(roll() * 4e12)
    const now = new Date(nowMs)
    const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
    const nextDay = Date.UTC(year, month, day + 1)
    const nextMonth = Date.UTC(year, month + 1)
    if (nowMs + (leftOf('usd_day', nowMs) ?? 0) !== nextDay) t.fail(`the day of ${now.toISOString()}`)
    const nextMonday = Date.UTC(year, month, day + 7 - ((now.getUTCDay() + 6) % 7))
    if (nowMs + (leftOf('usd_week', nowMs) ?? 0) !== nextMonday) t.fail(`the week of ${now.toISOString()}`)
    if (nowMs + (leftOf('usd_month', nowMs) ?? 0) !== nextMonth) t.fail(`the month of ${now.toISOString()}`)
    if (dayOf(nextDay) !== dayOf(nowMs) + 1) t.fail(`the day after ${now.toISOString()}`)
    if (monthOf(nextMonth) !== monthOf(nowMs) + 1) t.fail(`the month after ${now.toISOString()}`)
    if (leftOf('usd_day', nextDay) !== 86_400_000) t.fail('a day that begins is whole')
    const week = periodOf('usd_week', nowMs)
    if (periodOf('usd_week', nextMonday) !== week + 1) t.fail(`the week after ${now.toISOString()}`)
    if (periodOf('usd_week', nextMonday - 1) !== week) t.fail(`the end of ${now.toISOString()}`)
  }
  t.equal(monthOf(0), 0)
  t.equal(dayOf(0), 0)
  t.equal(periodOf('usd_week', Date.UTC(1970, 0, 4)), 0, 'a Sunday')
  t.equal(periodOf('usd_week', Date.UTC(1970, 0, 5)), 1, 'a Monday')
  t.end()
})

/**
 * Checks one history of requests: no minute admits more than a full bucket and its refill, a request is
 * refused only if it does not fit, and the limit state is exact to the millisecond.
 */
function isTrue(perMinute: number, roll: () => number): boolean {
  let units = 0
  let nowMs = 0
  let admitted = 0
  for (let step = 0; step < 30; step += 1) {
    const waitMs = Math.floor(roll() * (roll() < 0.5 ? 20 : 40_000))
    nowMs += waitMs
    units = remainingUnits(units, waitMs, perMinute)
    const cost = Math.floor(roll() * roll() * perMinute * 1.2)
    const limitState = rateState(units, perMinute, cost)
    const { remaining, resetMs, retryAfterMs } = limitState
    const fits = rateFits(units, perMinute, cost)
    const numbers = [remaining, resetMs, retryAfterMs]
    if (!numbers.every((number) => Number.isSafeInteger(number))) return false
    if (remaining < 0 || remaining > perMinute || fits !== cost <= remaining) return false
    if (fits !== (retryAfterMs === 0) || (retryAfterMs === -1) !== cost > perMinute) return false
    if (resetMs > 0 && remainingUnits(units, resetMs - 1, perMinute) === 0) return false
    if (remainingUnits(units, resetMs, perMinute) !== 0) return false
    if (retryAfterMs > 0) {
      if (rateFits(remainingUnits(units, retryAfterMs - 1, perMinute), perMinute, cost)) return false
      if (!rateFits(remainingUnits(units, retryAfterMs, perMinute), perMinute, cost)) return false
    }
    if (!fits) continue
    units += cost * UNITS
    admitted += cost
    if (admitted > perMinute + (nowMs * perMinute) / 60_000) return false
  }
  return true
}
