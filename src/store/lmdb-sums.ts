/**
 * Putting sums into the embedded engine's ledger that another ledger has added up.
 */
import type { UsageSum } from './ledger.js'
import { Counts } from './lmdb-counts.js'
import type { LedgerFile } from './lmdb-ledger-file.js'

/** Put in one step; others may come in between. */
const PUT_AT_ONCE = 128

/** See `Ledger.putSums`. The time of a key's last use is kept with the sums that it falls into. */
export async function putSums(
  file: LedgerFile,
  by: 'hour' | 'day',
  sums: readonly UsageSum[],
  lastUse: ReadonlyMap<string, number>,
): Promise<void> {
  // What is counted later would come on top.
  await file.count()
  for (let from = 0; from < sums.length; from += PUT_AT_ONCE) {
    await file.change('putting sums', (tables) => {
      const counts = new Counts(tables)
      for (const sum of sums.slice(from, from + PUT_AT_ONCE)) {
        counts.put(by, sum, lastUse.get(sum.keyId) ?? 0)
      }
      counts.write()
    })
  }
}
