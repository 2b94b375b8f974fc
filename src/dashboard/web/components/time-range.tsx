/**
 * The time range of a view and the zone of its days. Both are kept in the address. A range that ends now is
 * asked by its name, so that it ends when the server replies.
 */
import { useMemo } from 'react'
import type { UsageReply } from '../../../control/dashboard/schema/schema.js'
import type { Query } from '../api/client.js'
import { DAY_MS, HOUR_MS } from '../format/time-buckets.js'
import { setFilter, useLocation } from '../routing.js'
import { IconButton } from './button.js'
import { Filter } from './form.js'
import { useNow } from '../shell/clock.js'

const MINUTE_MS = 60_000
/** Ranges up to now. */
const SPANS = [
  { value: '15m', label: '15 min', spanMs: 15 * MINUTE_MS, by: 'minute' },
  { value: '1h', label: '1 h', spanMs: HOUR_MS, by: 'minute' },
  { value: '6h', label: '6 h', spanMs: 6 * HOUR_MS, by: 'minute' },
  { value: '24h', label: '24 h', spanMs: DAY_MS, by: 'hour' },
  { value: '7d', label: '7 d', spanMs: 7 * DAY_MS, by: 'hour' },
  { value: '30d', label: '30 d', spanMs: 30 * DAY_MS, by: 'day' },
  { value: '90d', label: '90 d', spanMs: 90 * DAY_MS, by: 'day' },
] as const
/** Days and months of the calendar. */
const CALENDAR = [
  { value: 'yesterday', label: 'Yesterday' },
  { value: 'month', label: 'This month' },
  { value: 'last-month', label: 'Last month' },
] as const
/** Those with a button of their own, and the others. */
const [BUTTONS, LONGER] = [SPANS.slice(0, 6), SPANS.slice(6)]
const UNITS = [
  { value: 'minute', label: 'per minute' },
  { value: 'hour', label: 'per hour' },
  { value: 'day', label: 'per day' },
]
const MINUTES_REACH_MS = 6 * HOUR_MS
const HOURS_REACH_MS = 31 * DAY_MS
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d)?$/

/** The unit of charts. */
type Unit = UsageReply['by']

