/**
 * Goal: while the store is unavailable no limit is exceeded by more than documented, with any number of
 * processes.
 * Method: one object per process, a manual clock, and a count of the admitted requests.
 */
import t from 'tap'
import type { BudgetDemand, Demand, RateDemand, ConcurrencyDemand } from '../../src/store/ledger.js'
import { OutageLimits, LastLimitStates } from '../../src/limits/outage-limits.js'

const away = { processes: 4, budgetShare: 0.01, budgetNanoUsd: 1e9 }
const alone = { ...away, processes: 1 }
const subject = 'key:key_1'
const shared = false

function requests(perMinute: number): RateDemand {
  return { kind: 'requests', subject, shared, perMinute, cost: 1 }
}

function slots(limit: number): ConcurrencyDemand {
  return { kind: 'concurrent', subject, shared, limit }
}

function budget(limitNanoUsd: number, costNanoUsd: number): BudgetDemand {
  return { kind: 'usd_day', subject, shared, limitNanoUsd, costNanoUsd }
}

/** The number of `count` requests at `nowMs` that are admitted. */
function admittedOf(
  local: OutageLimits,
  demand: Demand,
  { nowMs, count }: { nowMs: number; count: number },
): number {
  let admitted = 0
  for (let index = 0; index < count; index += 1) if (local.admit([demand], nowMs).admitted) admitted += 1
  return admitted
}

void t.test('four processes together keep a rate', (t) => {
  const four = Array.from({ length: 4 }, () => new OutageLimits(new LastLimitStates(), away))
  const all = (nowMs: number): number =>
    four.reduce((sum, local) => sum + admittedOf(local, requests(100), { nowMs, count: 200 }), 0)
  t.equal(all(0), 100, 'a bucket')
  t.equal(all(0), 0)
  t.equal(all(6_000), 8, 'a tenth of a minute: 2.5 of each')
  t.equal(all(12_000), 12, 'no fraction is lost')
  t.equal(all(72_000), 100)
  t.end()
})

void t.test('a rate continues from its last known state', (t) => {
  const lastStates = new LastLimitStates()
  lastStates.note(requests(100), { limit: 100, remaining: 20, resetMs: 48_000, retryAfterMs: 0 }, 1_000)
  t.equal(admittedOf(new OutageLimits(lastStates, alone), requests(100), { nowMs: 1_000, count: 200 }), 20)
  t.equal(
    admittedOf(new OutageLimits(lastStates, away), requests(100), { nowMs: 1_000, count: 200 }),
    5,
    'of four, a quarter',
  )
  t.equal(
    admittedOf(new OutageLimits(lastStates, alone), requests(100), { nowMs: 31_000, count: 200 }),
    70,
    'half a minute later',
  )
  t.equal(admittedOf(new OutageLimits(lastStates, alone), requests(100), { nowMs: 99_000, count: 200 }), 100)
  t.end()
})

void t.test('a limit below one per process admits one request per process', (t) => {
  const local = new OutageLimits(new LastLimitStates(), away)
  t.equal(admittedOf(local, requests(1), { nowMs: 0, count: 10 }), 1)
  t.equal(admittedOf(local, requests(1), { nowMs: 60_000, count: 10 }), 0, 'one in four minutes, of each')
  t.equal(admittedOf(local, requests(1), { nowMs: 240_000, count: 10 }), 1)
  t.end()
})

void t.test('a request for more tokens than its share takes the share; more than all, never', (t) => {
  const local = new OutageLimits(new LastLimitStates(), away)
  const tokens = (cost: number): RateDemand => ({ ...requests(1_000), kind: 'tokens', cost })
  t.equal(local.admit([tokens(900)], 0).admitted, true)
  const refused = local.admit([tokens(1)], 0)
  t.equal(refused.admitted, false)
  t.match(refused.limitStates[0], {
    limit: 1_000,
    remaining: 0,
    resetMs: 60_000,
    retryAfterMs: 240,
  })
  t.equal(local.admit([tokens(1)], 240).admitted, true, 'the last known state')
  t.equal(local.admit([tokens(1_001)], 1e9).limitStates[0]?.retryAfterMs, -1)
  t.end()
})

