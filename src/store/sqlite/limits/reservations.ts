/**
 * What a reservation remembers, read back from its row.
 */
import { readEntry } from '../../records/read-entry.js'
import { intact } from '../read-records.js'
import type { Hold } from './counters.js'

/** Whether a reservation can be settled. */
export function isWhole(requestId: string, holds: unknown, entry: unknown): boolean {
  try {
    holdsIn(requestId, String(holds))
    readEntry(String(entry))
    return true
  } catch {
    return false
  }
}

/** What a reservation holds. Throws an Error that names it if it is damaged. */
export function holdsIn(requestId: string, text: string): readonly Hold[] {
  return intact(`the reservation of '${requestId}'`, () => {
    const holds: unknown = parsed(text)
    if (!Array.isArray(holds) || !holds.every(isHold)) throw new Error('what it holds is unknown')
    return holds
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('not JSON')
  }
}

function isHold(value: unknown): value is Hold {
  if (!isList(value)) return false
  const [kind, account, subject, cost, last] = value
  if (typeof account !== 'string' || typeof subject !== 'string') return false
  if (kind === 'concurrent') return true
  if (kind !== 'tokens' && kind !== 'usd_day' && kind !== 'usd_month') return false
  return typeof cost === 'number' && typeof last === 'number'
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
