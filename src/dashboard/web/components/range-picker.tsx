/** The control of a time range and its zone, and the buttons that halve and double the range. */
import { DAY_MS, inputTime } from '../format/time.js'
import { setFilter } from '../routing.js'
import { IconButton } from './button.js'
import { CalendarButton, DateInput } from './date-picker.js'
import { Filter } from './form.js'
import { Switch } from './switch.js'
import { CALENDAR, localClock, setRange, SPANS, unitOf, zoomRange, type Range } from './time-range.js'

/** Those with a button of their own, and the others. */
const [BUTTONS, LONGER] = [SPANS.slice(0, 6), SPANS.slice(6)]
const UNITS = [
  { value: 'minute', label: 'per minute' },
  { value: 'hour', label: 'per hour' },
  { value: 'day', label: 'per day' },
]

interface PickerProps {
  /** Null: any time, where the page has that. */
  readonly range: Range | null
  /** Adds the choice of any time. */
  readonly hasAny?: boolean
  /** Adds a choice of hours or days. */
  readonly withUnit?: boolean
}

/** The control of the range and its zone. */
export function RangePicker({ range, hasAny = false, withUnit = false }: PickerProps) {
  const local = localClock().zone
  const zone = range?.zone ?? local
  const choose = (value: string): void => {
    if (value !== 'custom') return setRange({ range: value === 'any' ? null : value })
    const toMs = range?.toMs ?? Date.now()
    setRange({ from: inputTime(range?.fromMs ?? toMs - DAY_MS, zone), to: inputTime(toMs, zone) })
  }
  const isShort = BUTTONS.some(({ value }) => value === range?.preset)
  const spanMs = range === null ? 0 : range.toMs - range.fromMs
  const units = UNITS.filter(({ value }) => unitOf(value, spanMs) !== null)
  return (
    <>
      <Switch label="Time range" options={BUTTONS} value={range?.preset ?? null} onChange={choose} />
      <Filter
        label="More ranges"
        {...(isShort ? { all: 'More …' } : {})}
        value={isShort ? '' : (range?.preset ?? 'any')}
        options={[
          ...(hasAny ? [{ value: 'any', label: 'Any time' }] : []),
          ...[...CALENDAR, ...LONGER, { value: 'custom', label: 'From … to …' }],
        ]}
        onChange={(value) => (value === '' ? undefined : choose(value))}
      />
      {range?.preset === 'custom' ? <Times range={range} /> : null}
      {local === 'UTC' || range === null ? null : (
        <Filter
          label="Time zone"
          all={local}
          value={zone === 'UTC' ? 'UTC' : ''}
          options={[{ value: 'UTC', label: 'UTC' }]}
          onChange={(next) => setFilter({ zone: next })}
        />
      )}
      {withUnit && range !== null && units.length > 1 ? (
        <Filter
          label="Per minute, hour or day"
          value={range.by}
          options={units}
          onChange={(by) => setFilter({ by })}
        />
      ) : null}
    </>
  )
}

/** The two ends of a custom range, with one calendar for both. */
function Times({ range: { zone, fromMs, toMs } }: { readonly range: Range }) {
  const [from, to] = [inputTime(fromMs, zone), inputTime(toMs, zone)]
  const set = (next: readonly [from: string, to: string]): void => {
    if (next[0] < next[1]) setRange({ from: next[0], to: next[1] }, { replace: true })
  }
  return (
    <span className="row line gap-4">
      <DateInput
        className="filter"
        aria-label={`From, ${zone}`}
        value={from}
        onChange={(next) => set([next, to])}
      />
      –
      <DateInput
        className="filter"
        aria-label={`To, ${zone}`}
        value={to}
        onChange={(next) => set([from, next])}
      />
      <CalendarButton
        label="Choose the first and the last day"
        days={[from.slice(0, 10), to.slice(0, 10)]}
        onPick={(first, last) => set([`${first}T00:00`, endOf(last)])}
      />
    </span>
  )
}

/** The time at which a day ends: the start of the next one. */
function endOf(day: string): string {
  return new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 16)
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
