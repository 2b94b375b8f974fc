/**
 * Numbers as text with at most three decimals: durations in ms to the microsecond. V8 spells a double
 * out digit by digit (0.5 µs each, and a request has eight of them); whole numbers it remembers.
 */

const THOUSANDTHS: readonly string[] = Array.from({ length: 1000 }, (_, n) =>
  n === 0 ? '' : `.${String(n).padStart(3, '0')}`.replace(/0{1,3}$/, ''),
)
/** Above this the thousandths are noise, and the product below would not be exact. */
const MAX_EXACT = 1e9

/** As JSON and HTTP headers write it: `0.042`, `17`; `null` where it is no number at all. */
export function decimal(value: number): string {
  if (Number.isInteger(value)) return String(value)
  if (!(value >= 0 && value < MAX_EXACT)) {
    return Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : 'null'
  }
  const thousandths = Math.round(value * 1000)
  const whole = Math.floor(thousandths / 1000)
  return String(whole) + (THOUSANDTHS[thousandths - whole * 1000] ?? '')
}
