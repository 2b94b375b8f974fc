/**
 * Goal: the parts of a cost add up to what the ledger recorded, or are not given at all.
 * Method: prices as in the catalogue, with entries that were charged by them and by others.
 */
import t from 'tap'
import { costNanoUsd, priceOf } from '../../../src/ledger/price.js'
import { costPartsOf } from '../../../src/control/dashboard/cost-parts.js'
import type { Usage } from '../../../src/formats/chat/usage.js'

const PRICE = priceOf({
  ...{ input: 0.75, output: 4.5, cacheRead: 0.075, cacheWrite: 0.9375 },
  longContext: { aboveInputTokens: 200_000, input: 1.5, output: 6.75 },
})

function charged(usage: Usage) {
  const cost = costNanoUsd(PRICE, usage)
  const parts = costPartsOf({ usage, costNanoUsd: cost }, PRICE)
  const sum = parts.reduce((total, part) => total + part.costNanoUsd, 0)
  return { cost: cost ?? -1, sum, kinds: parts.map(({ kind, tokens }) => `${tokens} ${kind}`), parts }
}

void t.test('why a request cost what it did', (t) => {
  t.same(charged({ input: 1_204, output: 310 }).parts, [
    { kind: 'input', tokens: 1_204, usdPerMillion: 0.75, costNanoUsd: 903_000 },
    { kind: 'output', tokens: 310, usdPerMillion: 4.5, costNanoUsd: 1_395_000 },
  ])
  const cached = charged({ input: 9_001, output: 77, cacheRead: 4_097, cacheWrite: 1_023 })
  t.same(cached.kinds, ['3881 input', '4097 cached', '1023 written to cache', '77 output'])
  const long = charged({ input: 250_003, output: 11 })
  t.same(
    long.parts.map(({ usdPerMillion }) => usdPerMillion),
    [1.5, 6.75],
    'the price of a long prompt',
  )
  for (const { cost, sum } of [cached, long]) t.ok(Math.abs(cost - sum) <= 2, `${sum} of ${cost}`)

  const usage = { input: 1_000, output: 100 }
  t.same(costPartsOf({ usage, costNanoUsd: 999 }, PRICE), [], 'another price held')
  t.same(costPartsOf({ usage, costNanoUsd: 0 }, PRICE), [], 'the cache of the gateway replied')
  t.same(costPartsOf({ usage, costNanoUsd: null }, PRICE), [], 'the cost is unknown')
  t.same(costPartsOf({ usage, costNanoUsd: 1_200_000 }, null), [], 'no price is known')
  t.end()
})
