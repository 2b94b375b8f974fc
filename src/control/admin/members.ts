/** Members of accounts in the admin API: people with a role. A new member gets a one-time link. */
import {
  changeEntry,
  conflictRefusal,
  decideMember,
  memberRemoval,
  type ChangeContext,
} from '../../accounts/changes/decide.js'
import { MEMBER_FIELDS, memberValues, surplusLabels, emailFault } from '../../accounts/changes/fields.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { comparableEmail, type Account, type Member, type User } from '../../accounts/account.js'
import { hasEntered, isUnproven, memberState, stateForInviter } from '../../accounts/address-proof.js'
import * as z from 'zod'
import { EndedSignIns } from '../../accounts/ended-sign-ins.js'
import { withUser } from '../../accounts/members.js'
import type { JsonObject } from '../../base/json.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { hostOf } from '../../http/message.js'
import { providerOf } from '../sign-in/bound-users.js'
import { draftLink, makeLink, type LinkOrder, type NewLink } from '../sign-in/links.js'
import { unmet } from './conditional-requests.js'
import { patchedObject, readFields, TIME } from '../../accounts/changes/field-types.js'
import { LABEL_FILTER, matchesLabels, readLabelFilters } from './label-filters.js'
import { memberObject, memberTag } from './objects.js'
import { notFound, Problem, type Refused } from '../problem-details.js'
import { fieldsObject, listForm, replyForm, replyObject } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute, JsonReply } from './route.js'
import { timeText } from '../../base/time-units.js'
import { cursorOf } from '../cursor.js'
import { actorOf, PAGE_PARAMETERS, pageOf, type AdminServices } from './services.js'
import { accountNamed } from './token-access.js'

const invitation = () => {
  const url = z.string().nullable().meta({ description: 'Null: the address got it by mail' })
  return replyObject({ url, expires_at: TIME })
}
const INVITATION = replyForm('Invitation', invitation)
const MEMBER = replyForm('Member', () => {
  const description = 'Only in the reply that made a new user'
  return fieldsObject(MEMBER_FIELDS, { invitation: invitation().optional().meta({ description }) })
})

export function memberRoutes(services: AdminServices): AdminRoute[] {
  const own = { path: '/accounts/{name}/members/{email}', scopes: ['accounts:write'] } as const
  return [
    {
      ...{ method: 'GET', path: '/accounts/{name}/members', scopes: ['accounts:read'] },
      summary: 'The members of an account, by e-mail address',
      query: { ...PAGE_PARAMETERS, label: LABEL_FILTER },
      replies: { 200: listForm(MEMBER) },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'GET', path: own.path, scopes: ['accounts:read'], summary: 'One member' },
      replies: { 200: MEMBER },
      async handle(request) {
        const { account, member } = await existing(services, request)
        return replyOf(services, request, account, member)
      },
    },
    {
      ...{ method: 'PUT', ...own },
      summary: 'Make a person a member; a new member gets an invitation',
      body: { name: 'Member', fields: MEMBER_FIELDS },
      replies: { 200: MEMBER, 201: MEMBER },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'PATCH', ...own, summary: 'Change the role or the labels of a member' },
      body: { name: 'Member', fields: MEMBER_FIELDS, isPatch: true },
      replies: { 200: MEMBER },
      handle: (request) => put(services, request),
    },
    {
      ...{ method: 'DELETE', ...own, summary: 'Remove a member' },
      replies: { 204: null },
      handle: (request) => remove(services, request),
    },
    {
      ...{ method: 'POST', path: `${own.path}/invite`, scopes: own.scopes },
      summary: 'A new one-time link with which the person sets a password',
      body: { name: 'Invite', fields: {}, isOptional: true },
      replies: { 201: INVITATION },
      handle: (request) => invite(services, request),
    },
  ]
}

async function list(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { token, path, query } = request
  const account = await accountNamed(services, token, path['name'] ?? '')
  const { after, limit } = pageOf(request)
  const filters = readLabelFilters(query['label'])
  const members = (await services.store.membersOf(account.id)).filter(({ email, labels }) => {
    return email > (after ?? '') && matchesLabels(labels, filters)
  })
  const page = members.slice(0, limit)
  const items: JsonObject[] = []
  for (const member of page) items.push(await objectOf(services, token, account, member))
  const last = members.length > limit ? page.at(-1) : undefined
  return {
    status: 200,
    json: { items, next_cursor: last === undefined ? null : cursorOf(last.email) },
  }
}

