/**
 * Goal: the errors about limits are correct, state what to do, and are never negative.
 * Method: limit states as a ledger returns them, and the messages for them.
 */
import t from 'tap'
import type { Demand, LimitState } from '../../src/store/ledger.js'
import type { LimitDemand } from '../../src/limits/find-limits.js'
import { isRetryable, statusOf } from '../../src/errors.js'
import { budgetsUsed, refusalOf } from '../../src/limits/limit-refusal.js'

const subject = 'key:key_1'
const shared = false
const DEMANDS = {
  requests: { kind: 'requests', subject, shared, perMinute: 60, cost: 1 },
  tokens: { kind: 'tokens', subject, shared, perMinute: 1_000, cost: 700 },
  concurrent: { kind: 'concurrent', subject, shared, limit: 3 },
  day: { kind: 'usd_day', subject, shared, limitNanoUsd: 5e9, costNanoUsd: 12_500_000 },
  week: { kind: 'usd_week', subject, shared, limitNanoUsd: 2e9, costNanoUsd: 1e9 },
  month: { kind: 'usd_month', subject, shared, limitNanoUsd: 1, costNanoUsd: 2 },
} satisfies Record<string, Demand>

function limitDemand(demand: Demand): LimitDemand {
  const advice = { outputField: 'max_completion_tokens', largestPart: () => null }
  return { demand, whose: 'this key', advice }
}

function limitState(state: Omit<LimitState, 'retryAfterMs'> & Partial<LimitState>): LimitState {
  return { retryAfterMs: 0, ...state }
}

/** The kind, `retryAfterSeconds`, `retryable` and message for one refused demand. */
function refusal(demand: Demand, at: LimitState): unknown[] {
  const { kind, error } = refusalOf([limitDemand(demand)], [at], 402)
  const { wire } = error
  t.equal(wire.kind, kind.startsWith('usd_') ? 'budget_exceeded' : 'rate_limited')
  t.equal(statusOf(wire), kind.startsWith('usd_') ? 402 : 429)
  return [kind, wire.retryAfterSeconds, isRetryable(wire), wire.message]
}

void t.test('each kind names the limit, its state and the wait', (t) => {
  t.same(
    refusal(DEMANDS.requests, limitState({ limit: 60, remaining: 0, resetMs: 60_000, retryAfterMs: 1 })),
    ['requests', 1, true, 'The limit of 60 requests a minute for this key is reached; try again in 1 s.'],
  )
  t.same(
    refusal(
      DEMANDS.tokens,
      limitState({ limit: 1_000, remaining: 400, resetMs: 36_000, retryAfterMs: 18_001 }),
    ),
    [
      'tokens',
      19,
      true,
      'The limit of 1000 tokens a minute for this key leaves 400, and this request may need up to 700; try again in 19 s.',
    ],
  )
  t.same(refusal(DEMANDS.concurrent, limitState({ limit: 3, remaining: 0, resetMs: 0, retryAfterMs: 1 })), [
    'concurrent',
    1,
    true,
    'The limit of 3 requests at the same time for this key is reached; try again when one has ended.',
  ])
  t.same(
    refusal(
      DEMANDS.day,
      limitState({
        limit: 5e9,
        remaining: 10_000_000,
        resetMs: 7_200_000,
        retryAfterMs: 7_200_000,
      }),
    ),
    [
      'usd_day',
      undefined,
      false,
      'The budget of $5 a day for this key leaves $0.01, and this request may cost up to $0.0125; the budget renews in 7200 s, or lower max_completion_tokens.',
    ],
  )
  t.same(
    refusal(
      DEMANDS.week,
      limitState({ limit: 2e9, remaining: 0, resetMs: 90_000_000, retryAfterMs: 90_000_000 }),
    ),
    [
      'usd_week',
      undefined,
      false,
      'The budget of $2 a week for this key leaves $0, and this request may cost up to $1; the budget renews in 90000 s, or lower max_completion_tokens.',
    ],
  )
  t.match(
    String(
      refusal(
        DEMANDS.week,
        limitState({ limit: 2e9, remaining: 0, resetMs: 90_000_000, retryAfterMs: 1_000 }),
      )[3],
    ),
    /leaves \$0, and .*; the budget may have room in 1 s, or lower max_completion_tokens\.$/,
    'what running requests hold returns before the window ends',
  )
  t.match(
    String(
      refusal(
        { ...DEMANDS.week, kind: 'usd_total' },
        limitState({ limit: 2e9, remaining: 0, resetMs: 0, retryAfterMs: 1_000 }),
      )[3],
    ),
    /\$2 in all for this key leaves \$0, and .*; the budget may have room in 1 s, or lower/,
    'an amount that never resets does not renew',
  )
  const native = { demand: DEMANDS.day, whose: 'this key' }
  const spent = limitState({ limit: 5e9, remaining: 0, resetMs: 9_000, retryAfterMs: 9_000 })
  t.match(
    refusalOf([native], [spent], 402).error.wire.message,
    /may cost up to \$0\.0125; the budget renews in 9 s\.$/,
    'of a native request no field is named',
  )
  t.equal(
    refusalOf(
      [limitDemand(DEMANDS.week)],
      [limitState({ limit: 2e9, remaining: 0, resetMs: 1, retryAfterMs: 1 })],
      402,
    ).limit,
    'key:key_1 usd_per_week',
  )
  t.end()
})

