/**
 * Putting sums into the embedded engine's ledger that another ledger has added up.
 */
import type { UsageSum } from './ledger.js'
import { quietly } from './lmdb-failure.js'
import type { LedgerFile } from './lmdb-ledger-file.js'
import { BUCKET_MS, sumName } from './lmdb-ledger-tables.js'
import { lastAtMs, readSum, shownCounters, writeSum } from './usage-sum.js'

/** Put in one step; others may come in between. */
const PUT_AT_ONCE = 128

/** See `Ledger.putSums`. The time of a key's last use is kept with the sums that it falls into. */
export async function putSums(
  file: LedgerFile,
  by: 'hour' | 'day',
  sums: readonly UsageSum[],
  lastUse: ReadonlyMap<string, number>,
): Promise<void> {
  for (let from = 0; from < sums.length; from += PUT_AT_ONCE) {
    await file.change('putting sums', (tables) => {
      for (const sum of sums.slice(from, from + PUT_AT_ONCE)) {
        const name = sumName(by, sum.startMs, sum)
        const usedMs = lastUse.get(sum.keyId) ?? 0
        const isHere = usedMs >= sum.startMs && usedMs < sum.startMs + BUCKET_MS[by]
        const old = tables.sums.get(name)
        const oldMs = old === undefined ? 0 : lastAtMs(readSum(old))
        const counters = shownCounters(sum, Math.max(oldMs, isHere ? usedMs : 0))
        quietly(tables.sums.put(name, writeSum(counters)))
      }
    })
  }
}
