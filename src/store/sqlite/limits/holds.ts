/**
 * The amounts that a request holds of limits until it is settled, and their JSON text in its reservation:
 * `[[accountId, subject, tokens, perMinute, slots, dayNanoUsd, day, monthNanoUsd, month, weekNanoUsd, week],
 * …]`, one list for each subject. `tokens`, `dayNanoUsd`, `monthNanoUsd` and `weekNanoUsd` are null if no
 * such limit applies; version 6 of the store wrote no weeks.
 */
import { periodOf } from '../../limit-arithmetic.js'
import type { Demand } from '../../ledger.js'
import { intact } from '../read-records.js'
import { budgetOf, type Budget, type Counters } from './counters.js'

/** The amount held of a budget. */
export interface BudgetHold {
  readonly nanoUsd: number
  /** The day, week or month since 1970 (UTC) that it was taken from. */
  readonly period: number
}

/** The amounts held of one subject. */
export interface Hold {
  readonly accountId: string
  readonly subject: string
  tokens: { readonly cost: number; readonly perMinute: number } | null
  slots: number
  usd_day: BudgetHold | null
  usd_week: BudgetHold | null
  usd_month: BudgetHold | null
  /** The subject's counters at the time of admission; null if the hold was read from its row. */
  counters: Counters | null
}

/** The amounts that the demands will hold; `counters` are those of each demand's subject. */
export function holdsOf(demands: readonly Demand[], counters: readonly Counters[], nowMs: number): Hold[] {
  const holds: Hold[] = []
  demands.forEach((demand, at) => {
    const of = counters[at]
    if (of === undefined || demand.kind === 'requests') return
    let hold = holds.at(-1)
    // Two limits of one kind on one subject are held apart.
    if (hold?.counters !== of || (demand.kind !== 'concurrent' && hold[demand.kind] !== null)) {
      const { accountId, subject } = of
      hold = {
        accountId,
        subject,
        tokens: null,
        slots: 0,
        usd_day: null,
        usd_week: null,
        usd_month: null,
        counters: of,
      }
      holds.push(hold)
    }
    if ('cost' in demand) {
      hold.tokens = { cost: demand.cost, perMinute: demand.perMinute }
    } else if (demand.kind === 'concurrent') {
      hold.slots += 1
    } else {
      const budget: Budget = budgetOf(of, demand.kind)
      const period = Math.max(budget.period, periodOf(demand.kind, nowMs))
      hold[demand.kind] = { nanoUsd: demand.costNanoUsd, period }
    }
  })
  return holds
}

/** The JSON text of holds. */
export function writeHolds(holds: readonly Hold[]): string {
  return JSON.stringify(
    holds.map(({ accountId, subject, tokens, slots, usd_day: day, usd_week: week, ...rest }) => {
      const { usd_month: month } = rest
      return [
        ...[accountId, subject, tokens?.cost ?? null, tokens?.perMinute ?? 0, slots],
        ...[day?.nanoUsd ?? null, day?.period ?? 0, month?.nanoUsd ?? null, month?.period ?? 0],
        ...(week === null ? [] : [week.nanoUsd, week.period]),
      ]
    }),
  )
}

/** Reads the text of holds. Throws an Error that names the request if the text is damaged. */
export function readHolds(requestId: string, text: string): Hold[] {
  return intact(`the reservation of '${requestId}'`, () => {
    const lists: unknown = parsed(text)
    if (!Array.isArray(lists)) throw new Error('its holds are not a list')
    return lists.map(holdIn)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of the parser would quote the text.
    throw new Error('its holds are not JSON')
  }
}

function holdIn(list: unknown): Hold {
  if (!isList(list)) throw new Error('a hold is not a list')
  const [accountId, subject, tokens, perMinute, slots, ...budgets] = list
  const [dayNanoUsd, day, monthNanoUsd, month, weekNanoUsd = null, week] = budgets
  if (typeof accountId !== 'string' || typeof subject !== 'string' || typeof slots !== 'number') {
    throw new Error('a hold is damaged')
  }
  return {
    accountId,
    subject,
    tokens: pairOf(tokens, perMinute, (cost, rate) => ({ cost, perMinute: rate })),
    slots,
    usd_day: pairOf(dayNanoUsd, day, (nanoUsd, period) => ({ nanoUsd, period })),
    usd_week: pairOf(weekNanoUsd, week, (nanoUsd, period) => ({ nanoUsd, period })),
    usd_month: pairOf(monthNanoUsd, month, (nanoUsd, period) => ({ nanoUsd, period })),
    counters: null,
  }
}

function pairOf<Pair>(one: unknown, other: unknown, make: (one: number, other: number) => Pair): Pair | null {
  if (one === null) return null
  if (typeof one !== 'number' || typeof other !== 'number') throw new Error('a hold is damaged')
  return make(one, other)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
