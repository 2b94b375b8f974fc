/** Days of a time zone, made of whole hours, because sums are kept by hour. Pure. */
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import type { ZoneOffset } from '../store/usage-queries.js'

/** Whether the name is that of a zone, such as `Europe/Berlin`. */
export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/**
 * The offsets of a zone in a range, in order. An hour belongs to the day in which it begins: with half an
 * hour of difference, a day begins half an hour after midnight.
 */
export function offsetsOf(zone: string, fromMs: number, toMs: number): ZoneOffset[] {
  const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' })
  const first = Math.floor(fromMs / HOUR_MS) * HOUR_MS - DAY_MS
  const offsets: ZoneOffset[] = [{ fromMs: first, offsetMs: offsetAt(format, first) }]
  for (let at = first; at < toMs + DAY_MS; at += DAY_MS) {
    if (offsetAt(format, at + DAY_MS) === offsets.at(-1)?.offsetMs) continue
    for (let hour = at + HOUR_MS; hour <= at + DAY_MS; hour += HOUR_MS) {
      const offsetMs = offsetAt(format, hour)
      if (offsetMs !== offsets.at(-1)?.offsetMs) offsets.push({ fromMs: hour, offsetMs })
    }
  }
  return offsets
}

/** In whole hours. */
function offsetAt(format: Intl.DateTimeFormat, atMs: number): number {
  const name = format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign = '', hours = '0', minutes = '0'] = /GMT([+-])(\d+)(?::(\d+))?/.exec(name) ?? []
  const offset = Number(`${sign}1`) * (Number(hours) + Number(minutes) / 60)
  return (Number.isNaN(offset) ? 0 : Math.floor(offset)) * HOUR_MS
}

/** The day of a time: its start, as if its local time were UTC. */
function localDay(offsets: readonly ZoneOffset[], atMs: number): number {
  const { offsetMs } = offsets.findLast(({ fromMs }) => atMs >= fromMs) ?? { offsetMs: 0 }
  return Math.floor((atMs + offsetMs) / DAY_MS) * DAY_MS
}

/** The first hour of each day from the one of `fromMs` to before `toMs`, by `localDay`. */
export function daysOf(offsets: readonly ZoneOffset[], fromMs: number, toMs: number): Map<number, number> {
  const days = new Map<number, number>()
  const start = Math.floor(fromMs / HOUR_MS) * HOUR_MS
  const first = localDay(offsets, start)
  for (let hour = start - DAY_MS - 2 * HOUR_MS; hour < toMs; hour += HOUR_MS) {
    const day = localDay(offsets, hour)
    if (day >= first && !days.has(day)) days.set(day, hour)
  }
  return days
}
