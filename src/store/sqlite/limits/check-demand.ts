/**
 * Checks one demand against the counters of its subject, and takes its amount: requests and tokens of a
 * minute, slots of concurrent requests, and budgets. The formulas are those of src/limits/arithmetic/.
 */
import { budgetState } from '../../../limits/arithmetic/budget-limit.js'
import { leftOf, periodOf } from '../../../limits/arithmetic/budget-period.js'
import { slotState } from '../../../limits/arithmetic/concurrency-limit.js'
import { remainingUnits, rateState, UNITS } from '../../../limits/arithmetic/rate-limit.js'
import type { Demand, LimitState, RateDemand } from '../../ledger.js'
import { budgetOf, startPeriod, type Counters, type Rate } from './counters.js'

/**
 * Removes the units that have flowed back since. A clock that was set back starts again from its new time.
 */
export function drain(rate: Rate, perMinute: number, nowMs: number): void {
  rate.units = remainingUnits(rate.units, nowMs - rate.atMs, perMinute)
  rate.atMs = nowMs
}

/** Takes the amount of a demand, whether it fits or not. */
export function take(counters: Counters, demand: Demand, nowMs: number): void {
  switch (demand.kind) {
    case 'requests':
    case 'tokens':
      drain(counters[demand.kind], demand.perMinute, nowMs)
      counters[demand.kind].units += demand.cost * UNITS
      return
    case 'concurrent':
      counters.slots += 1
      return
    case 'usd_day':
    case 'usd_week':
    case 'usd_month': {
      const budget = budgetOf(counters, demand.kind)
      startPeriod(budget, periodOf(demand.kind, nowMs))
      budget.spent += demand.costNanoUsd
      budget.reserved += demand.costNanoUsd
      return
    }
    default:
      demand satisfies never
  }
}

/** The time of a state, and the amount that earlier demands of the same request take of the limit. */
export interface StateQuery {
  readonly nowMs: number
  readonly taken: number
}

/** The state of the demand's limit. */
export function stateOf(
  counters: Counters,
  demand: Demand,
  { nowMs, taken }: StateQuery,
): LimitState {
  switch (demand.kind) {
    case 'requests':
    case 'tokens': {
      const units = unitsOf(counters[demand.kind], demand, nowMs) + taken * UNITS
      return rateState(units, demand.perMinute, demand.cost)
    }
    case 'concurrent':
      return slotState(counters.slots + taken, demand.limit)
    case 'usd_day':
    case 'usd_week':
    case 'usd_month': {
      const { limitNanoUsd, costNanoUsd } = demand
      const budget = budgetOf(counters, demand.kind)
      const isOver = periodOf(demand.kind, nowMs) > budget.period
      const [spent, reserved] = isOver ? [0, 0] : [budget.spent, budget.reserved]
      const use = { limit: limitNanoUsd, spent: spent + taken, reserved }
      return budgetState(use, costNanoUsd, leftOf(demand.kind, nowMs))
    }
    default:
      return demand satisfies never
  }
}

function unitsOf({ units, atMs }: Rate, { perMinute }: RateDemand, nowMs: number): number {
  return remainingUnits(units, nowMs - atMs, perMinute)
}

/** The amount that a demand takes: requests, tokens, slots or nano-dollars. */
export function amountOf(demand: Demand): number {
  switch (demand.kind) {
    case 'requests':
    case 'tokens':
      return demand.cost
    case 'concurrent':
      return 1
    case 'usd_day':
    case 'usd_week':
    case 'usd_month':
      return demand.costNanoUsd
    default:
      return demand satisfies never
  }
}
