/**
 * The amounts that a request holds of limits until it is settled, and their JSON text in its reservation:
 * `[[accountId, subject, tokens, perMinute, slots, dayNanoUsd, day, monthNanoUsd, month, weekNanoUsd, week],
 * …]`, one list for each subject, and after it `[kind, amount, period]` for each other budget or quota, and
 * `[kind, cost, perMinute]` for each rate of units. `tokens`, `dayNanoUsd`, `monthNanoUsd` and `weekNanoUsd`
 * are null if no such limit applies; version 6 of the store wrote no weeks.
 */
import {
  isUnitRate,
  type LimitKind,
  type UnitRateKind,
  type WindowKind,
} from '../../../base/limit-members.js'
import { isWindowKind, periodOf, windowAmounts } from '../../limit-arithmetic.js'
import type { Demand, RateDemand } from '../../ledger.js'
import { intact } from '../read-records.js'
import { budgetOf, type Counters } from './counters.js'
import type { Budget } from './window-counters.js'

/** The amount held of a budget or quota. */
export interface BudgetHold {
  readonly amount: number
  /** The day, week or month since 1970 (UTC) that it was taken from; 1 if it never resets. */
  readonly period: number
}

/** The amount held of a rate. */
export interface RateHold {
  readonly cost: number
  readonly perMinute: number
}

/** The amounts held of one subject. */
export interface Hold {
  readonly accountId: string
  readonly subject: string
  tokens: RateHold | null
  /** Those of units, by kind. */
  readonly rates: Map<UnitRateKind, RateHold>
  slots: number
  /** By kind. */
  readonly budgets: Map<WindowKind, BudgetHold>
  /** The subject's counters at the time of admission; null if the hold was read from its row. */
  counters: Counters | null
}

/** The amounts that the demands will hold; `counters` are those of each demand's subject. */
export function holdsOf(demands: readonly Demand[], counters: readonly Counters[], nowMs: number): Hold[] {
  const holds: Hold[] = []
  demands.forEach((demand, at) => {
    const of = counters[at]
    // A request that was admitted stays counted.
    if (of === undefined || demand.kind === 'requests' || demand.kind === 'requests_total') return
    let hold = holds.at(-1)
    // Two limits of one kind on one subject are held apart.
    if (hold?.counters !== of || holdsKind(hold, demand.kind)) {
      const { accountId, subject } = of
      const none = { tokens: null, rates: new Map(), slots: 0, budgets: new Map() }
      hold = { accountId, subject, ...none, counters: of }
      holds.push(hold)
    }
    if (demand.kind === 'concurrent') hold.slots += 1
    else if ('perMinute' in demand) holdRate(hold, demand)
    else {
      const budget: Budget = budgetOf(of, demand.kind)
      const period = Math.max(budget.period, periodOf(demand.kind, nowMs))
      hold.budgets.set(demand.kind, { amount: windowAmounts(demand).cost, period })
    }
  })
  return holds
}

/** Holds the amount of a rate. */
export function holdRate(hold: Hold, { kind, cost, perMinute }: RateDemand): void {
  if (isUnitRate(kind)) hold.rates.set(kind, { cost, perMinute })
  else hold.tokens = { cost, perMinute }
}

function holdsKind(hold: Hold, kind: LimitKind): boolean {
  if (isUnitRate(kind)) return hold.rates.has(kind)
  return kind === 'tokens' ? hold.tokens !== null : isWindowKind(kind) && hold.budgets.has(kind)
}

/** The kinds with a fixed place in the text. */
const PLACED = ['usd_day', 'usd_month', 'usd_week'] as const

/** The JSON text of holds. */
export function writeHolds(holds: readonly Hold[]): string {
  return JSON.stringify(
    holds.map(({ accountId, subject, tokens, rates, slots, budgets }) => {
      const list: unknown[] = [accountId, subject, tokens?.cost ?? null, tokens?.perMinute ?? 0, slots]
      const others = [...budgets].filter(([kind]) => !isPlaced(kind))
      const places = others.length > 0 || rates.size > 0 || budgets.has('usd_week') ? 3 : 2
      for (const kind of PLACED.slice(0, places)) {
        const held = budgets.get(kind)
        list.push(held?.amount ?? null, held?.period ?? 0)
      }
      for (const [kind, { amount, period }] of others) list.push([kind, amount, period])
      for (const [kind, { cost, perMinute: rate }] of rates) list.push([kind, cost, rate])
      return list
    }),
  )
}

function isPlaced(kind: WindowKind): boolean {
  return (PLACED as readonly WindowKind[]).includes(kind)
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
  const [accountId, subject, tokens, perMinute, slots, ...held] = list
  if (typeof accountId !== 'string' || typeof subject !== 'string' || typeof slots !== 'number') {
    throw new Error('a hold is damaged')
  }
  const budgets = new Map<WindowKind, BudgetHold>()
  const rates = new Map<UnitRateKind, RateHold>()
  const add = (kind: unknown, ...numbers: readonly [unknown, unknown]): void => {
    if (isUnitRate(kind)) {
      const rate = pairOf(...numbers, (cost, perMinuteOf) => ({ cost, perMinute: perMinuteOf }))
      if (rate !== null) rates.set(kind, rate)
      return
    }
    const budget = pairOf(...numbers, (amount, period) => ({ amount, period }))
    if (!isWindowKind(kind)) throw new Error('a hold is damaged')
    if (budget !== null) budgets.set(kind, budget)
  }
  for (const [at, kind] of PLACED.entries()) add(kind, held[2 * at] ?? null, held[2 * at + 1])
  for (const other of held.slice(2 * PLACED.length)) {
    if (!isList(other)) throw new Error('a hold is damaged')
    add(other[0], other[1], other[2])
  }
  return {
    accountId,
    subject,
    tokens: pairOf(tokens, perMinute, (cost, rate) => ({ cost, perMinute: rate })),
    rates,
    slots,
    budgets,
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
