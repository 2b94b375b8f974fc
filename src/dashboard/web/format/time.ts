/** Formats times in the user's time zone: short in a table, with zone and seconds on hover. */

const LOCALE = 'en-GB'
const full = new Intl.DateTimeFormat(LOCALE, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
})
const clock = new Intl.DateTimeFormat(LOCALE, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const minute = new Intl.DateTimeFormat(LOCALE, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short' })
const dayOfYear = new Intl.DateTimeFormat(LOCALE, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
})

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** `12 Nov 2026, 14:02:11 UTC`. */
export function fullTime(ms: number): string {
  return full.format(ms)
}

/** `2026-11-12T14:02` in the user's time zone, or in `UTC`, for a field and in addresses. */
export function inputTime(ms: number, zone = ''): string {
  const zoneMs = zone === 'UTC' ? 0 : new Date(ms).getTimezoneOffset() * MINUTE_MS
  return new Date(ms - zoneMs).toISOString().slice(0, 16)
}

/** `14:02:11`. */
export function clockTime(ms: number): string {
  return clock.format(ms)
}

/** `12 Nov, 14:02:11`, with the year unless it is the current one. */
export function listTime(ms: number, nowMs: number): string {
  return `${date(ms, nowMs)}, ${clock.format(ms)}`
}

/** `12 Nov`, with the year unless it is the current one. */
export function date(ms: number, nowMs: number): string {
  return new Date(ms).getFullYear() === new Date(nowMs).getFullYear() ? day.format(ms) : dayOfYear.format(ms)
}

/** `today, 18:00`, `12 Nov, 18:00`; the start of a day without the time. */
export function endTime(ms: number, nowMs: number): string {
  const at = minute.format(ms)
  const on = date(ms, nowMs)
  if (on === date(nowMs, nowMs)) return `today, ${at}`
  return at === '00:00' ? on : `${on}, ${at}`
}

const month = new Intl.DateTimeFormat(LOCALE, { month: 'long', year: 'numeric', timeZone: 'UTC' })

/** `November 2026`: the month in UTC. */
export function monthName(ms: number): string {
  return month.format(ms)
}

/** `now`, `2 min ago`, `3 h ago`, `5 days ago`, then the date. */
export function ago(ms: number, nowMs: number): string {
  const age = nowMs - ms
  if (age < 10_000) return 'just now'
  if (age < MINUTE_MS) return `${Math.floor(age / 1_000)} s ago`
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)} min ago`
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)} h ago`
  if (age < 14 * DAY_MS) return `${Math.floor(age / DAY_MS)} d ago`
  return date(ms, nowMs)
}

/** A future time: `in 5 h`, `in 3 days`, then the date. */
export function until(ms: number, nowMs: number): string {
  const left = ms - nowMs
  if (left <= 0) return 'expired'
  if (left < HOUR_MS) return `in ${Math.ceil(left / MINUTE_MS)} min`
  if (left < DAY_MS) return `in ${Math.floor(left / HOUR_MS)} h`
  if (left < 14 * DAY_MS) return `in ${Math.floor(left / DAY_MS)} d`
  return date(ms, nowMs)
}

/** The text of a tick: the hour within a day, the date at the start of a day or for wider buckets. */
export function tick(ms: number, bucketMs: number): string {
  const at = new Date(ms)
  const isWithin = at.getHours() !== 0 || at.getMinutes() !== 0
  return bucketMs < DAY_MS && isWithin ? minute.format(ms) : day.format(ms)
}

/** The name of a bucket in a chart's table: `12 Nov, 14:00`, `12 Nov`. */
export function bucketName(ms: number, bucketMs: number): string {
  return bucketMs < DAY_MS ? `${day.format(ms)}, ${minute.format(ms)}` : day.format(ms)
}