void t.test('slots: running requests hold them, and ended ones free them', (t) => {
  const local = new OutageLimits(new LastLimitStates(), away)
  local.takeSlots([slots(12), requests(5)])
  t.equal(admittedOf(local, slots(12), { nowMs: 0, count: 10 }), 2, 'three for each, and one is used')
  local.end([slots(12)], null, false)
  local.end([slots(12)], null, true)
  t.equal(admittedOf(local, slots(12), { nowMs: 0, count: 10 }), 2)
  t.equal(
    admittedOf(new OutageLimits(new LastLimitStates(), away), slots(2), { nowMs: 0, count: 10 }),
    1,
    'never zero',
  )
  t.end()
})

void t.test('a budget: closed if its state is unknown or little remains', (t) => {
  const cent = budget(1e9, 1)
  const unknown = new OutageLimits(new LastLimitStates(), alone).admit([cent], 0)
  t.match(unknown, { admitted: false, closed: true })
  const lastStates = new LastLimitStates()
  lastStates.note(cent, { limit: 1e9, remaining: 49_999_999, resetMs: 60_000, retryAfterMs: 0 }, 0)
  t.match(new OutageLimits(lastStates, alone).admit([cent], 0), { admitted: false, closed: true })
  t.equal(new OutageLimits(lastStates, alone).admit([cent], 60_000).admitted, true, 'it is another day')
  const raised = new OutageLimits(lastStates, alone).admit([budget(2e9, 1)], 0)
  t.equal(raised.admitted, true, 'a higher limit keeps the spent amount')
  t.end()
})

void t.test('a budget: an outage spends at most its share', (t) => {
  const lastStates = new LastLimitStates()
  const cost = budget(1e9, 1e6)
  lastStates.note(cost, { limit: 1e9, remaining: 5e8, resetMs: 1e6, retryAfterMs: 0 }, 0)
  const local = new OutageLimits(lastStates, alone)
  t.equal(admittedOf(local, cost, { nowMs: 0, count: 50 }), 10, 'one per cent')
  local.end([cost], 250_000, true)
  local.end([cost], 250_000, true)
  t.equal(admittedOf(local, cost, { nowMs: 0, count: 50 }), 1, 'the unused part is released')
  local.end([cost], 0, false)
  local.end([cost], null, true)
  t.equal(admittedOf(local, cost, { nowMs: 0, count: 50 }), 0, 'not of others, nor what is not known')
  t.equal(
    admittedOf(new OutageLimits(lastStates, away), cost, { nowMs: 0, count: 50 }),
    2,
    'of four, a quarter',
  )
  const dollar = { ...alone, budgetShare: 1, budgetNanoUsd: 3e6 }
  t.equal(
    admittedOf(new OutageLimits(lastStates, dollar), cost, { nowMs: 0, count: 50 }),
    3,
    'the smaller of the two',
  )
  t.equal(
    admittedOf(new OutageLimits(lastStates, { ...alone, budgetNanoUsd: 0 }), cost, {
      nowMs: 0,
      count: 50,
    }),
    0,
  )
  t.end()
})

void t.test('all demands are reserved, or none', (t) => {
  const local = new OutageLimits(new LastLimitStates(), alone)
  const both = [requests(2), slots(1)]
  t.equal(local.admit(both, 0).admitted, true)
  const refused = local.admit(both, 0)
  t.match(refused, { admitted: false, closed: false })
  t.same(
    refused.limitStates.map(({ remaining }) => remaining),
    [1, 0],
  )
  t.equal(admittedOf(local, requests(2), { nowMs: 0, count: 5 }), 1, 'the refused one took no request')
  t.end()
})

void t.test('the number of kept limit states is bounded', (t) => {
  const lastStates = new LastLimitStates(4)
  const limitState = { limit: 1, remaining: 1, resetMs: 0, retryAfterMs: 0 }
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    lastStates.note({ ...requests(1), subject: name }, limitState, 0)
  }
  const known = ['a', 'b', 'c', 'd', 'e'].filter(
    (name) => lastStates.find({ ...requests(1), subject: name }) !== null,
  )
  t.same(known, ['c', 'd', 'e'])
  t.end()
})
