/** Lengths of time, and a moment as text. Pure. */

/** An hour in ms. */
export const HOUR_MS = 3_600_000
/** A day in ms. */
export const DAY_MS = 24 * HOUR_MS

/** A time in ms since 1970 as RFC 3339 in UTC; null without one. */
export function timeText(ms: number): string
export function timeText(ms: number | undefined | null): string | null
export function timeText(ms: number | undefined | null): string | null {
  return ms === undefined || ms === null ? null : new Date(ms).toISOString()
}
