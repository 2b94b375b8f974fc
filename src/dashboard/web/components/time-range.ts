/**
 * The time range of a view and the zone of its days. Both are kept in the address. A range that ends now is
 * asked by its name, so that it ends when the server replies.
 */
import { useMemo } from 'react'
import type { UsageReply } from '../../../control/dashboard/schema/schema.js'
import type { Query } from '../api/client.js'
import { DAY_MS, HOUR_MS, inputTime, MINUTE_MS } from '../format/time.js'
import { setFilter, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'

/** Ranges up to now. */
export const SPANS = [
  { value: '15m', label: '15 min', spanMs: 15 * MINUTE_MS, by: 'minute' },
  { value: '1h', label: '1 h', spanMs: HOUR_MS, by: 'minute' },
  { value: '6h', label: '6 h', spanMs: 6 * HOUR_MS, by: 'minute' },
  { value: '24h', label: '24 h', spanMs: DAY_MS, by: 'hour' },
  { value: '7d', label: '7 d', spanMs: 7 * DAY_MS, by: 'hour' },
  { value: '30d', label: '30 d', spanMs: 30 * DAY_MS, by: 'day' },
  { value: '90d', label: '90 d', spanMs: 90 * DAY_MS, by: 'day' },
] as const
/** Days and months of the calendar. */
export const CALENDAR = [
  { value: 'yesterday', label: 'Yesterday' },
  { value: 'month', label: 'This month' },
  { value: 'last-month', label: 'Last month' },
] as const
const MINUTES_REACH_MS = 6 * HOUR_MS
const HOURS_REACH_MS = 31 * DAY_MS
/** A time of the address: a date, a date and a time, or ms since 1970. */
const TIME = /^(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d)?|\d{1,13})$/
/** Former names of parameters, which saved views and links have. */
const FORMER = { range: 'since', from: 'fromMs', to: 'toMs' } as const
/** The parameters of the address that set a range. */
export const RANGE_NAMES = ['range', 'from', 'to', ...Object.values(FORMER)] as const

/** The unit of charts. */
type Unit = UsageReply['by']

/** A range of time. */
export interface Range {
  /** The query of sums for the server: the same one until the range is changed. */
  readonly query: Query
  /** The query of single requests: `range`, or its times. A range without an end has no `toMs`. */
  readonly times: Query
  /** By the clock of the browser; the reply has the exact times. */
  readonly fromMs: number
  readonly toMs: number
  readonly by: Unit
  /** It ends now. */
  readonly isLive: boolean
  /** The time between two reloads; undefined: it is over. */
  readonly everyMs: number | undefined
  /** As a text: `last 24 h`, `1 Nov, 00:00 to 12 Nov, 00:00`, with the zone. */
  readonly words: string
  readonly preset: string
  /** The zone of its days: the viewer's, or `UTC`. */
  readonly zone: string
}

/** A clock in the viewer's zone or in UTC. */
interface Clock {
  readonly zone: string
  /** The time of a date and hour there; parts beyond their range carry over. */
  at(year: number, month: number, day: number, hour?: number, minute?: number): number
  parts(ms: number): readonly [year: number, month: number, day: number]
}

