/**
 * The counters of budgets, quotas and rates of units, and the column of those without columns of their own.
 */
import { isObject } from '../../../base/json.js'
import { isUnitRate, type UnitRateKind, type WindowKind } from '../../../base/limit-members.js'
import { isWindowKind } from '../../limit-arithmetic.js'
import type { Row } from '../driver.js'

/**
 * A budget or quota: its day, week or month (since 1970, UTC; 1 if it never resets), and the nano-dollars,
 * tokens or requests spent; those reserved are part of them.
 */
export interface Budget {
  period: number
  spent: number
  reserved: number
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

/** Reads the column: `{"tokens_day":[period,spent,reserved],"units_image":[units,atMs]}`. */
export function othersIn(row: Row): Others {
  const { others: text } = row
  if (typeof text !== 'string') return { budgets: null, rates: null }
  const budgets = new Map<WindowKind, Budget>()
  const rates = new Map<UnitRateKind, Rate>()
  const value: unknown = JSON.parse(text)
  for (const [kind, numbers] of Object.entries(isObject(value) ? value : {})) {
    if (!Array.isArray(numbers)) continue
    const [first = 0, second = 0, third = 0] = numbers.map(Number)
    if (isWindowKind(kind)) budgets.set(kind, { period: first, spent: second, reserved: third })
    else if (isUnitRate(kind)) rates.set(kind, { units: first, atMs: second })
  }
  return { budgets, rates: rates.size === 0 ? null : rates }
}

/** The text of the column; null for none. */
export function othersText({ budgets, rates }: Others): string | null {
  const used = [...(budgets ?? [])].filter(([, { period }]) => period > 0)
  const lists: [string, number[]][] = used.map(([kind, { period, spent, reserved }]) => [
    kind,
    [period, spent, reserved],
  ])
  for (const [kind, { units, atMs }] of rates ?? []) lists.push([kind, [units, atMs]])
  return lists.length === 0 ? null : JSON.stringify(Object.fromEntries(lists))
}