/** A range of time. */
export interface Range {
  /** The query for the server: the same one until the range is changed. */
  readonly query: Query
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

function localClock(): Clock {
  return {
    zone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    at: (year, month, day, hour = 0, minute = 0) => new Date(year, month, day, hour, minute).getTime(),
    parts: (ms) => {
      const date = new Date(ms)
      return [date.getFullYear(), date.getMonth(), date.getDate()]
    },
  }
}

function clockOf(zone: string | null): Clock {
  return zone === 'UTC' ? UTC : localClock()
}

/** The range of the address; `usual` if it has none. */
export function useRange(usual: '1h' | '24h' | '7d' | '30d' = '24h'): Range {
  const { query } = useLocation()
  const now = useNow()
  // Once per minute is enough for what is shown without a reply.
  const minute = Math.floor(now / MINUTE_MS)
  const names = ['range', 'by', 'from', 'to', 'zone'] as const
  const [preset, by, from, to, zone] = names.map((name) => query.get(name))
  return useMemo(() => {
    const clock = clockOf(zone ?? null)
    const range =
      customRange(clock, from ?? null, to ?? null) ??
      calendarRange(clock, preset ?? '', minute * MINUTE_MS) ??
      spanRange(clock, SPANS.find(({ value }) => value === preset)?.value ?? usual, minute)
    const { fromMs, toMs } = range
    const unit = unitOf(by ?? null, toMs - fromMs) ?? range.by
    const isLive = toMs > minute * MINUTE_MS
    const times = range.rolling === null ? { fromMs, toMs } : { range: range.rolling }
    return {
      ...{ ...range, by: unit, zone: clock.zone, isLive },
      query: { ...times, by: unit, zone: clock.zone },
      everyMs: isLive ? reloadMs(toMs - fromMs) : undefined,
    }
  }, [preset, by, from, to, zone, minute, usual])
}

/** A short range moves on quickly. */
function reloadMs(spanMs: number): number {
  if (spanMs <= 6 * HOUR_MS) return 5_000
  return spanMs <= DAY_MS ? 30_000 : 5 * MINUTE_MS
}

interface PartOfRange extends Pick<Range, 'fromMs' | 'toMs' | 'by' | 'words' | 'preset'> {
  /** Its name if it ends now. */
  readonly rolling: (typeof SPANS)[number]['value'] | null
}

function spanRange(clock: Clock, value: string, minute: number): PartOfRange {
  const chosen = SPANS.find((span) => span.value === value) ?? SPANS[3]
  const { by, spanMs, label } = chosen
  const toMs = (minute + 1) * MINUTE_MS
  const words = `last ${label}, ${clock.zone}`
  return { fromMs: toMs - spanMs, toMs, by, words, preset: chosen.value, rolling: chosen.value }
}

function calendarRange(clock: Clock, preset: string, nowMs: number): PartOfRange | null {
  const chosen = CALENDAR.find(({ value }) => value === preset)
  if (chosen === undefined) return null
  const [year, month, day] = clock.parts(nowMs)
  const words = `${chosen.label.toLowerCase()}, ${clock.zone}`
  const of = (fromMs: number, toMs: number, by: Range['by']): PartOfRange => {
    return { fromMs, toMs, by, words, preset, rolling: null }
  }
  if (preset === 'yesterday') {
    return of(clock.at(year, month, day - 1), clock.at(year, month, day), 'hour')
  }
  const first = preset === 'month' ? month : month - 1
  return of(clock.at(year, first, 1), clock.at(year, first + 1, 1), 'day')
}

function unitOf(by: string | null, spanMs: number): Unit | null {
  if (by === 'day') return 'day'
  if (by === 'minute' && spanMs <= MINUTES_REACH_MS) return 'minute'
  return by === 'hour' && spanMs <= HOURS_REACH_MS ? 'hour' : null
}

/** A time of the address: a date, or a date and a time. A date that ends a range includes its day. */
function timeOf(clock: Clock, text: string, isEnd: boolean): number {
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = text.split(/[-T:]/).map(Number)
  const isDay = !text.includes('T')
  return clock.at(year, month - 1, isDay && isEnd ? day + 1 : day, hour, minute)
}

function customRange(clock: Clock, from: string | null, to: string | null): PartOfRange | null {
  if (from === null || to === null || !TIME.test(from) || !TIME.test(to)) return null
  const [fromMs, toMs] = [timeOf(clock, from, false), timeOf(clock, to, true)]
  if (!(fromMs < toMs)) return null
  const spanMs = toMs - fromMs
  const by = spanMs <= MINUTES_REACH_MS ? 'minute' : spanMs <= 3 * DAY_MS ? 'hour' : 'day'
  const words = `${from.replace('T', ' ')} to ${to.replace('T', ' ')}, ${clock.zone}`
  return { fromMs, toMs, by, words, preset: 'custom', rolling: null }
}

interface PickerProps {
  readonly range: Range
  /** Adds a choice of hours or days. */
  readonly withUnit?: boolean
}

/** The control of the range and its zone. */
export function RangePicker({ range, withUnit = false }: PickerProps) {
  const choose = (value: string): void => {
    if (value === 'custom') {
      const [from, to] = [fieldTime(range, range.fromMs), fieldTime(range, range.toMs)]
      setFilter({ range: null, from, to, by: null })
    } else setFilter({ range: value, from: null, to: null, by: null })
  }
  const local = localClock().zone
  const isShort = BUTTONS.some(({ value }) => value === range.preset)
  return (
    <>
      <span className="switch" role="group" aria-label="Time range">
        {BUTTONS.map(({ value, label }) => (
          <button
            key={value}
            type="button"
            aria-pressed={range.preset === value}
            onClick={() => choose(value)}
          >
            {label}
          </button>
        ))}
      </span>
      <Filter
        label="More ranges"
        all="More …"
        value={isShort ? '' : range.preset}
        options={[...CALENDAR, ...LONGER, { value: 'custom', label: 'From … to …' }]}
        onChange={(value) => choose(value === '' ? '24h' : value)}
      />
      {range.preset === 'custom' ? <Times range={range} /> : null}
      {local === 'UTC' ? null : (
        <Filter
          label="Time zone"
          all={local}
          value={range.zone === 'UTC' ? 'UTC' : ''}
          options={[{ value: 'UTC', label: 'UTC' }]}
          onChange={(zone) => setFilter({ zone })}
        />
      )}
      {withUnit && range.toMs - range.fromMs <= HOURS_REACH_MS ? (
        <Filter
          label="Per minute, hour or day"
          value={range.by}
          options={UNITS.filter(({ value }) => unitOf(value, range.toMs - range.fromMs) !== null)}
          onChange={(by) => setFilter({ by })}
        />
      ) : null}
    </>
  )
}

/** Chooses a part of the range, to the minute. */
export function zoomRange(range: Range, fromMs: number, toMs: number): void {
  const from = Math.floor(fromMs / MINUTE_MS) * MINUTE_MS
  const to = Math.max(Math.ceil(toMs / MINUTE_MS), from / MINUTE_MS + 1) * MINUTE_MS
  setFilter({ range: null, from: fieldTime(range, from), to: fieldTime(range, to), by: null })
}

/** Buttons for `[` and `]`: half of the range, and twice of it, around its middle. */
export function ZoomButtons({ range }: { readonly range: Range }) {
  const { fromMs, toMs } = range
  const scale = (factor: number): void => {
    const [middle, half] = [(fromMs + toMs) / 2, ((toMs - fromMs) / 2) * factor]
    const end = Math.min(middle + half, Date.now())
    zoomRange(range, Math.max(end - 2 * half, 0), end)
  }
  return (
    <>
      <IconButton
        icon="zoomIn"
        label="Half of the range"
        data-key="["
        aria-keyshortcuts="["
        onClick={() => scale(0.5)}
      />
      <IconButton
        icon="zoomOut"
        label="Twice the range"
        data-key="]"
        aria-keyshortcuts="]"
        onClick={() => scale(2)}
      />
    </>
  )
}

/** `2026-11-12T14:00` in the zone of the range. */
function fieldTime({ zone }: Range, ms: number): string {
  const zoneMs = zone === 'UTC' ? 0 : new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - zoneMs).toISOString().slice(0, 16)
}

function Times({ range }: { readonly range: Range }) {
  const field = (name: 'from' | 'to', ms: number) => (
    <input
      type="datetime-local"
      step={60}
      className="filter"
      aria-label={`${name === 'from' ? 'From' : 'To'}, ${range.zone}`}
      defaultValue={fieldTime(range, ms)}
      onChange={(event) => {
        if (event.target.value !== '') setFilter({ [name]: event.target.value }, { replace: true })
      }}
    />
  )
  return (
    <>
      {field('from', range.fromMs)}
      {field('to', range.toMs)}
    </>
  )
}
