/** What batches have used, by their ledger entries. It is kept, because pages ask again every few seconds. */
import { Lru } from '../../base/lru.js'
import { HOUR_MS } from '../../base/time-units.js'
import { adminTurns } from '../../base/turn-queue.js'
import type { BatchHead } from '../../policy/batch-records.js'
import type { EntryPage } from '../../store/usage-queries.js'
import { endedAtMs } from '../batches.js'
import type { Services } from '../services.js'
import type * as schema from './schema/schema.js'

type Used = schema.Sent<typeof schema.batchReply>['used']
type Sources = Pick<Services, 'ledger' | 'now'>

interface Kept {
  readonly used: Used
  readonly readMs: number
  /** The batch ended an hour before: no entry comes later. */
  readonly isFinal: boolean
}

const kept = new WeakMap<object, Lru<Kept>>()
const MOST_KEPT = 2_000

/** The newest entries of a batch that are added up. */
const MOST_ENTRIES = 10_000
const READ_AT_ONCE = 1_000

/** What the batch has used, read at most `ageMs` ago; what is final is read once. */
export async function batchUse(sources: Sources, batch: BatchHead, ageMs: number): Promise<Used> {
  const { ledger, now } = sources
  const known = lastBatchUse(sources, batch)
  if (known !== null && (known.isFinal || now() - known.readMs <= ageMs)) return known.used
  const ofLedger = kept.get(ledger) ?? new Lru<Kept>(MOST_KEPT)
  kept.set(ledger, ofLedger)
  const [readMs, end] = [now(), endedAtMs(batch)]
  const used = await usedBy(sources, batch)
  ofLedger.set(batch.id, { used, readMs, isFinal: end !== null && end + HOUR_MS < readMs })
  return used
}

/** What was last read of the batch; null: nothing yet. */
export function lastBatchUse({ ledger }: Pick<Sources, 'ledger'>, { id }: BatchHead): Kept | null {
  return kept.get(ledger)?.get(id) ?? null
}

/** The sums of the entries of a batch, which are from its creation to an hour after its end. */
async function usedBy({ ledger }: Sources, batch: BatchHead): Promise<Used> {
  const end = endedAtMs(batch)
  const span = {
    ...{ accountId: batch.accountId, batch: batch.id, fromMs: batch.createdAtMs, limit: READ_AT_ONCE },
    ...(end === null ? {} : { toMs: end + HOUR_MS }),
  }
  const used = { requests: 0, costNanoUsd: 0n, unpriced: 0 }
  let after: string | null = null
  do {
    const page: EntryPage = await ledger.entries({ ...span, after })
    for (const { costNanoUsd, source } of page.entries) {
      used.requests += 1
      if (costNanoUsd !== null) used.costNanoUsd += BigInt(costNanoUsd)
      else if (source !== 'none') used.unpriced += 1
    }
    after = page.next
    await adminTurns.next()
  } while (after !== null && used.requests < MOST_ENTRIES)
  return { ...used, isPart: after !== null }
}
