/**
 * Filters and groups sums, for engines that store sums by key and model only. Pure.
 */
import type { KeyUse, SumQuery, UsageSum } from '../usage-queries.js'
import {
  addCounters,
  newSum,
  countersFromSum,
  sumFromCounters,
  type SumCounters,
} from './count-usage.js'

/** The sums that match the query, grouped as it requires. */
export function selectSums(
  sums: readonly UsageSum[],
  { accountId, keyId, model, per }: SumQuery,
): UsageSum[] {
  const found = sums.filter((sum) => {
    return (
      (keyId === undefined || sum.keyId === keyId) && (model === undefined || sum.model === model)
    )
  })
  if (per !== 'model') return found
  const groups = new Map<string, { at: UsageSum; counters: SumCounters }>()
  for (const sum of found) {
    const name = `${sum.startMs} ${sum.model}`
    const at = { ...sum, accountId: accountId ?? '', keyId: '' }
    const group = groups.get(name) ?? { at, counters: newSum() }
    addCounters(group.counters, countersFromSum(sum))
    groups.set(name, group)
  }
  return Array.from(groups.values(), ({ at, counters }) => sumFromCounters(counters, at))
}

/** The keys that cost most first; of the same cost, those with most requests. */
export function byCost(a: KeyUse, b: KeyUse): number {
  return b.costNanoUsd - a.costNanoUsd || b.requests - a.requests
}

/** What each key used. */
export function useByKey(sums: readonly UsageSum[]): KeyUse[] {
  const uses = new Map<string, KeyUse>()
  for (const { accountId, keyId, requests, costNanoUsd, unpriced } of sums) {
    const name = `${accountId} ${keyId}`
    const before = uses.get(name)
    uses.set(name, {
      accountId,
      keyId,
      requests: (before?.requests ?? 0) + requests,
      costNanoUsd: (before?.costNanoUsd ?? 0) + costNanoUsd,
      unpriced: (before?.unpriced ?? 0) + unpriced,
    })
  }
  return [...uses.values()]
}
