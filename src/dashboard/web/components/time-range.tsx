/** The time range of a view. It is kept in the address. */
import { useMemo } from 'react'
import { DAY_MS, HOUR_MS } from '../format/time-buckets.js'
import { setQuery, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'

const PRESETS = [
  { value: '24h', label: '24 h', spanMs: DAY_MS, by: 'hour' },
  { value: '7d', label: '7 d', spanMs: 7 * DAY_MS, by: 'hour' },
  { value: '30d', label: '30 d', spanMs: 30 * DAY_MS, by: 'day' },
  { value: '90d', label: '90 d', spanMs: 90 * DAY_MS, by: 'day' },
] as const
const HOURS_REACH_MS = 31 * DAY_MS
const DATE = /^\d{4}-\d\d-\d\d$/

/** A range of whole hours or days. */
export interface Range {
  readonly fromMs: number
  readonly toMs: number
  readonly by: 'hour' | 'day'
  /** Its last hour or day is the current one. */
  readonly isLive: boolean
  /** As a text: `last 24 h`, `1 Nov to 12 Nov`. */
  readonly words: string
  readonly preset: string
}

/** The range of the address; `usual` if it has none. */
export function useRange(usual: '24h' | '7d' | '30d' = '24h'): Range {
  const { query } = useLocation()
  const now = useNow()
  // The end changes once per hour, so that queries stay the same within an hour.
  const hour = Math.floor(now / HOUR_MS)
  const [preset, by, from, to] = ['range', 'by', 'from', 'to'].map((name) => query.get(name))
  return useMemo(() => {
    const custom = customRange(from ?? null, to ?? null, by ?? null)
    if (custom !== null) return { ...custom, isLive: custom.toMs > hour * HOUR_MS }
    const chosen =
      PRESETS.find(({ value }) => value === preset) ??
      PRESETS.find(({ value }) => value === usual) ??
      PRESETS[0]
    const unit = unitOf(by ?? null, chosen.spanMs) ?? chosen.by
    const bucketMs = unit === 'hour' ? HOUR_MS : DAY_MS
    const toMs = (Math.floor((hour * HOUR_MS) / bucketMs) + 1) * bucketMs
    const words = `last ${chosen.label}`
    return {
      fromMs: toMs - chosen.spanMs,
      toMs,
      by: unit,
      isLive: true,
      words,
      preset: chosen.value,
    }
  }, [preset, by, from, to, hour, usual])
}

function unitOf(by: string | null, spanMs: number): 'hour' | 'day' | null {
  if (by === 'day') return 'day'
  return by === 'hour' && spanMs <= HOURS_REACH_MS ? 'hour' : null
}

function customRange(
  from: string | null,
  to: string | null,
  by: string | null,
): Omit<Range, 'isLive'> | null {
  if (from === null || to === null || !DATE.test(from) || !DATE.test(to)) return null
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to) + DAY_MS]
  if (!(fromMs < toMs)) return null
  const unit = unitOf(by, toMs - fromMs) ?? (toMs - fromMs <= 3 * DAY_MS ? 'hour' : 'day')
  return { fromMs, toMs, by: unit, words: `${from} to ${to}, UTC`, preset: 'custom' }
}

/** The control of the range. `withUnit` adds a choice of hours or days. */
export function RangePicker({
  range,
  withUnit = false,
}: {
  readonly range: Range
  readonly withUnit?: boolean
}) {
  const choose = (value: string): void => {
    if (value === 'custom') {
      const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
      setQuery({ range: null, from: day(range.fromMs), to: day(range.toMs - 1), by: null })
    } else setQuery({ range: value, from: null, to: null, by: null })
  }
  return (
    <>
      <select
        className="filter set"
        aria-label="Time range"
        value={range.preset}
        onChange={(event) => choose(event.target.value)}
      >
        {PRESETS.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
        <option value="custom">From … to …</option>
      </select>
      {range.preset === 'custom' ? <Days range={range} /> : null}
      {withUnit && range.toMs - range.fromMs <= HOURS_REACH_MS ? (
        <select
          className="filter"
          aria-label="Per hour or day"
          value={range.by}
          onChange={(event) => setQuery({ by: event.target.value })}
        >
          <option value="hour">per hour</option>
          <option value="day">per day</option>
        </select>
      ) : null}
    </>
  )
}

function Days({ range }: { readonly range: Range }) {
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  return (
    <>
      <input
        type="date"
        className="filter"
        aria-label="From, UTC"
        value={day(range.fromMs)}
        max={day(range.toMs - 1)}
        onChange={(event) => setQuery({ from: event.target.value }, { replace: true })}
      />
      <input
        type="date"
        className="filter"
        aria-label="To, UTC"
        value={day(range.toMs - 1)}
        min={day(range.fromMs)}
        onChange={(event) => setQuery({ to: event.target.value }, { replace: true })}
      />
    </>
  )
}
