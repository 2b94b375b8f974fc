/**
 * The retention of ledger entries and of their sums by hour and day; the store's `delete-old-usage.ts`
 * removes older ones.
 */
import type { LedgerConfig } from '../config/config.js'
import type { Retention } from '../store/ledger.js'

const DAY_MS = 86_400_000

/** The times before which entries and sums are removed. */
export function retentionAt(
  nowMs: number,
  { keepDays, hoursDays, daysDays }: Pick<LedgerConfig, 'keepDays' | 'hoursDays' | 'daysDays'>,
): Retention {
  return {
    entriesBeforeMs: nowMs - keepDays * DAY_MS,
    hoursBeforeMs: nowMs - hoursDays * DAY_MS,
    daysBeforeMs: nowMs - daysDays * DAY_MS,
  }
}