async function objectOf(
  { store }: AdminServices,
  token: AdminToken,
  { name: account }: Account,
  member: Member,
): Promise<JsonObject> {
  const user = await store.users.byId(member.userId)
  const state = mayListUsers(token) ? memberState(member, user) : stateForInviter(member, user)
  return memberObject(member, { account, state })
}

async function replyOf(
  services: AdminServices,
  { token }: AdminRequest,
  account: Account,
  member: Member,
): Promise<JsonReply> {
  const json = await objectOf(services, token, account, member)
  return { status: 200, json, etag: memberTag(member) }
}

function emailIn({ path }: AdminRequest): string {
  return comparableEmail(path['email'] ?? '')
}

async function existing(
  services: AdminServices,
  request: AdminRequest,
): Promise<{ account: Account; member: Member }> {
  const account = await accountNamed(services, request.token, request.path['name'] ?? '')
  const member = await services.store.memberOf(account.id, emailIn(request))
  if (member === null) throw notFound()
  return { account, member }
}

async function put(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { token, body, conditions } = request
  const isPatch = request.req.method === 'PATCH'
  const account = await accountNamed(services, token, request.path['name'] ?? '')
  const email = emailIn(request)
  const found = await store.memberOf(account.id, email)
  if (found === null && isPatch) throw notFound()
  const fault = emailFault(email)
  if (fault !== null) throw invalid('email', ...fault)
  const current =
    found === null ? { account: account.name, email } : await objectOf(services, token, account, found)
  const given = readFields(MEMBER_FIELDS, body, { current, isPatch })
  // Checked before a user is made for nothing; the transaction checks it again.
  const early = unmet(conditions, found === null ? null : memberTag(found))
  if (early !== null) throw early
  return withUser(store, { email, now }, (user, isNew) =>
    putUser(services, request, { account, email, given, user, isNew, isInvited: found === null }),
  )
}

/** What a member is to be. */
interface Wanted {
  readonly account: Account
  readonly email: string
  readonly given: JsonObject
  readonly user: User
  readonly isNew: boolean
  /** Whether a link is made, unless the user needs none. */
  readonly isInvited: boolean
}

