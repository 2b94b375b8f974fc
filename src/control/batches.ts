/** Batches of all accounts, for operators: the admin API and the command. Lines stay with their accounts. */
import { entryOf, type Actor } from '../accounts/changes/decide.js'
import { checkedReason } from '../accounts/changes/fields.js'
import type { JsonObject } from '../base/json.js'
import { timeText } from '../base/time-units.js'
import { GatewayError } from '../errors.js'
import type { Config } from '../config/config.js'
import { BatchRecords, cancellation, hasEnded, shownState, type BatchHead } from '../policy/batch-records.js'
import { FileStore } from '../policy/file-store.js'
import type { Store } from '../store/store.js'

/** The batches of the store; null if the configuration has no `files`. */
export function batchRecords(
  { sealedRecords: records }: Pick<Store, 'sealedRecords'>,
  { files, escrow }: Pick<Config, 'files'> & { readonly escrow: Pick<Config['escrow'], 'key'> },
): BatchRecords | null {
  if (files === null || escrow.key === null) return null
  return new BatchRecords(records, new FileStore({ records, secret: escrow.key, settings: files }))
}

/** A batch as the admin API and the command show it. `account`: its name, or the id of a purged one. */
export function shownBatch(batch: BatchHead, account: string): JsonObject {
  const { id, keyId, createdAtMs, info } = batch
  const { counts, form, dueAtMs, upstreams, vendorId, failure, endpoint, model } = info
  return {
    ...{ id, account, key_id: keyId, state: shownState(info), endpoint, model },
    ...{ upstream: upstreams[0] ?? null, form, upstream_batch_id: vendorId, failure },
    request_counts: { ...counts },
    created_at: timeText(createdAtMs),
    expires_at: timeText(dueAtMs),
    ended_at: timeText(endedAtMs(batch)),
  }
}

/** When the batch ended; null while it runs. */
export function endedAtMs({ info: { at } }: Pick<BatchHead, 'info'>): number | null {
  return at.completed ?? at.failed ?? at.cancelled ?? at.expired ?? null
}

/** The batch with this id; null if there is none, or it is still being made. */
export async function findBatch(records: BatchRecords, id: string): Promise<BatchHead | null> {
  const batch = await records.find(null, id)
  return batch === null || batch.info.state === 'creating' ? null : batch
}

/** The name of the account of a batch; its id if it was purged. */
export async function ownerName(
  store: Pick<Store, 'accountById'>,
  { accountId }: Pick<BatchHead, 'accountId'>,
): Promise<string> {
  return (await store.accountById(accountId))?.name ?? accountId
}

/** The names of the accounts of batches, by id. */
export async function ownerNames(
  store: Pick<Store, 'accountById'>,
  batches: readonly BatchHead[],
): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for (const batch of batches) {
    if (!names.has(batch.accountId)) names.set(batch.accountId, await ownerName(store, batch))
  }
  return names
}

/** Which batches a list has. */
interface BatchFilter {
  /** Ids; null: all. */
  readonly accounts: ReadonlySet<string> | null
  /** As `shownState`; null: all. */
  readonly state: string | null
}

/** A page of batches, newest first. `after` and `next` are the places that pages end with. */
export async function batchPage(
  records: BatchRecords,
  { accounts, state }: BatchFilter,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<{ readonly items: BatchHead[]; readonly next: string | null }> {
  const [only = null, ...others] = accounts ?? []
  const accountId = others.length === 0 ? only : null
  const items: BatchHead[] = []
  let place = after
  let isLast = false
  while (!isLast) {
    const page = await olderThan(records, accountId, place)
    for (const batch of page.batches) {
      if (accounts?.has(batch.accountId) === false) continue
      if (state !== null && state !== shownState(batch.info)) continue
      if (items.length === limit) return { items, next: items.map(placeOf).at(-1) ?? null }
      items.push(batch)
    }
    place = page.batches.map(placeOf).at(-1) ?? place
    isLast = page.isLast || page.batches.length === 0
  }
  return { items, next: null }
}

async function olderThan(
  records: BatchRecords,
  accountId: string | null,
  place: string | null,
): Promise<{ readonly batches: readonly BatchHead[]; readonly isLast: boolean }> {
  const untilMs = place === null ? null : Number.parseInt(place, 10)
  const { batches, isLast } = await records.page(accountId, untilMs)
  return { batches: batches.filter((batch) => place === null || placeOf(batch) < place), isLast }
}

/** Times of one width: newer batches have greater texts, as in the order of the store. */
function placeOf({ createdAtMs, id }: BatchHead): string {
  return `${String(createdAtMs).padStart(15, '0')} ${id}`
}

/** A batch to cancel, and who cancels it. */
interface BatchCancellation {
  readonly batch: BatchHead
  readonly nowMs: number
  readonly actor: Actor
}

/**
 * Cancels a batch as its client may: no more of its lines are sent, and what ran is charged. A gateway of the
 * store does it within seconds. The audit trail has an entry unless it was being cancelled before.
 * Rejects with `malformed_request` if it has ended, a `Refusal` of the reason, `store_unavailable`.
 */
export async function cancelBatch(
  records: BatchRecords,
  { batch: { id, accountId }, nowMs, actor: by }: BatchCancellation,
): Promise<BatchHead> {
  const actor = { ...by, reason: checkedReason(by.reason ?? '') }
  const after = await records.change(id, cancellation, ({ info: before }, { info }) => [
    entryOf(nowMs, actor, {
      ...{ accountId, action: 'batch.cancel', target: id, detail: `batch ${id}` },
      ...{ before: { state: shownState(before) }, after: { state: shownState(info) } },
    }),
  ])
  if (after === null || hasEnded(after)) {
    throw new GatewayError('malformed_request', 'The batch has ended: only one that runs can be cancelled.')
  }
  // Without this, the gateway that rests on it sees the change some seconds later.
  await records.stir(id).catch(() => undefined)
  return after
}
