/**
 * Ranges of time for usage. A rolling range ends now and is exact to the millisecond; it, and every other
 * range, is extended to whole hours or days only if what it would need is no longer kept.
 */
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import { GatewayError } from '../errors.js'
import type { ZoneOffset } from '../store/usage-queries.js'
import { daysOf, isZone, offsetsOf } from './time-zone.js'

const MINUTE_MS = 60_000

/** The unit of a chart. Minutes are single ones, or five. */
type Unit = 'minute' | 'hour' | 'day'

/** The ranges that end now, and the usual unit of their charts. */
const ROLLING = {
  '15m': { spanMs: 15 * MINUTE_MS, by: 'minute' },
  '1h': { spanMs: HOUR_MS, by: 'minute' },
  '6h': { spanMs: 6 * HOUR_MS, by: 'minute' },
  '24h': { spanMs: DAY_MS, by: 'hour' },
  '7d': { spanMs: 7 * DAY_MS, by: 'hour' },
  '30d': { spanMs: 30 * DAY_MS, by: 'day' },
  '90d': { spanMs: 90 * DAY_MS, by: 'day' },
} as const satisfies Readonly<Record<string, { readonly spanMs: number; readonly by: Unit }>>
/** The name of such a range. */
type RollingName = keyof typeof ROLLING

/** The longest range of a chart by each unit. */
const LONGEST_MS: Readonly<Record<Unit, number>> = {
  minute: 8 * HOUR_MS,
  hour: 31 * DAY_MS,
  day: 400 * DAY_MS,
}
/** Minutes of longer ranges are five minutes. */
const SINGLE_MINUTES_MS = 100 * MINUTE_MS

/** A range as a query has it: one that ends now, or two times. */
export interface AskedRange {
  readonly range?: RollingName | undefined
  readonly fromMs?: number | undefined
  /** Exclusive. */
  readonly toMs?: number | undefined
  readonly by?: Unit | undefined
  /** The zone of days, as an IANA name; default UTC. */
  readonly zone?: string | undefined
}

/** From when on the parts of the ledger are kept, ms since 1970. */
export interface KeptSince {
  readonly entriesMs: number
  readonly hoursMs: number
}

/** What a range is read from. */
export interface UsageRange {
  readonly by: Unit
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly nowMs: number
  /** The length of a minute, hour or day of the range. */
  readonly stepMs: number
  readonly zone: string
  /** Of the days of a zone other than UTC. */
  readonly offsets?: readonly ZoneOffset[]
  /** The start of each minute, hour or day; the first may be before the range. By the `startMs` of sums. */
  readonly starts: ReadonlyMap<number, number>
  /** What the ends were moved to, because single requests or hours are no longer kept; null: exact. */
  readonly extendedTo: 'hour' | 'day' | null
}

/** The range of a chart. Throws `malformed_request` if it is wrong or too long. */
export function chartRange(asked: AskedRange, nowMs: number, kept: KeptSince): UsageRange {
  const { fromMs, toMs } = timesOf(asked, nowMs)
  const unit = unitOf(asked)
  const longest = LONGEST_MS[unit]
  if (toMs - fromMs > longest) {
    const text = longest < DAY_MS ? `${longest / HOUR_MS} hours` : `${longest / DAY_MS} days`
    const advice = unit === 'day' ? 'Choose a shorter one.' : 'Choose a shorter one, or usage by day.'
    throw badRange('toMs', `The range is longer than ${text}. ${advice}`)
  }
  return rangeOf(asked, nowMs, kept)
}

function unitOf({ by, range }: AskedRange): Unit {
  return by ?? (range === undefined ? 'hour' : ROLLING[range].by)
}

/** The range of a query, of any length. Throws `malformed_request` if it is wrong. */
export function rangeOf(asked: AskedRange, nowMs: number, kept: KeptSince): UsageRange {
  const { fromMs, toMs } = timesOf(asked, nowMs)
  const wanted = unitOf(asked)
  const zone = asked.zone ?? 'UTC'
  if (!isZone(zone)) {
    throw badRange(
      'zone',
      `The time zone "${zone}" is unknown. Use an IANA name such as Europe/Berlin, or UTC.`,
    )
  }
  const end = { fromMs, toMs, nowMs }
  const needsHours = wanted !== 'day' || zone !== 'UTC'
  if ((needsHours && fromMs < kept.hoursMs) || !isKept(end, kept.hoursMs, DAY_MS)) {
    return withStarts('day', movedTo(end, DAY_MS), 'UTC')
  }
  const by = wanted === 'minute' && fromMs < kept.entriesMs ? 'hour' : wanted
  if (isKept(end, kept.entriesMs, HOUR_MS)) return withStarts(by, { ...end, extendedTo: null }, zone)
  return withStarts(by, movedTo(end, HOUR_MS), zone)
}

/**
 * The range of the same length before this one; of the month that goes on, the same days and hours of the
 * month before. It is moved back to whole hours or days if single requests or hours of it are no longer kept;
 * null if nothing of it is. Its sums have no chart: their `starts` are days (UTC).
 */
