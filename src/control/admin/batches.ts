/** Batches in the admin API: those of all accounts that the token sees, and their cancellation. */
import * as z from 'zod'
import type { AdminToken } from '../../store/admin-tokens.js'
import { textIn, textType, TIME, type Fields, readFields } from '../../accounts/changes/field-types.js'
import { REASON } from '../../accounts/changes/fields.js'
import { SHOWN_STATES, type BatchHead, type BatchRecords } from '../../policy/batch-records.js'
import {
  batchPage,
  batchRecords,
  cancelBatch,
  findBatch,
  ownerName,
  ownerNames,
  shownBatch,
} from '../batches.js'
import { cursorOf } from '../cursor.js'
import { notFound } from '../problem-details.js'
import { listForm, replyForm, replyObject, wholeNumber } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { actorOf, PAGE_PARAMETERS, pageOf, type AdminServices } from './services.js'
import { sees } from './token-access.js'
import { accountsOf, OF_ACCOUNT } from './usage.js'

const STATE = textType((text) => SHOWN_STATES.some((state) => state === text), {
  fix: `Send one of ${SHOWN_STATES.join(', ')}.`,
})

/** The body of a cancellation. */
const CANCELLATION_FIELDS: Fields = {
  reason: { type: REASON, means: 'Why, for the audit trail.', default: '' },
}

const BATCH = replyForm('Batch', () => {
  const ofFailed = (what: string) =>
    wholeNumber()
      .optional()
      .meta({ description: `How many of ${what}; only once it has ended` })
  return replyObject({
    id: z.string(),
    account: z.string().meta({ description: 'Its name; the id of a purged account' }),
    key_id: z.string(),
    state: z.enum(SHOWN_STATES),
    endpoint: z.string().meta({ description: 'That of its lines, such as /v1/chat/completions' }),
    model: z.string(),
    upstream: z.string().nullable(),
    form: z.string().meta({ description: 'How the upstream runs it: the name of its API, or `queue`' }),
    upstream_batch_id: z.string().nullable().meta({ description: "The upstream's own id of the batch" }),
    failure: z.string().nullable().meta({ description: 'Why it failed' }),
    request_counts: replyObject({
      ...{ total: wholeNumber(), completed: wholeNumber() },
      failed: wholeNumber().meta({ description: 'All that did not succeed' }),
      expired: ofFailed('the failed ones expired'),
      cancelled: ofFailed('them were cancelled'),
    }),
    created_at: TIME,
    expires_at: TIME.meta({ description: 'The end of its window' }),
    ended_at: TIME.nullable(),
  })
})

export function batchRoutes(services: AdminServices): AdminRoute[] {
  const read = { method: 'GET', scopes: ['requests:read', 'batches:write'] } as const
  return [
    {
      ...{ ...read, path: '/batches' },
      summary: 'Batches, newest first',
      query: {
        ...PAGE_PARAMETERS,
        ...OF_ACCOUNT,
        state: { type: STATE, means: `One of ${SHOWN_STATES.join(', ')}.` },
      },
      replies: { 200: listForm(BATCH) },
      handle: (request) => list(services, request),
    },
    {
      ...{ ...read, path: '/batches/{id}', summary: 'One batch' },
      replies: { 200: BATCH },
      handle: async (request) => {
        const { batch } = await found(services, request)
        return replyOf(services, batch)
      },
    },
    {
      ...{ method: 'POST', path: '/batches/{id}/cancel', scopes: ['batches:write'] },
      summary: 'Cancel a batch: no more of its lines are sent, and what ran is charged',
      body: { name: 'BatchCancellation', fields: CANCELLATION_FIELDS, isOptional: true },
      replies: { 200: BATCH },
      handle: (request) => cancel(services, request),
    },
  ]
}

async function list(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { query, token } = request
  const accounts = await accountsOf(services, token, query)
  const records = recordsOf(services)
  if (records === null) return { status: 200, json: { items: [], next_cursor: null } }
  const { state } = query
  const filter = { accounts, state: typeof state === 'string' ? state : null }
  const { items, next } = await batchPage(records, filter, pageOf(request))
  const names = await ownerNames(services.store, items)
  return {
    status: 200,
    json: {
      items: items.map((batch) => shownBatch(batch, names.get(batch.accountId) ?? batch.accountId)),
      next_cursor: next === null ? null : cursorOf(next),
    },
  }
}

function recordsOf({ store, snapshot }: AdminServices): BatchRecords | null {
  return batchRecords(store, snapshot().config)
}

/** The batch of the path. Throws `not_found`, also for one that the token does not see. */
async function found(
  services: AdminServices,
  { path, token }: AdminRequest,
): Promise<{ readonly records: BatchRecords; readonly batch: BatchHead }> {
  const records = recordsOf(services)
  const batch = records === null ? null : await findBatch(records, path['id'] ?? '')
  if (records === null || batch === null) throw notFound()
  if (!(await seesOwner(services, token, batch))) throw notFound()
  return { records, batch }
}

async function seesOwner(
  services: AdminServices,
  token: AdminToken,
  { accountId }: BatchHead,
): Promise<boolean> {
  if (token.accountId === null) return true
  const account = await services.store.accountById(accountId)
  return account !== null && sees(services, token, account)
}

async function replyOf({ store }: AdminServices, batch: BatchHead): Promise<JsonReply> {
  return { status: 200, json: shownBatch(batch, await ownerName(store, batch)) }
}

async function cancel(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { records, batch } = await found(services, request)
  const { reason } = readFields(CANCELLATION_FIELDS, request.body)
  const actor = { ...actorOf(request), reason: textIn(reason) }
  return replyOf(services, await cancelBatch(records, { batch, nowMs: services.now(), actor }))
}
