/**
 * What a settlement changes if the reservation of its request has expired: the ledger then has an entry with
 * the maximum that the request may have used, and gets the usage instead.
 */
import { timeOfRequestId } from '../../http/request-id.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { isWindowed, windowAmounts, WINDOWS } from '../limit-arithmetic.js'
import type { BudgetDemand, Demand, QuotaDemand } from '../ledger.js'
import { chargedNanoUsd, chargedTokens } from './count-usage.js'

const UUID_LENGTH = 36

/**
 * The entry that replaces the former entry of a request that was taken for lost; null: the former one stays.
 * It keeps the time, account and key of the former one, by which lists and sums already have the request.
 */
export function correctionOf(former: LedgerEntry, entry: LedgerEntry): LedgerEntry | null {
  if (former.outcome !== 'lost' || entry.outcome === 'lost') return null
  const { atMs, accountId, accountPath, keyId } = former
  return { ...entry, atMs, accountId, accountPath, keyId }
}

/** When a request began, or the one that made a batch; the time of its entry if its id does not tell. */
export function beganAtMs({ requestId, atMs }: Pick<LedgerEntry, 'requestId' | 'atMs'>): number {
  return Math.min(atMs, timeOfRequestId(requestId.slice(0, UUID_LENGTH)) ?? atMs)
}

/** A budget or quota, and by how much more it is used since an entry was corrected. */
export interface CorrectedUse {
  readonly demand: BudgetDemand | QuotaDemand
  readonly amount: number
}

/** What changes in budgets and quotas by a correction; what is unknown was counted as reserved. */
export function correctedUses(
  former: LedgerEntry,
  entry: LedgerEntry,
  demands: readonly Demand[],
): CorrectedUse[] {
  return demands.flatMap((demand): CorrectedUse[] => {
    if (!isWindowed(demand)) return []
    const { counts } = WINDOWS[demand.kind]
    if (counts !== 'usd' && counts !== 'tokens') return []
    const used = counts === 'usd' ? chargedNanoUsd : chargedTokens
    const { cost } = windowAmounts(demand)
    const amount = (used(entry) ?? cost) - (used(former) ?? cost)
    return amount === 0 ? [] : [{ demand, amount }]
  })
}
