/** The mark of a budget in Redis, field `b`: period, begin, since when it counts, added use (time.lua). */
import type { BudgetMark } from '../../ledger.js'

/** Null for a budget without one. */
export function markIn(text: unknown): BudgetMark | null {
  const numbers = typeof text === 'string' && text !== '' ? text.split(' ').map(Number) : []
  const [period = 0, begunMs = 0, sinceMs = 0, added = 0] = numbers
  if (period === 0) return null
  return { period, begunMs: begunMs === 0 ? null : begunMs, sinceMs: sinceMs === 0 ? null : sinceMs, added }
}

/** Empty for none. */
export function markText(mark: BudgetMark | null): string {
  return mark === null ? '' : [mark.period, mark.begunMs ?? 0, mark.sinceMs ?? 0, mark.added].join(' ')
}
