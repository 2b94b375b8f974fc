/** Batches of an account, or of all: their list, what one has cost, and its cancellation. */
import type { Actor } from '../../../accounts/changes/decide.js'
import { checkedReason } from '../../../accounts/changes/fields.js'
import { shownState, type BatchHead, type BatchRecords } from '../../../policy/batch-records.js'
import {
  batchPage,
  batchRecords,
  cancelBatch,
  endedAtMs,
  findBatch,
  ownerName,
  ownerNames,
} from '../../batches.js'
import { cursorOf, placeIn } from '../../cursor.js'
import type { Services } from '../../services.js'
import type { AccountSession } from '../../sign-in/sessions.js'
import { batchUse, lastBatchUse } from '../batch-use.js'
import { notFound, permissionIn } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'

export function batchRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/batches', {
      credential: 'usage',
      query: schema.batchesQuery,
      reply: schema.batchesReply,
      handle: (request) => list(services, request),
    }),
    signedRoute('GET', '/batches/{id}', {
      credential: 'usage',
      query: schema.batchQuery,
      reply: schema.batchReply,
      handle: async ({ session, id }) => {
        const { batch } = await found(services, session, id)
        return replyOf(services, session, batch)
      },
    }),
    signedRoute('POST', '/batches/{id}/cancel', {
      credential: 'change limits',
      query: schema.batchQuery,
      body: schema.cancelBatchBody,
      reply: schema.batchReply,
      handle: (request) => cancel(services, request),
    }),
  ]
}

function recordsOf({ store, snapshot }: Services): BatchRecords | null {
  return batchRecords(store, snapshot().config)
}

async function list(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.batchesQuery.parse>, undefined>,
): Promise<Reply> {
  const records = recordsOf(services)
  const none: schema.BatchesReply = { batches: [], next: null, isOff: records === null }
  const after = query.after === undefined ? null : placeIn(query.after)
  const isNoPage = query.after !== undefined && after === null
  if (records === null || isNoPage) return { status: 200, json: none }
  const filter = {
    accounts: session.isAll ? null : new Set([session.account.id]),
    state: query.state ?? null,
  }
  const { items, next } = await batchPage(records, filter, { after, limit: query.limit ?? 50 })
  const names = await ownerNames(services.store, items)
  const json: schema.Sent<typeof schema.batchesReply> = {
    batches: await withUse(services, items, (batch) => names.get(batch.accountId) ?? batch.accountId),
    next: next === null ? null : cursorOf(next),
    isOff: false,
  }
  return { status: 200, json }
}

/** Lists show what batches had used at most this long ago, if there is time to read it. */
const HOLDS_MS = 30_000
/** The time for reading that of one page. */
const READ_MS = 300

/** The batches of a list with what they have used; null for those that there was no time to read. */
async function withUse(
  services: Services,
  batches: readonly BatchHead[],
  nameOf: (batch: BatchHead) => string,
) {
  const stopMs = performance.now() + READ_MS
  const views: schema.Sent<typeof schema.batchesReply>['batches'] = []
  for (const batch of batches) {
    const isLate = performance.now() >= stopMs
    const last = isLate ? lastBatchUse(services, batch)?.used : await batchUse(services, batch, HOLDS_MS)
    views.push({ ...viewOf(batch, nameOf(batch)), used: last ?? null })
  }
  return views
}

function viewOf(batch: BatchHead, account: string): schema.BatchReply['batch'] {
  const { id, accountId, keyId, createdAtMs, info } = batch
  const { counts, form, dueAtMs, upstreams, vendorId, failure, endpoint, model } = info
  return {
    ...{ id, accountId, account, keyId, state: shownState(info), endpoint, model, form, failure },
    ...{ upstream: upstreams[0] ?? null, upstreamBatchId: vendorId, lines: { ...counts } },
    ...{ createdAtMs, expiresAtMs: dueAtMs, endedAtMs: endedAtMs(batch) },
  }
}

/** The batch of the path. Throws `not_found`, also for one of another account. */
async function found(
  services: Services,
  { isAll, account }: AccountSession,
  id: string,
): Promise<{ readonly records: BatchRecords; readonly batch: BatchHead }> {
  const records = recordsOf(services)
  const batch = records === null ? null : await findBatch(records, id)
  if (records === null || batch === null) throw notFound()
  if (!isAll && batch.accountId !== account.id) throw notFound()
  return { records, batch }
}

async function replyOf(services: Services, session: AccountSession, batch: BatchHead): Promise<Reply> {
  const { store } = services
  const owner = await store.accountById(batch.accountId)
  const json: schema.Sent<typeof schema.batchReply> = {
    batch: viewOf(batch, await ownerName(store, batch)),
    used: await batchUse(services, batch, 0),
    mayCancel:
      endedAtMs(batch) === null &&
      owner !== null &&
      (await permissionIn(store, { ...session, account: owner }, 'change limits')) === 'yes',
  }
  return { status: 200, json }
}

async function cancel(
  services: Services,
  request: SignedInRequest<unknown, schema.CancelBatchBody>,
): Promise<Reply> {
  const { session, id, body, address, requestId } = request
  const { records, batch } = await found(services, session, id)
  const actor: Actor = {
    actor: session.user.email,
    address,
    requestId,
    reason: checkedReason(body.reason ?? ''),
  }
  const cancelled = await cancelBatch(records, { batch, nowMs: services.now(), actor })
  return replyOf(services, session, cancelled)
}
