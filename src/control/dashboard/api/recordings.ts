/** Recorded requests of the account; administrators read those of every account. Each reading is audited. */
import { roleOf } from '../../../accounts/account.js'
import {
  recordingsOf,
  RecordingSeal,
  valuesOf,
  type RecordingHead,
  type Recordings,
} from '../../../policy/encrypted-recordings.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { entryOf, scopeOf, type Services } from '../../services.js'

type Request = SignedInRequest<ReturnType<typeof schema.recordingsQuery.parse>, undefined>

export function recordingRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/recordings', {
      credential: 'read account',
      query: schema.recordingsQuery,
      reply: schema.recordingsReply,
      handle: (request) => list(services, request),
    }),
    // Users of every other role get 404: they do not learn which requests are recorded.
    signedRoute('GET', '/recordings/{id}', {
      credential: 'usage',
      query: schema.recordingsQuery,
      reply: schema.recordingReply,
      handle: (request) => read(services, request),
    }),
    signedRoute('DELETE', '/recordings/{id}', {
      credential: 'usage',
      query: schema.recordingsQuery,
      reply: schema.recordingDeletedReply,
      handle: (request) => remove(services, request),
    }),
  ]
}

/** Null if recordings are sent to a URL. */
function keptIn({ snapshot, store }: Services): Recordings | null {
  const { record } = snapshot().config
  return recordingsOf(record?.to ?? { kind: 'store' }, store)
}

async function list(services: Services, { session }: Request): Promise<Reply> {
  const accountId = scopeOf(session)
  const filter = accountId === null ? {} : { accountId }
  const heads = (await keptIn(services)?.list(filter, services.now())) ?? []
  return { status: 200, json: { recordings: heads.map(rowOf) } }
}

function rowOf({ id, atMs, accountId, model, upstream, status, bytes }: RecordingHead) {
  return { id, atMs, accountId, model, upstream, status, bytes }
}

/** The recording, if the user owns its account or is an administrator. Rejects with `not_found`. */
async function found(services: Services, { session, id }: Request) {
  const recordings = keptIn(services)
  const record = (await recordings?.find(id, services.now())) ?? null
  if (recordings === null || record === null) throw notFound()
  const { accountId } = record.head
  const member = session.members.find((each) => each.accountId === accountId)
  const isOwner = member !== undefined && roleOf(member) === 'owner'
  const isOwn = isOwner && session.account.id === accountId
  if (!isOwn && roleOf(session.user) !== 'admin') throw notFound()
  return { recordings, ...record }
}

async function read(services: Services, request: Request): Promise<Reply> {
  const { head, sealed } = await found(services, request)
  const { key } = services.snapshot().config.escrow
  const recording = key === null ? null : new RecordingSeal(key).open(head, sealed)
  if (recording === null) throw notFound()
  const { accountId, id } = head
  const what = { accountId, action: 'recording.read', target: id, detail: '' }
  await services.store.auditTrail.add(entryOf(services, request, what))
  const { request: canonical, reply, client, upstream } = recording
  return {
    status: 200,
    json: { ...rowOf(head), request: canonical, reply, client, upstream, ...valuesOf(recording) },
  }
}

async function remove(services: Services, request: Request): Promise<Reply> {
  const { head, recordings } = await found(services, request)
  const { accountId, id } = head
  const what = { accountId, action: 'recording.delete', target: id, detail: '' }
  if (!(await recordings.remove(id, entryOf(services, request, what)))) throw notFound()
  return { status: 200, json: { deleted: true } }
}
