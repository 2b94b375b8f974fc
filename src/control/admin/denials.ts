/** Denied workload identities in the admin API: list, deny, read, allow again. */
import { entryOf } from '../../accounts/changes/decide.js'
import { SHOWN_TEXT } from '../../accounts/changes/fields.js'
import { decideDenial, DENIAL_SETTINGS } from '../../accounts/changes/decide-denial.js'
import { denialFields, denyIdentity } from '../../accounts/denials.js'
import type { JsonObject } from '../../base/json.js'
import type { Denial } from '../../store/denials.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { etagOf, unmet } from './conditional-requests.js'
import { readFields, textIn, TIME, type Fields } from '../../accounts/changes/field-types.js'
import { notFound, Problem } from '../problem-details.js'
import { fieldsObject, listForm, replyForm } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { timeText } from '../../base/time-units.js'
import { cursorOf } from '../cursor.js'
import { actorOf, PAGE_PARAMETERS, pageOf, type AdminServices } from './services.js'

const DENIAL_FIELDS = {
  id: { type: SHOWN_TEXT, means: 'The id of the denial.', readOnly: true },
  ...DENIAL_SETTINGS,
  created_at: { type: TIME, means: 'When it was made.', readOnly: true },
  etag: { type: SHOWN_TEXT, means: 'The entity tag.', readOnly: true },
} as const satisfies Fields

const DENIAL = replyForm('Denial', () => {
  // In a reply the other one of the two is null.
  const orNull = ({ type, means: description }: (typeof DENIAL_FIELDS)['sub' | 'jti']) =>
    type.nullable().meta({ description })
  return fieldsObject(DENIAL_FIELDS, { sub: orNull(DENIAL_FIELDS.sub), jti: orNull(DENIAL_FIELDS.jti) })
})

export function denialRoutes(services: AdminServices): AdminRoute[] {
  const scopes = ['keys:write'] as const
  const one = { path: '/denials/{id}', scopes }
  return [
    {
      ...{ method: 'GET', path: '/denials', scopes, query: PAGE_PARAMETERS },
      summary: 'The denied workload identities, newest first',
      replies: { 200: listForm(DENIAL) },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'POST', path: '/denials', scopes },
      summary: 'Deny a workload identity, on every gateway within a second',
      body: { name: 'Denial', fields: DENIAL_FIELDS },
      replies: { 201: DENIAL },
      handle: (request) => create(services, request),
    },
    {
      ...{ method: 'GET', ...one, summary: 'One denial' },
      replies: { 200: DENIAL },
      handle: async (request) => replyOf(await named(services, request)),
    },
    {
      ...{ method: 'DELETE', ...one, summary: 'Remove a denial' },
      replies: { 204: null },
      handle: (request) => remove(services, request),
    },
  ]
}

function replyOf(denial: Denial): JsonReply {
  const json = objectOf(denial)
  return { status: 200, json, etag: textIn(json['etag']) }
}

function objectOf(denial: Denial): JsonObject {
  const { id, createdAtMs } = denial
  const fields = denialFields(denial)
  return { id, ...fields, created_at: timeText(createdAtMs), etag: etagOf('denial', id, fields) }
}

async function named({ store }: AdminServices, { path, token }: AdminRequest): Promise<Denial> {
  assertWholeGateway(token)
  const denial = await store.denials.byId(path['id'] ?? '')
  if (denial === null) throw notFound()
  return denial
}

/** An identity may lead to any account, so that a token with an account sees no denials. */
function assertWholeGateway({ accountId }: AdminRequest['token']): void {
  if (accountId === null) return
  throw new Problem('forbidden', 'A token with an account cannot use denials.', {
    fix: 'Use a token without an account.',
  })
}

async function list({ store }: AdminServices, request: AdminRequest): Promise<AdminReply> {
  assertWholeGateway(request.token)
  const { after, limit } = pageOf(request)
  const page = await store.denials.list({ order: 'newest_first', after, limit })
  const next = page.next === null ? null : cursorOf(page.next)
  return { status: 200, json: { items: page.items.map(objectOf), next_cursor: next } }
}

async function create(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, snapshot, now } = services
  assertWholeGateway(request.token)
  const identities = snapshot().config.identity.map(({ name }) => name)
  readFields(DENIAL_FIELDS, request.body)
  const wish = decideDenial(request.body, { identities, nowMs: now() })
  const failed = unmet(request.conditions, null)
  if (failed !== null) throw failed
  const denial = await denyIdentity(store, wish, (made) => [
    denialEntry(services, request, 'denial.create', made),
  ])
  return { ...replyOf(denial), status: 201, location: `/denials/${denial.id}` }
}

async function remove(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const found = await named(services, request)
  // A denial never changes, so that its tag cannot, either.
  const failed = unmet(request.conditions, textIn(objectOf(found)['etag']))
  if (failed !== null) throw failed
  const removed = await services.store.denials.remove(found.id, (denial) => [
    denialEntry(services, request, 'denial.remove', denial),
  ])
  if (removed === null) throw notFound()
  return 'none'
}

function denialEntry(
  { now }: AdminServices,
  request: AdminRequest,
  action: 'denial.create' | 'denial.remove',
  denial: Denial,
): AuditEntry {
  const fields = denialFields(denial)
  const { identity, sub, jti } = denial
  const detail = `${identity}: ${sub === null ? `jti ${jti ?? ''}` : `sub ${sub}`}`.slice(0, 1_000)
  const change =
    action === 'denial.create' ? { before: null, after: fields } : { before: fields, after: null }
  return entryOf(now(), actorOf(request), {
    ...{ accountId: '', action, target: denial.id, detail },
    ...change,
  })
}