async function putUser(
  services: AdminServices,
  request: AdminRequest,
  { account, email, given, user, isNew, ...wanted }: Wanted,
): Promise<AdminReply> {
  const { store, now } = services
  const { token, conditions } = request
  const isPatch = request.req.method === 'PATCH'
  const isInvited = wanted.isInvited && (isUnproven(user) || !mayListUsers(token))
  const draft = isInvited ? await draftLink(services, linkOrder(services, request, { user, account })) : null
  const invitation = draft?.write ? { link: draft.write } : {}
  const nowMs = now()
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
  const made = isNew ? { users: [user] } : {}
  const madeEntries = isNew ? [userCreation(user, context)] : []
  const signIns = new EndedSignIns(store, account, nowMs)
  if (!isNew) await signIns.read(user.id)
  const result = await store.transact<Refused | { readonly unchanged: Member }>({
    ...{ accountId: account.id, nowMs, reads: { members: [email] } },
    decide({ account: stored, members }) {
      const former = members.get(email) ?? null
      if (stored === null || (isPatch && former === null)) return { refuse: notFound() }
      const failed = unmet(conditions, former === null ? null : memberTag(former))
      if (failed !== null) return { refuse: failed }
      const before = former === null ? {} : memberValues(former)
      const values = isPatch ? patchedObject(MEMBER_FIELDS, before, given) : given
      const surplus = surplusLabels(values)
      if (surplus !== null) return { refuse: surplus }
      const { kind, item, audit } = decideMember(former, values, { userId: user.id, email }, context)
      if (kind === 'unchanged') return { refuse: { unchanged: item } }
      const ends = signIns.withRoles([{ before: former, after: item }])
      const writes = { ...made, members: [item], ends, audit: [...madeEntries, ...audit] }
      return { write: { ...writes, ...(former === null ? invitation : {}) } }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, email)
  const stored = result.kind === 'refused' ? result.reason : result.writes.members?.[0]
  if (stored === undefined) throw notFound()
  if (stored instanceof Error) throw stored
  const member = 'unchanged' in stored ? stored.unchanged : stored
  if (result.kind === 'refused') return replyOf(services, request, account, member)
  const before = result.before.members.get(email) ?? null
  const reply = await replyOf(services, request, account, member)
  if (before !== null) return reply
  const shown = draft === null ? {} : { invitation: invitationOf(draft.written(account)) }
  const location = `/accounts/${account.name}/members/${encodeURIComponent(email)}`
  return { ...reply, status: 201, json: { ...reply.json, ...shown }, location }
}

/** The entry about a user who is made as a member. */
export function userCreation(user: User, context: ChangeContext): AuditEntry {
  const what = { action: 'user.create', target: user.id, detail: user.email }
  const entry = changeEntry(context, { ...what, before: null, after: { email: user.email } })
  return { ...entry, accountId: user.id }
}

async function remove(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { account, member: found } = await existing(services, request)
  const { email } = found
  const nowMs = now()
  const signIns = await new EndedSignIns(store, account, nowMs).read(found.userId)
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
  const result = await store.transact<Refused>({
    ...{ accountId: account.id, nowMs, reads: { members: [email] } },
    decide({ members }) {
      const member = members.get(email)
      if (member === undefined) return { refuse: notFound() }
      const failed = unmet(request.conditions, memberTag(member))
      if (failed !== null) return { refuse: failed }
      const ends = signIns.withRoles([{ before: member, after: null }])
      return { write: { removedMembers: [email], ends, audit: [memberRemoval(member, context)] } }
    },
  })
  if (result.kind === 'refused') throw result.reason
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, email)
  return 'none'
}

async function invite(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { account, member } = await existing(services, request)
  readFields({}, request.body)
  const failed = unmet(request.conditions, memberTag(member))
  if (failed !== null) throw failed
  const user = await store.users.byId(member.userId)
  if (user === null) throw notFound()
  assertMayInvite(services, request.token, { user, member })
  const context = {
    nowMs: now(),
    actor: actorOf(request),
    accountId: account.id,
    account: account.name,
  }
  const what = { action: 'member.invite', target: member.email, detail: member.email }
  const auditEntries = [changeEntry(context, { ...what, before: null, after: null })]
  return { status: 201, json: await newInvitation(services, request, { user, account, auditEntries }) }
}

/**
 * A link sets the password of the user, who may have more rights than the token: no token gets one for an
 * administrator or auditor, and a token with an account none for a user who has signed in since it is a
 * member. The reply to a token of an account is the same for new users and others.
 */
function assertMayInvite(
  { snapshot }: AdminServices,
  token: AdminToken,
  { user, member }: { readonly user: User; readonly member: Member },
): void {
  const isLister = mayListUsers(token)
  const provider = isLister ? providerOf(user, snapshot().config.dashboard) : null
  if (provider !== null) {
    throw new Problem('forbidden', `This user signs in with ${provider} and has no password.`, {
      fix: `Let the user sign in with ${provider}.`,
    })
  }
  const hasGatewayRole = user.role !== null || user.groupRole !== undefined
  if (isLister ? !hasGatewayRole : !hasEntered(user, member)) return
  throw new Problem('forbidden', 'This token cannot make a link for a user with other rights.', {
    fix: 'Ask an administrator, or let the user sign in with the password.',
  })
}

/** Whether the token may learn whether an address has a user. */
function mayListUsers({ accountId }: AdminToken): boolean {
  return accountId === null
}

/** A new link; `url` is null if the user's address got it by mail. */
async function newInvitation(
  services: AdminServices,
  request: AdminRequest,
  invited: Pick<LinkOrder, 'user' | 'account' | 'auditEntries'>,
): Promise<JsonObject> {
  return invitationOf(await makeLink(services, linkOrder(services, request, invited)))
}

function linkOrder(
  services: AdminServices,
  { req, token }: AdminRequest,
  invited: Pick<LinkOrder, 'user' | 'account' | 'auditEntries'>,
): LinkOrder {
  const { server } = services.snapshot().config
  const origin = `${server.tls === null ? 'http' : 'https'}://${hostOf(req) ?? 'localhost'}`
  const maker = { as: 'token', id: token.id } as const
  return { ...invited, maker, origin }
}

function invitationOf({ url, expiresAtMs }: NewLink): JsonObject {
  return { url, expires_at: timeText(expiresAtMs) }
}
