/**
 * Writes the sums of another ledger, for migration.
 */
import type { UsageSum } from '../../ledger.js'
import type { LedgerKeys } from './key-names.js'
import { loadScript, type Argument } from '../connection/script.js'
import { groupBy } from '../group-by.js'
import type { RedisLink } from '../connection/link.js'
import { numberedCounters } from '../../records/count-usage.js'

/** Sums written by one script; each has two dozen counters. */
const PUT_AT_ONCE = 50

const PUT_SUMS = loadScript('ledger/put-sums')

const PUT_USES = loadScript('ledger/put-last-use')

/** See `Ledger.putSums`. */
export async function putSums(
  link: RedisLink,
  names: LedgerKeys,
  by: 'hour' | 'day',
  sums: readonly UsageSum[],
  lastUse: ReadonlyMap<string, number>,
): Promise<void> {
  const what = 'putting sums'
  const buckets = groupBy(sums, ({ startMs, accountId }) => `${startMs} ${accountId}`)
  for (const bucket of buckets.values()) {
    for (let from = 0; from < bucket.length; from += PUT_AT_ONCE) {
      const some = bucket.slice(from, from + PUT_AT_ONCE)
      const [first] = some
      if (first === undefined) continue
      const { accountId, startMs } = first
      const keys = [names.sum(accountId, by, startMs), names.buckets(accountId, by)]
      await link.run(what, PUT_SUMS, keys, [startMs, ...some.flatMap(countersOf)])
    }
  }
  const [first] = sums
  if (first === undefined || lastUse.size === 0) return
  const uses = Array.from(lastUse).flat()
  await link.run(what, PUT_USES, [names.lastUse(first.accountId)], uses)
}

function countersOf(sum: UsageSum): Argument[] {
  const prefix = `${sum.keyId}\0${sum.model}\0`
  return numberedCounters(sum).flatMap(([index, count]) => [`${prefix}${index}`, count])
}
