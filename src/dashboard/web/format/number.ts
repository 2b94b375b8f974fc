/** Formats numbers: short in a figure, exact on hover. */

const exact = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 })

/** `12,408` up to one hundred thousand, then `3.1 M`. */
export function count(value: number): string {
  const size = Math.abs(value)
  if (size < 100_000) return exact.format(Math.round(value))
  if (size < 1_000_000) return `${short(value / 1_000)} k`
  if (size < 1_000_000_000) return `${short(value / 1_000_000)} M`
  return `${short(value / 1_000_000_000)} G`
}

function short(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 1 : 0)
}

/** All digits, with separators. */
export function exactCount(value: number): string {
  return exact.format(value)
}

const NANO = 1e9

/** Nano-dollars as dollars: two decimals from one dollar, four digits below it, `$0` for zero. */
export function dollars(nano: number): string {
  const value = nano / NANO
  if (value === 0) return '$0'
  if (Math.abs(value) >= 1) {
    return `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`
  }
  if (Math.abs(value) < 0.000_05) return '<$0.0001'
  return `$${value.toFixed(4)}`
}

/** Nano-dollars as dollars with all known digits. */
export function exactDollars(nano: number): string {
  return `$${(nano / NANO).toLocaleString('en-US', { maximumFractionDigits: 9 })}`
}

/** A price in dollars with two or more decimals: `$4.50`, `$0.0125`. */
export function price(value: number): string {
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`
}

/** `640 ms`, `1.92 s`, `2 min 4 s`; below ten milliseconds with one decimal. */
export function duration(ms: number): string {
  if (ms === 0) return '0 ms'
  if (ms < 1) return `${ms.toFixed(2)} ms`
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** A share as `0.3 %`. Values slightly above 0 are not rounded to 0. */
export function percent(share: number): string {
  if (share === 0) return '0 %'
  const value = share * 100
  if (value < 0.1) return '<0.1 %'
  return `${value.toFixed(value < 10 ? 1 : 0)} %`
}

/** `640 MB`, `1.2 GB`. */
export function bytesText(bytes: number): string {
  return bytes < 1e9 ? `${short(bytes / 1e6)} MB` : `${short(bytes / 1e9)} GB`
}

/** `keys`, `batches`. */
export function manyOf(one: string): string {
  return one.endsWith('ch') ? `${one}es` : `${one}s`
}

/** `1 key`, `4 keys`. */
export function plural(value: number, one: string, many = manyOf(one)): string {
  return `${exactCount(value)} ${value === 1 ? one : many}`
}
