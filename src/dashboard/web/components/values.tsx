/** Values in tables and drawers: short, with the exact value on hover. */
import { count, dollars, duration, exactCount, exactDollars, plural } from '../format/number.js'
import { ago, date, fullTime, listTime } from '../format/time.js'
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

/** A count. */
export function Count({ value, unit = '' }: { readonly value: number; readonly unit?: string }) {
  return <span title={`${exactCount(value)} ${unit}`.trim()}>{count(value)}</span>
}

/** A duration; a dash if it is unknown. */
export function Took({ ms }: { readonly ms: number | null }) {
  if (ms === null) return <Absent />
  return <span title={`${exactCount(ms)} ms`}>{duration(ms)}</span>
}

/** A time as an age in a sentence, `2 min ago`; hover shows the time. */
export function Ago({ ms }: { readonly ms: number | null }) {
  const now = useNow()
  if (ms === null) return <span className="soft">never</span>
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {ago(ms, now)}
    </time>
  )
}

/** A time in a list, `26 Nov, 14:02:11`; hover shows its age and its zone. */
export function Time({ ms }: { readonly ms: number | null }) {
  const now = useNow()
  if (ms === null) return <span className="soft">never</span>
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${ago(ms, now)}: ${fullTime(ms)}`}>
      {listTime(ms, now)}
    </time>
  )
}

/** The date of a time; hover shows its age and the time. */
export function Day({ ms }: { readonly ms: number }) {
  const now = useNow()
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${ago(ms, now)}: ${fullTime(ms)}`}>
      {date(ms, now)}
    </time>
  )
}

/** A name that is cut where it does not fit; hover shows all of it. */
export function Name({
  text,
  strong = false,
}: {
  readonly text: string
  readonly strong?: boolean
}) {
  return (
    <span className={strong ? 'cut cell-name' : 'cut'} title={text}>
      {text}
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
