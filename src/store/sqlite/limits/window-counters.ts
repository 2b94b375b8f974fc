/**
 * The counters of budgets, quotas and rates of units, and the column of those without columns of their own.
 */
import { isObject } from '../../../base/json.js'
import { isUnitRate, type UnitRateKind, type WindowKind } from '../../../base/limit-members.js'
import { isWindowKind } from '../../limit-arithmetic.js'
import type { BudgetMark } from '../../ledger.js'
import type { Row } from '../driver.js'

/**
 * A budget or quota: its day, week or month (since 1970, UTC; 1 if it never resets), and the nano-dollars,
 * tokens or requests spent; those reserved are part of them.
 */
export interface Budget {
  period: number
  spent: number
  reserved: number
  /** Absent: it goes on from the period before, and no use before it is added. */
  begun?: Begun | undefined
}

/** A budget that began within its period (`BudgetMark`); 0 for null. */
export interface Begun {
  readonly begunMs: number
  readonly sinceMs: number
  readonly added: number
}

/** The mark of a budget in a period; null for one that goes on from the period before. */
export function markOf(period: number, begun: Begun | undefined): BudgetMark | null {
  if (begun === undefined) return null
  const { begunMs, sinceMs, added } = begun
  return { period, begunMs: begunMs === 0 ? null : begunMs, sinceMs: sinceMs === 0 ? null : sinceMs, added }
}

/** A rate: the units that have not flowed back at a time. */
export interface Rate {
  units: number
  atMs: number
}

/** The counters in the column `others`; null: none of them was used. */
interface Others {
  readonly budgets: Map<WindowKind, Budget> | null
  readonly rates: Map<UnitRateKind, Rate> | null
}

/** Before the kind of a budget that began within its period. */
const BEGUN = 'begun '

/**
 * Reads the column: `{"tokens_day":[period,spent,reserved],"units_image":[units,atMs]}`, and for each budget
 * that began within its period, also for those with columns, `"begun usd_day":[begunMs,sinceMs,added]`.
 */
export function othersIn(row: Row): Others & { readonly begun: ReadonlyMap<string, Begun> } {
  const { others: text } = row
  const begun = new Map<string, Begun>()
  if (typeof text !== 'string') return { budgets: null, rates: null, begun }
  const budgets = new Map<WindowKind, Budget>()
  const rates = new Map<UnitRateKind, Rate>()
  const value: unknown = JSON.parse(text)
  for (const [kind, numbers] of Object.entries(isObject(value) ? value : {})) {
    if (!Array.isArray(numbers)) continue
    const [first = 0, second = 0, third = 0] = numbers.map(Number)
    if (kind.startsWith(BEGUN)) {
      begun.set(kind.slice(BEGUN.length), { begunMs: first, sinceMs: second, added: third })
    } else if (isWindowKind(kind)) budgets.set(kind, { period: first, spent: second, reserved: third })
    else if (isUnitRate(kind)) rates.set(kind, { units: first, atMs: second })
  }
  for (const [kind, budget] of budgets) budget.begun = begun.get(kind)
  return { budgets, rates: rates.size === 0 ? null : rates, begun }
}

/** The text of the column; null for none. `placed`: the budgets with columns. */
export function othersText(
  { budgets, rates }: Others,
  placed: readonly (readonly [WindowKind, Budget])[],
): string | null {
  const used = [...(budgets ?? [])].filter(([, { period }]) => period > 0)
  const lists: [string, number[]][] = used.map(([kind, { period, spent, reserved }]) => [
    kind,
    [period, spent, reserved],
  ])
  for (const [kind, { begun }] of [...placed, ...used]) {
    if (begun !== undefined) lists.push([BEGUN + kind, [begun.begunMs, begun.sinceMs, begun.added]])
  }
  for (const [kind, { units, atMs }] of rates ?? []) lists.push([kind, [units, atMs]])
  return lists.length === 0 ? null : JSON.stringify(Object.fromEntries(lists))
}
