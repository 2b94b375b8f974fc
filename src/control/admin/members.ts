/** Members of accounts in the admin API: people with a role. A new member gets a one-time link. */
import { changeEntry, conflictRefusal, decideMember, memberRemoval } from '../../accounts/changes/decide.js'
import { MEMBER_FIELDS, memberValues, surplusLabels, emailFault } from '../../accounts/changes/fields.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { comparableEmail, type Account, type Member, type User } from '../../accounts/account.js'
import { hasEntered, isUnproven, memberState, stateForInviter } from '../../accounts/address-proof.js'
import { randomBase62 } from '../../accounts/key-secret.js'
import * as z from 'zod'
import { endWhatCouldNotGive } from '../../accounts/link-makers.js'
import { withoutOtherRole, writeAsIfMade } from '../../accounts/members.js'
import type { JsonObject } from '../../base/json.js'
import type { AccountChangeResult } from '../../store/account-changes.js'
import type { AdminToken } from '../../store/admin-tokens.js'
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
  const known = await store.users.byEmail(email)
  if (known !== null && !mayListUsers(token)) await writeAsIfMade(store, known.id)
  const user = known ?? (await userOf(services, request, { email, account }))
  const isInvited = found === null && (isUnproven(user) || !mayListUsers(token))
  const draft = isInvited ? await draftLink(services, linkOrder(services, request, { user, account })) : null
  const invitation = draft?.write ? { link: draft.write } : {}
  const nowMs = now()
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
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
      return { write: { members: [item], audit, ...(former === null ? invitation : {}) } }
    },
  })
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, email)
  const stored = result.kind === 'refused' ? result.reason : result.writes.members?.[0]
  if (stored === undefined) throw notFound()
  if (stored instanceof Error) throw stored
  const member = 'unchanged' in stored ? stored.unchanged : stored
  if (result.kind === 'refused') return replyOf(services, request, account, member)
  const before = result.before.members.get(email) ?? null
  await endSignIns(store, result, nowMs)
  const reply = await replyOf(services, request, account, member)
  if (before !== null) return reply
  const shown = draft === null ? {} : { invitation: invitationOf(draft.written(account)) }
  const location = `/accounts/${account.name}/members/${encodeURIComponent(email)}`
  return { ...reply, status: 201, json: { ...reply.json, ...shown }, location }
}

/** The user with the address; a new one has no password and signs in with its invitation. */
async function userOf(
  { store, now }: AdminServices,
  request: AdminRequest,
  { email, account }: { readonly email: string; readonly account: Account },
): Promise<User> {
  const actor = actorOf(request)
  return ensureUser(store, email, {
    ...{ nowMs: now(), actor, accountId: account.id, account: account.name },
  })
}

/** The user with the address, made if there is none. Its address is not proven. */
export async function ensureUser(
  { users }: Pick<AdminServices['store'], 'users'>,
  email: string,
  context: Parameters<typeof changeEntry>[0],
): Promise<User> {
  for (;;) {
    const known = await users.byEmail(email)
    if (known !== null) return known
    const { nowMs } = context
    const user: User = {
      ...{ id: `usr_${randomBase62(16)}`, email, role: null, passwordHash: '' },
      ...{ disabled: false, createdAtMs: nowMs, unproven: true },
    }
    const change = { before: null, after: { email } }
    const entry = changeEntry(context, {
      action: 'user.create',
      target: user.id,
      detail: email,
      ...change,
    })
    const outcome = await users.create(user, [{ ...entry, accountId: user.id }])
    if (outcome === 'created') return user
    if (outcome === 'bad_name') {
      throw invalid('email', 'The e-mail address cannot be stored.', 'Use another one.')
    }
  }
}

async function remove(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store, now } = services
  const { account, member: found } = await existing(services, request)
  const { email } = found
  const nowMs = now()
  const signedOut = await withoutOtherRole(store, found)
  const context = { nowMs, actor: actorOf(request), accountId: account.id, account: account.name }
  const result = await store.transact<Refused>({
    ...{ accountId: account.id, nowMs, reads: { members: [email] } },
    decide({ members }) {
      const member = members.get(email)
      if (member === undefined) return { refuse: notFound() }
      const failed = unmet(request.conditions, memberTag(member))
      if (failed !== null) return { refuse: failed }
      return { write: { removedMembers: [email], signedOut, audit: [memberRemoval(member, context)] } }
    },
  })
  if (result.kind === 'refused') throw result.reason
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, email)
  return 'none'
}

/**
 * To be called after a change of members: ends the sessions of those who have no role any more, and what
 * others may have opened in the name of those who got one.
 */
export async function endSignIns(
  store: AdminServices['store'],
  { before, writes }: Pick<AccountChangeResult<never> & { kind: 'written' }, 'before' | 'writes'>,
  nowMs: number,
): Promise<void> {
  for (const email of writes.removedMembers ?? []) {
    const userId = before.members.get(email)?.userId
    if (userId !== undefined) await signOutWithoutRole(store, userId)
  }
  const account = writes.account ?? before.account
  if (account === null) return
  for (const after of writes.members ?? []) {
    const gain = { account, before: before.members.get(after.email) ?? null, after }
    await endWhatCouldNotGive(store, gain, nowMs)
  }
}

/** Ends the sessions of a user who has no role any more. */
async function signOutWithoutRole(
  { users, signInTokens }: Pick<AdminServices['store'], 'users' | 'signInTokens'>,
  userId: string,
): Promise<void> {
  const user = await users.byId(userId)
  const hasRole = user !== null && (user.role !== null || user.groupRole !== undefined)
  if (hasRole || (await users.memberships(userId)).length > 0) return
  await signInTokens.end('session', userId, null)
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