const UTC: Clock = {
  zone: 'UTC',
  at: (...parts) => Date.UTC(...parts),
  parts: (ms) => {
    const date = new Date(ms)
    return [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  },
}

/** The clock of the viewer's zone. */
export function localClock(): Clock {
  return {
    zone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    at: (year, month, day, hour = 0, minute = 0) => new Date(year, month, day, hour, minute).getTime(),
    parts: (ms) => {
      const date = new Date(ms)
      return [date.getFullYear(), date.getMonth(), date.getDate()]
    },
  }
}

/** The range of the address; `usual` if it has none. */
export function useRange(usual: '1h' | '24h' | '7d' | '30d' = '24h'): Range {
  const { query } = useLocation()
  const now = useMinute()
  return useMemo(() => {
    const asked = askedIn(query)
    const span = SPANS.find(({ value }) => value === usual) ?? SPANS[3]
    return rangeIn(asked, now) ?? rangeOf(asked, spanRange(asked, span, now), now)
  }, [query, now, usual])
}

/** The range of the address; null if it has none. */
export function useRangeOrAny(): Range | null {
  const { query } = useLocation()
  const now = useMinute()
  return useMemo(() => rangeIn(askedIn(query), now), [query, now])
}

/** Changes the range of the address. */
export function setRange(
  changes: { readonly range?: string | null; readonly from?: string; readonly to?: string },
  options: { readonly replace?: boolean } = {},
): void {
  setFilter({ ...Object.fromEntries(RANGE_NAMES.map((name) => [name, null])), by: null, ...changes }, options)
}

/** The start of this minute: often enough for what is shown without a reply. */
function useMinute(): number {
  return Math.floor(useNow() / MINUTE_MS) * MINUTE_MS
}

/** The range of an address, as text. */
interface Asked extends Readonly<Record<keyof typeof FORMER | 'by', string | null>> {
  readonly clock: Clock
}

function askedIn(query: URLSearchParams): Asked {
  const of = (name: keyof typeof FORMER) => query.get(name) ?? query.get(FORMER[name])
  const clock = query.get('zone') === 'UTC' ? UTC : localClock()
  return { range: of('range'), from: of('from'), to: of('to'), by: query.get('by'), clock }
}

interface PartOfRange extends Pick<Range, 'fromMs' | 'toMs' | 'by' | 'words' | 'preset'> {
  readonly times: Query
}

function rangeIn(asked: Asked, nowMs: number): Range | null {
  const span = SPANS.find(({ value }) => value === asked.range)
  const calendar = customRange(asked, nowMs) ?? calendarRange(asked, nowMs)
  const part = calendar ?? (span === undefined ? null : spanRange(asked, span, nowMs))
  return part === null ? null : rangeOf(asked, part, nowMs)
}

function rangeOf({ by, clock: { zone } }: Asked, part: PartOfRange, nowMs: number): Range {
  const { fromMs, toMs, times } = part
  const unit = unitOf(by, toMs - fromMs) ?? part.by
  const isLive = toMs > nowMs
  const whole = times['range'] === undefined ? { fromMs, toMs } : times
  return {
    ...{ ...part, by: unit, zone, isLive },
    query: { ...whole, by: unit, zone },
    everyMs: isLive ? reloadMs(toMs - fromMs) : undefined,
  }
}

/** A short range moves on quickly. */
function reloadMs(spanMs: number): number {
  if (spanMs <= 6 * HOUR_MS) return 5_000
  return spanMs <= DAY_MS ? 30_000 : 5 * MINUTE_MS
}

function spanRange(
  { clock }: Asked,
  { by, spanMs, label, value }: (typeof SPANS)[number],
  nowMs: number,
): PartOfRange {
  const toMs = nowMs + MINUTE_MS
  const words = `last ${label}, ${clock.zone}`
  return { fromMs: toMs - spanMs, toMs, by, words, preset: value, times: { range: value } }
}

function calendarRange({ clock, range: preset }: Asked, nowMs: number): PartOfRange | null {
  const chosen = CALENDAR.find(({ value }) => value === preset)
  if (chosen === undefined) return null
  const [year, month, day] = clock.parts(nowMs)
  const words = `${chosen.label.toLowerCase()}, ${clock.zone}`
  const of = (fromMs: number, toMs: number, by: Range['by']): PartOfRange => {
    return { fromMs, toMs, by, words, preset: chosen.value, times: { fromMs, toMs } }
  }
  if (chosen.value === 'yesterday') {
    return of(clock.at(year, month, day - 1), clock.at(year, month, day), 'hour')
  }
  const first = chosen.value === 'month' ? month : month - 1
  return of(clock.at(year, first, 1), clock.at(year, first + 1, 1), 'day')
}

/** The unit of an address, if charts of such a length have it. */
export function unitOf(by: string | null, spanMs: number): Unit | null {
  if (by === 'day') return 'day'
  if (by === 'minute' && spanMs <= MINUTES_REACH_MS) return 'minute'
  return by === 'hour' && spanMs <= HOURS_REACH_MS ? 'hour' : null
}

/** A time of the address. A date that ends a range includes its day. */
function timeOf(clock: Clock, text: string, isEnd: boolean): number {
  if (!text.includes('-')) return Number(text)
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = text.split(/[-T:]/).map(Number)
  const isDay = !text.includes('T')
  return clock.at(year, month - 1, isDay && isEnd ? day + 1 : day, hour, minute)
}

/** Between two times of the address; without the second one it ends now. */
function customRange({ clock, from, to }: Asked, nowMs: number): PartOfRange | null {
  if (from === null || !TIME.test(from) || (to !== null && !TIME.test(to))) return null
  const fromMs = timeOf(clock, from, false)
  const toMs = to === null ? nowMs + MINUTE_MS : timeOf(clock, to, true)
  if (!(fromMs < toMs)) return null
  const spanMs = toMs - fromMs
  const by = spanMs <= MINUTES_REACH_MS ? 'minute' : spanMs <= 3 * DAY_MS ? 'hour' : 'day'
  const { zone } = clock
  const text = (time: string): string =>
    (time.includes('-') ? time : inputTime(Number(time), zone)).replace('T', ' ')
  const words = `${text(from)} to ${to === null ? 'now' : text(to)}, ${zone}`
  return { fromMs, toMs, by, words, preset: 'custom', times: to === null ? { fromMs } : { fromMs, toMs } }
}

/** Chooses a part of the range, to the minute. */
export function zoomRange({ zone }: Pick<Range, 'zone'>, fromMs: number, toMs: number): void {
  const from = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS
  const to = Math.max(Math.ceil(toMs / MINUTE_MS), from / MINUTE_MS + 1) * MINUTE_MS
  setRange({ from: inputTime(from, zone), to: inputTime(to, zone) })
}