void t.test(
  'a request that can never be admitted is not retryable, and the message names what to change',
  (t) => {
    t.same(
      refusal(
        { ...DEMANDS.tokens, cost: 1_001 },
        limitState({ limit: 1_000, remaining: 1_000, resetMs: 0, retryAfterMs: -1 }),
      ),
      [
        'tokens',
        undefined,
        false,
        'The limit is 1000 tokens a minute for this key, and this request may need up to 1001 at once; shorten it, or lower max_completion_tokens.',
      ],
    )
    t.same(
      refusal(DEMANDS.month, limitState({ limit: 1, remaining: 1, resetMs: 5_400_000, retryAfterMs: -1 })),
      [
        'usd_month',
        undefined,
        false,
        'The budget of $0.000000001 a month for this key is too small for this request: this request may cost up to $0.000000002; lower max_completion_tokens.',
      ],
    )
    t.end()
  },
)

void t.test('of several limits the one with the longest wait is named', (t) => {
  const limitDemands = [DEMANDS.requests, DEMANDS.concurrent, DEMANDS.day].map((demand) =>
    limitDemand(demand),
  )
  const day = limitState({ limit: 5e9, remaining: 0, resetMs: 9_000, retryAfterMs: 9_000 })
  const free = limitState({ limit: 60, remaining: 7, resetMs: 0 })
  const full = limitState({ limit: 3, remaining: 0, resetMs: 0, retryAfterMs: 1_000 })
  t.match(refusalOf(limitDemands, [free, full, day], 402), { kind: 'usd_day' })
  t.match(
    refusalOf(
      limitDemands,
      [limitState({ limit: 60, remaining: 0, resetMs: 60_000, retryAfterMs: 20_000 }), full, day],
      402,
    ),
    {
      kind: 'requests',
    },
  )
  t.match(
    refusalOf(limitDemands, [free, full, limitState({ limit: 5e9, remaining: 5e9, resetMs: 0 })], 402),
    {
      kind: 'concurrent',
    },
  )
  const never = limitState({ limit: 5e9, remaining: 5e9, resetMs: 0, retryAfterMs: -1 })
  t.match(
    refusalOf(
      limitDemands,
      [limitState({ limit: 60, remaining: 0, resetMs: 60_000, retryAfterMs: 20_000 }), full, never],
      402,
    ),
    {
      kind: 'usd_day',
    },
  )
  t.end()
})

void t.test('the used share of a budget excludes the reservation of the request itself', (t) => {
  const limitDemands = [limitDemand(DEMANDS.requests), limitDemand(DEMANDS.day), limitDemand(DEMANDS.month)]
  const limitStates = [
    limitState({ limit: 60, remaining: 0, resetMs: 0 }),
    limitState({ limit: 5e9, remaining: 987_500_000, resetMs: 0 }),
    limitState({ limit: 1, remaining: 0, resetMs: 0 }),
  ]
  t.same(budgetsUsed(limitDemands, limitStates, true), [
    { scope: 'key', kind: 'usd_day', ratio: 0.8 },
    { scope: 'key', kind: 'usd_month', ratio: 0 },
  ])
  t.same(budgetsUsed(limitDemands, limitStates, false), [
    { scope: 'key', kind: 'usd_day', ratio: 1 - 987_500_000 / 5e9 },
    { scope: 'key', kind: 'usd_month', ratio: 1 },
  ])
  t.same(budgetsUsed(limitDemands, [], true), [], 'nothing is known of them')
  t.end()
})
