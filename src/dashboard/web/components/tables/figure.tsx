/** Amounts, counts and times, with their exact values on hover. */
import { useNow } from '../../shell/clock.js'
import { ago, date, fullTime } from '../../format/time.js'
import { count, dollars, duration, exactCount, exactDollars, plural } from '../../format/number.js'

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

/** The age of a time. */
export function Ago({ ms }: { readonly ms: number | null }) {
  const now = useNow()
  if (ms === null) return <span className="soft">never</span>
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {ago(ms, now)}
    </time>
  )
}

/** The date of a time. */
export function Day({ ms }: { readonly ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {date(ms, Date.now())}
    </time>
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
