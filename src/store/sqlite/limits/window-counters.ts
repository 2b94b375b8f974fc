/** The counters of budgets and quotas, and the column of those without columns of their own. */
import { isObject } from '../../../base/json.js'
import type { WindowKind } from '../../../base/limit-members.js'
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

/** The counters in the column `others`: `{"tokens_day":[period,spent,reserved]}`; null for none. */
export function othersIn(row: Row): Map<WindowKind, Budget> | null {
  const { others: text } = row
  if (typeof text !== 'string') return null
  const found = new Map<WindowKind, Budget>()
  const value: unknown = JSON.parse(text)
  for (const [kind, numbers] of Object.entries(isObject(value) ? value : {})) {
    if (!isWindowKind(kind) || !Array.isArray(numbers)) continue
    const [period = 0, spent = 0, reserved = 0] = numbers.map(Number)
    found.set(kind, { period, spent, reserved })
  }
  return found
}

/** The text of the column; null for none. */
export function othersText(others: ReadonlyMap<WindowKind, Budget> | null): string | null {
  if (others === null) return null
  const used = [...others].filter(([, { period }]) => period > 0)
  if (used.length === 0) return null
  return JSON.stringify(
    Object.fromEntries(used.map(([kind, { period, spent, reserved }]) => [kind, [period, spent, reserved]])),
  )
}
