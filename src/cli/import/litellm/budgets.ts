/** Budgets with LiteLLM's durations, as limits of days, weeks and months (UTC), and in all. */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import { numberIn } from './context.js'

/** Limits and what is different about them; null: there are none. */
interface BudgetLimit {
  readonly limits: JsonObject | null
  /** Null if the meaning is the same. */
  readonly note: string | null
}

const SECONDS: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  mo: 2_592_000,
}
const DAY = 86_400
const WEEK = 7 * DAY
const MONTH = 30 * DAY

/** The seconds of `30s`, `15m`, `12h`, `7d`, `1w`, `1mo`; null for other texts. */
function secondsOf(duration: string): number | null {
  const [, count = '', unit = ''] = /^(\d{1,6})(s|mo|m|h|d|w)$/.exec(duration.trim()) ?? []
  const seconds = SECONDS[unit]
  return seconds === undefined ? null : Number(count) * seconds
}

/**
 * The limits for a budget. Never more than it allows. Without a duration it never resets: what is left after
 * `spend` is carried.
 */
export function budgetLimit(
  budget: JsonValue | undefined,
  duration: JsonValue | undefined,
  spend = 0,
): BudgetLimit {
  const dollars = numberIn(budget)
  if (dollars === null) return { limits: null, note: null }
  if (duration === undefined || duration === null || duration === '') {
    const left = Math.max(0, Math.round((dollars - spend) * 1e9) / 1e9)
    return { limits: { usd_total: left }, note: null }
  }
  const seconds = typeof duration === 'string' ? secondsOf(duration) : null
  if (seconds === null || seconds === 0) {
    return {
      limits: null,
      note: 'the duration is unknown: use usd_per_day, usd_per_week, usd_per_month or usd_total',
    }
  }
  if (seconds === DAY) return { limits: { usd_per_day: dollars }, note: null }
  if (seconds === WEEK) return { limits: { usd_per_week: dollars }, note: null }
  if (seconds === MONTH) return { limits: { usd_per_month: dollars }, note: null }
  const note = 'another window with no more dollars'
  if (seconds < DAY) return { limits: { usd_per_day: dollars }, note }
  if (seconds < WEEK) return { limits: { usd_per_week: dollars }, note }
  if (seconds < MONTH) return { limits: { usd_per_month: dollars }, note }
  const share = Math.floor((dollars * MONTH * 1e9) / seconds) / 1e9
  return { limits: { usd_per_month: share }, note: 'its share of a month' }
}
