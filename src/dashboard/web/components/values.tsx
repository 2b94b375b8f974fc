/** Values in tables and drawers: short, with the exact value on hover. */
import type { ReactNode } from 'react'
import { count, dollars, duration, exactCount, exactDollars, plural } from '../format/number.js'
import { ago, date, fullTime, listTime, until } from '../format/time.js'
import { useNow } from '../shell/clock.js'

interface MoneyProps {
  /** Null if the price is unknown. */
  readonly nano: number | null
  /** Requests of unknown price, which the sum excludes. */
  readonly unpriced?: number
}

/** Nano-dollars as dollars. */
export function Money({ nano, unpriced = 0 }: MoneyProps) {
  if (nano === null) return <Absent />
  const rest = unpriced === 0 ? '' : `, and ${plural(unpriced, 'request')} of unknown price`
  return (
    <span title={exactDollars(nano) + rest}>
      {dollars(nano)}
      {unpriced === 0 ? '' : '+'}
    </span>
  )
}

export function Count({ value, unit = '' }: { readonly value: number; readonly unit?: string }) {
  return <span title={`${exactCount(value)} ${unit}`.trim()}>{count(value)}</span>
}

/** A duration; a dash if it is unknown. */
export function Took({ ms }: { readonly ms: number | null }) {
  if (ms === null) return <Absent />
  return <span title={`${exactCount(ms)} ms`}>{duration(ms)}</span>
}

interface TimeProps {
  /** Null: it has not happened, or will not. */
  readonly ms: number | null
}

interface StampProps extends TimeProps {
  /** The text that is shown. */
  readonly text: (ms: number, nowMs: number) => string
}

/** A time; hover shows its distance from now, and the time with its zone. */
function Stamp({ ms, text }: StampProps) {
  const now = useNow()
  if (ms === null) return <span className="soft">never</span>
  const distance = ms > now ? until(ms, now) : ago(ms, now)
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${distance}: ${fullTime(ms)}`}>
      {text(ms, now)}
    </time>
  )
}

/** A time as an age in a sentence, `2 min ago`. */
export function Ago({ ms }: TimeProps) {
  return <Stamp ms={ms} text={ago} />
}

/** A time in a list, `26 Nov, 14:02:11`. */
export function Time({ ms }: TimeProps) {
  return <Stamp ms={ms} text={listTime} />
}

/** The date of a time. */
export function Day({ ms }: TimeProps) {
  return <Stamp ms={ms} text={date} />
}

/** Names up to this length fit. */
const LONG = 40
/** The end of a longer name, which stays: names made by programs often differ only there. */
const END = 8

/** A name that is cut where it does not fit, a long one in its middle; hover shows all of it. */
export function Name({ text, strong = false }: { readonly text: string; readonly strong?: boolean }) {
  const tone = strong ? ' strong' : ''
  if (text.length <= LONG) {
    return (
      <span className={`cut${tone}`} title={text}>
        {text}
      </span>
    )
  }
  return (
    <span className={`cut-middle${tone}`} title={text}>
      <span className="cut">{text.slice(0, -END)}</span>
      <span>{text.slice(-END)}</span>
    </span>
  )
}

/** A name with a second line below it, each cut where it does not fit. */
export function TwoLines({ first, second }: { readonly first: ReactNode; readonly second: string }) {
  return (
    <span className="two-lines">
      <span className="cut">{first}</span>
      {second === '' ? null : (
        <span className="cut soft small" title={second}>
          {second}
        </span>
      )}
    </span>
  )
}

/** An unknown value, which is not zero. */
export function Absent() {
  return (
    <span className="soft" title="Unknown">
      –
    </span>
  )
}
