/**
 * How the embedded engine writes a reservation down: a line of JSON with a version, `[1,…]`, and
 * behind it the text of the row that stands for the request should nobody come back to it.
 * Knows no table.
 */
import type { Hold } from './lmdb-limits.js'

/** What is kept of an admission until it is settled. */
export interface Reservation {
  readonly untilMs: number
  readonly holds: readonly Hold[]
  /** As `writeRow` writes it. */
  readonly row: string
}

/** The version that this code writes and reads. */
const VERSION = 1

/** The text of a reservation. */
export function writeReservation({ untilMs, holds, row }: Reservation): string {
  return `${JSON.stringify([VERSION, untilMs, holds])}\n${row}`
}

/** Throws an Error that says what is damaged. */
export function readReservation(text: string): Reservation {
  const end = text.indexOf('\n')
  const head = parsed(text.slice(0, Math.max(0, end)))
  if (!isArray(head)) throw new Error('not a JSON array')
  const [version, untilMs, holds] = head
  if (version !== VERSION) throw new Error(`its version is not ${VERSION}`)
  if (typeof untilMs !== 'number') throw new Error('its end is not a time')
  if (!isArray(holds) || !holds.every(isHold)) throw new Error('what it holds is unknown')
  return { untilMs, holds, row: text.slice(end + 1) }
}

/** When a reservation runs out, without reading the rest; long ago where that cannot be told. */
export function endOfLease(text: string): number {
  return Number(LEADING_END.exec(text)?.[1] ?? 0)
}

const LEADING_END = /^\[1,(\d+(?:\.\d+)?),/

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('not JSON')
  }
}

function isHold(value: unknown): value is Hold {
  if (!isArray(value)) return false
  const [kind, subject, cost, last] = value
  if (typeof subject !== 'string') return false
  if (kind === 'concurrent') return true
  if (kind !== 'tokens' && kind !== 'usd_day' && kind !== 'usd_month') return false
  return typeof cost === 'number' && typeof last === 'number'
}

function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