export function rangeBefore({ zone, ...ends }: UsageRange, kept: KeptSince): UsageRange | null {
  const { nowMs } = ends
  const spanMs = Math.min(ends.toMs, nowMs) - ends.fromMs
  if (spanMs <= 0) return null
  const startMs = (ends.toMs > nowMs ? monthBefore(ends, zone) : null) ?? ends.fromMs - spanMs
  if (startMs < nowMs - LONGEST_MS.day) return null
  for (const unitMs of [1, HOUR_MS, DAY_MS]) {
    const fromMs = Math.floor(startMs / unitMs) * unitMs
    const toMs = Math.min(fromMs + Math.floor(spanMs / unitMs) * unitMs, ends.fromMs)
    if (toMs <= fromMs) return null
    const range = rangeOf({ fromMs, toMs, by: 'day' }, nowMs, kept)
    if (range.extendedTo === null) return range
  }
  return null
}

/** The start of the month before the range if it is one month of the zone, else null. */
function monthBefore({ fromMs, toMs }: Pick<UsageRange, 'fromMs' | 'toMs'>, zone: string): number | null {
  const offset = (atMs: number): number =>
    zone === 'UTC' ? 0 : (offsetsOf(zone, atMs, atMs).findLast((each) => each.fromMs <= atMs)?.offsetMs ?? 0)
  const [first, next] = [fromMs, toMs].map((atMs) => new Date(atMs + offset(atMs)))
  const isMonth =
    first !== undefined &&
    Date.UTC(first.getUTCFullYear(), first.getUTCMonth()) === first.getTime() &&
    Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1) === next?.getTime()
  if (!isMonth) return null
  const before = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() - 1)
  return before - offset(before)
}

/** The same range in days (UTC). */
export function inDays(range: UsageRange): UsageRange {
  return withStarts('day', range, 'UTC')
}

type Ends = Pick<UsageRange, 'fromMs' | 'toMs' | 'nowMs'>

/** The times of a range as a query has it. Throws `malformed_request` if it is wrong. */
export function timesOf(
  { range, fromMs, toMs }: AskedRange,
  nowMs: number,
): Pick<UsageRange, 'fromMs' | 'toMs'> {
  if (range !== undefined) {
    if (fromMs === undefined && toMs === undefined)
      return { fromMs: nowMs - ROLLING[range].spanMs, toMs: nowMs }
    throw badRange('range', 'The field range replaces fromMs and toMs. Send one of the two.')
  }
  if (fromMs === undefined) throw badRange('fromMs', 'Send range, or both fromMs and toMs.')
  if (toMs === undefined) throw badRange('toMs', 'Send range, or both fromMs and toMs.')
  if (toMs <= fromMs) throw badRange('toMs', 'The field toMs must be later than fromMs.')
  return { fromMs, toMs }
}

/** Whether what the ends of the range need is kept: nothing at whole hours or days, or at the present. */
function isKept({ fromMs, toMs, nowMs }: Ends, sinceMs: number, lengthMs: number): boolean {
  const isWhole = (atMs: number): boolean => atMs % lengthMs === 0 || atMs >= sinceMs
  return isWhole(fromMs) && (toMs >= nowMs || isWhole(toMs))
}

function movedTo({ fromMs, toMs, nowMs }: Ends, lengthMs: number): Ends & Pick<UsageRange, 'extendedTo'> {
  const extendedTo = lengthMs === DAY_MS ? 'day' : 'hour'
  const first = Math.floor(fromMs / lengthMs) * lengthMs
  return { fromMs: first, toMs: Math.ceil(toMs / lengthMs) * lengthMs, nowMs, extendedTo }
}

function withStarts(
  by: Unit,
  { fromMs, toMs, nowMs, extendedTo }: Ends & Pick<UsageRange, 'extendedTo'>,
  zone: string,
): UsageRange {
  const ends = { fromMs, toMs, nowMs, extendedTo }
  if (by === 'day' && zone !== 'UTC') {
    const offsets = offsetsOf(zone, fromMs, toMs)
    return { ...ends, by, zone, stepMs: DAY_MS, starts: daysOf(offsets, fromMs, toMs), offsets }
  }
  const minutesMs = toMs - fromMs > SINGLE_MINUTES_MS ? 5 * MINUTE_MS : MINUTE_MS
  const stepMs = by === 'minute' ? minutesMs : by === 'hour' ? HOUR_MS : DAY_MS
  const starts = new Map<number, number>()
  for (let at = Math.floor(fromMs / stepMs) * stepMs; at < toMs; at += stepMs) starts.set(at, at)
  return { ...ends, by, zone, stepMs, starts }
}

const MONTH = /^(19[7-9]\d|2\d{3})-(0[1-9]|1[0-2])$/

/** The first moment of a month and of the next one, ms since 1970; null if the text is not `YYYY-MM`. */
export function monthRange(text: string): { fromMs: number; toMs: number } | null {
  const [, year, month] = MONTH.exec(text) ?? []
  if (year === undefined || month === undefined) return null
  const [at, next] = [Number(month) - 1, Number(month)]
  return { fromMs: Date.UTC(Number(year), at), toMs: Date.UTC(Number(year), next) }
}

/** `2026-11` of months since 1970. */
export function monthText(month: number): string {
  return new Date(Date.UTC(1970, month)).toISOString().slice(0, 7)
}

function badRange(param: string, message: string): GatewayError {
  return new GatewayError('malformed_request', message, { param })
}
