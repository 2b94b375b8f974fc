/**
 * Sums by property of entries that gateways of former versions settled, whose sums are without properties. A
 * query, or pruning, first adds the entries since the last one, in batches. `mark` is the last entry of the
 * account that they include; a script adds a batch only if no other process has moved the mark.
 */
import { addNanoUsd, type NanoUsd } from '../../../base/nano-usd.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { countersOf, propertiesOf } from '../../records/count-usage.js'
import { readEntry } from '../../records/entry-text.js'
import { listOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { BUCKET_MS, LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'

/** Entries added by one script. */
const BATCH = 100
const WHAT = 'adding sums by property'

/** Adds them on one connection. */
export class RedisPropertySums {
  private readonly link: RedisConnection
  private readonly names: LedgerKeys

  constructor(link: RedisConnection, names: LedgerKeys) {
    this.link = link
    this.names = names
  }

  /** Adds every entry of the account that was settled before the call; resolves to the last one. */
  async catchUp(accountId: string): Promise<string> {
    const mark = this.names.propertyMark(accountId)
    for (;;) {
      const marked = await this.link.send(WHAT, 'get', [mark])
      const before = typeof marked === 'string' ? marked : ''
      const range = [this.names.formerEntries(accountId), after(before), '+', 'COUNT', BATCH]
      const found = listOf(await this.link.send(WHAT, 'xrange', range)).map(listOf)
      const last = found.at(-1)
      if (last === undefined) return before
      const entries = found.flatMap(([, fields]) => entryIn(listOf(fields)[1]))
      await this.add(accountId, { entries, before, next: String(last[0]) })
      if (found.length < BATCH) return String(last[0])
    }
  }

  private async add(
    accountId: string,
    batch: { entries: readonly LedgerEntry[]; before: string; next: string },
  ): Promise<void> {
    const { names } = this
    const keys = [
      names.propertyMark(accountId),
      names.buckets(accountId, 'hour'),
      names.buckets(accountId, 'day'),
    ]
    const buckets: (string | number)[] = []
    const counts = new Map<number, Map<string, NanoUsd>>()
    const countsOf = (by: 'hour' | 'day', atMs: number): Map<string, NanoUsd> => {
      const startMs = Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by]
      const name = names.propertySum(accountId, by, startMs)
      const known = counts.get(keys.indexOf(name) + 1)
      if (known !== undefined) return known
      buckets.push(by === 'hour' ? 2 : 3, startMs)
      const made = new Map<string, NanoUsd>()
      counts.set(keys.push(name), made)
      return made
    }
    for (const entry of batch.entries) {
      const counters = countersOf(entry)
      for (const by of ['hour', 'day'] as const) {
        const sums = countsOf(by, entry.atMs)
        for (const property of propertiesOf(entry)) {
          for (const [counter, count] of counters.entries()) {
            if (count === 0) continue
            const field = `${property}\0${entry.model}\0${counter}`
            sums.set(field, addNanoUsd(sums.get(field) ?? 0, count))
          }
        }
      }
    }
    const args = [batch.before, batch.next, buckets.length / 2, ...buckets]
    for (const [key, sums] of counts) for (const [field, count] of sums) args.push(key, field, String(count))
    await this.link.run(WHAT, LEDGER_SCRIPTS.addPropertySums, { keys, args })
  }
}

/** The first id of a stream after this one; empty: the first of all. */
export function after(id: string): string {
  const [ms, sequence] = id.split('-')
  return sequence === undefined ? '-' : `${ms}-${BigInt(sequence) + 1n}`
}

/** A damaged entry is in no sum by property. */
function entryIn(text: unknown): LedgerEntry[] {
  try {
    return [readEntry(String(text))]
  } catch {
    return []
  }
}
