/** Formats values as Grafana does, for the units that the boards use. */

const SI: readonly (readonly [number, string])[] = [
  [1e9, ' G'],
  [1e6, ' M'],
  [1e3, ' K'],
]

function short(value: number, digits = 3): string {
  for (const [factor, suffix] of SI) {
    if (Math.abs(value) >= factor) return `${trimmed(value / factor, digits)}${suffix}`
  }
  return trimmed(value, digits)
}

function trimmed(value: number, digits: number): string {
  if (value === 0) return '0'
  const text = Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(digits)
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text
}

function seconds(value: number): string {
  const size = Math.abs(value)
  if (size === 0) return '0 s'
  if (size < 1e-3) return `${trimmed(value * 1e6, 3)} µs`
  if (size < 1) return `${trimmed(value * 1e3, 3)} ms`
  if (size < 120) return `${trimmed(value, 3)} s`
  if (size < 7200) return `${trimmed(value / 60, 3)} min`
  if (size < 172_800) return `${trimmed(value / 3600, 3)} h`
  return `${trimmed(value / 86_400, 3)} d`
}

/** A value in one of Grafana's units; an unknown unit is shown as a plain number. */
export function formatValue(value: number, unit: string): string {
  if (unit.startsWith('suffix:')) return `${short(value)}${unit.slice('suffix:'.length)}`
  switch (unit) {
    case 's':
      return seconds(value)
    case 'percentunit':
      return `${trimmed(value * 100, 3)} %`
    case 'currencyUSD':
      return `$${value !== 0 && Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(2)}`
    case 'reqps':
      return `${short(value)} req/s`
    case 'ops':
      return `${short(value)} ops/s`
    case 'bytes':
      return `${trimmed(value / 1_048_576, 3)} MiB`
    case 'dateTimeFromNow':
      return `${seconds(Date.now() / 1000 - value / 1000)} ago`
    default:
      return short(value)
  }
}
