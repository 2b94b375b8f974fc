/**
 * Goal: the `x-ratelimit-*` headers report the tightest limit of each kind, and never a negative number.
 * Method: limit states as a ledger returns them, and the headers for them.
 */
import t from 'tap'
import type { Demand, LimitState } from '../../src/store/ledger.js'
import type { LimitDemand } from '../../src/limits/find-limits.js'
import { rateLimitHeaders } from '../../src/limits/rate-limit-headers.js'

const shared = false

function requests(perMinute: number, subject: string): LimitDemand {
  return limitDemand({ kind: 'requests', subject, shared, perMinute, cost: 1 })
}

function limitDemand(demand: Demand): LimitDemand {
  return { demand, whose: 'this key' }
}

function limitState(limit: number, remaining: number, resetMs: number): LimitState {
  return { limit, remaining, resetMs, retryAfterMs: 0 }
}

void t.test('headers report the tightest limit of each kind', (t) => {
  const subject = 'key:key_1'
  const concurrent = limitDemand({ kind: 'concurrent', subject, shared, limit: 3 })
  const day = { kind: 'usd_day', subject, shared, limitNanoUsd: 5e9, costNanoUsd: 1 } as const
  const limitDemands = [
    requests(60, subject),
    requests(10, 'account:a'),
    concurrent,
    limitDemand({ kind: 'tokens', subject, shared, perMinute: 1_000, cost: 700 }),
    requests(5, 'model:m'),
  ]
  const limitStates = [
    limitState(60, 4, 56_000),
    limitState(10, 3, 42_001),
    limitState(3, 0, 0),
    limitState(1_000, 0, 60_000),
    limitState(5, 3, 24_000),
  ]
  t.same(rateLimitHeaders(limitDemands, limitStates), [
    'x-ratelimit-limit-requests',
    '5',
    'x-ratelimit-remaining-requests',
    '3',
    'x-ratelimit-reset-requests',
    '24s',
    'x-ratelimit-limit-tokens',
    '1000',
    'x-ratelimit-remaining-tokens',
    '0',
    'x-ratelimit-reset-tokens',
    '60s',
  ])
  t.same(rateLimitHeaders([concurrent, limitDemand(day)], limitStates), [])
  t.end()
})
