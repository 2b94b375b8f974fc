/**
 * Goal: the gauge of budgets shows the most used budget for some minutes and then returns to 0.
 * Method: times as arguments.
 */
import t from 'tap'
import { BudgetShares } from '../../src/observe/metrics/gauges.js'

const MINUTE_MS = 60_000

function ratios(shares: BudgetShares, minutes: number): Record<string, number> {
  return Object.fromEntries(
    shares.highest(minutes * MINUTE_MS).map(({ scope, kind, ratio }) => [`${scope} ${kind}`, ratio]),
  )
}

void t.test('the highest share of each scope and period lasts five to ten minutes', (t) => {
  const shares = new BudgetShares()
  t.same(ratios(shares, 0), {})
  shares.record({ scope: 'key', kind: 'usd_day', ratio: 0.9 }, 0)
  shares.record({ scope: 'key', kind: 'usd_day', ratio: 0.2 }, MINUTE_MS)
  shares.record({ scope: 'account', kind: 'usd_month', ratio: 0.5 }, 2 * MINUTE_MS)
  t.same(ratios(shares, 3), { 'key usd_day': 0.9, 'account usd_month': 0.5 })
  shares.record({ scope: 'account', kind: 'usd_month', ratio: 0.6 }, 6 * MINUTE_MS)
  t.same(ratios(shares, 9), { 'key usd_day': 0.9, 'account usd_month': 0.6 })
  t.same(ratios(shares, 12), { 'key usd_day': 0, 'account usd_month': 0.6 })
  t.same(ratios(shares, 60), { 'key usd_day': 0, 'account usd_month': 0 }, 'after a long silence')
  t.end()
})
