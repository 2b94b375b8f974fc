/** The members of an account: lists them, gives and takes roles, and makes links for new users. */
import { comparableEmail, roleOf, type Member, type User } from '../../../accounts/account.js'
import { memberChange, userChange } from '../../../accounts/audit-changes.js'
import { ensureUser, removeMember, setMember } from '../../../accounts/members.js'
import { GatewayError } from '../../../errors.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { entryOf, newLink, type Services } from '../services.js'
import { assertMayHavePassword } from '../sign-in/bound-users.js'

export function memberRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/members', {
      credential: 'read account',
      reply: schema.membersReply,
      handle: (request) => list(services, request),
    }),
    signedRoute('PUT', '/members/{email}', {
      credential: 'change members',
      body: schema.memberBody,
      reply: schema.memberReply,
      handle: (request) => put(services, request),
    }),
    signedRoute('DELETE', '/members/{email}', {
      credential: 'change members',
      reply: schema.doneReply,
      handle: (request) => remove(services, request),
    }),
    signedRoute('POST', '/members/{email}/invite', {
      credential: 'change members',
      body: schema.inviteBody,
      reply: schema.inviteReply,
      handle: (request) => invite(services, request),
    }),
  ]
}

async function list(
  services: Services,
  { session: { account, isAll } }: SignedInRequest<unknown, unknown>,
): Promise<Reply> {
  if (isAll) {
    const message = 'Set "account": members are listed for one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const members = await services.store.membersOf(account.id)
  const json: schema.MembersReply = {
    members: await Promise.all(members.map((member) => view(services, member))),
  }
  return { status: 200, json }
}

async function view({ store }: Services, member: Member): Promise<schema.Member> {
  const { email, groupRole = null, createdAtMs, userId } = member
  const user = await store.users.byId(userId)
  const state = user?.signedInAtMs === undefined ? 'invited' : 'active'
  return { email, role: roleOf(member) ?? 'viewer', groupRole, state, createdAtMs }
}

async function put(services: Services, request: SignedInRequest<unknown, schema.MemberBody>): Promise<Reply> {
  const { store, now } = services
  const { session, body, id } = request
  const { account } = session
  const { user, isNew } = await ensureUser(store, {
    email: id,
    now,
    audit: (made) => [
      entryOf(services, request, {
        ...{ accountId: made.id, action: 'user.create', target: made.id, detail: made.email },
        ...userChange(null, made),
      }),
    ],
  })
  const isMember = (await store.memberOf(account.id, user.email)) !== null
  const member = await setMember(store, {
    ...{ account, user, role: body.role, nowMs: now() },
    audit: (before, after) => [memberEntry(services, request, before, after)],
  })
  const link = isNew ? await newLink(services, request, user.id) : null
  const json: schema.MemberReply = { member: await view(services, member), link }
  return { status: isMember ? 200 : 201, json }
}

async function remove(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const { account } = request.session
  const isRemoved = await removeMember(services.store, {
    account,
    email: comparableEmail(request.id),
    nowMs: services.now(),
    audit: (before) => [memberEntry(services, request, before, null)],
  })
  if (!isRemoved) throw notFound()
  return { status: 200, json: {} }
}

async function invite(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const { store } = services
  const { account } = request.session
  const member = await store.memberOf(account.id, comparableEmail(request.id))
  const user = member === null ? null : await store.users.byId(member.userId)
  if (member === null || user === null) throw notFound()
  assertMayHavePassword(services, user)
  await assertMayInvite(services, request, user)
  const { email } = member
  const what = { accountId: account.id, action: 'member.invite', target: email, detail: email }
  // The entry is stored first: a link without an entry is worse than an entry without a link.
  await store.auditTrail.add(entryOf(services, request, what))
  const json: schema.InviteReply = { link: await newLink(services, request, user.id) }
  return { status: 201, json }
}

/**
 * A link sets the password of the user. An owner makes one only for a user who has not signed in and whose
 * accounts the owner owns all; otherwise an owner could take over the sign-in of a user with more rights.
 */
async function assertMayInvite(
  { store }: Services,
  { session }: SignedInRequest<unknown, unknown>,
  user: User,
): Promise<void> {
  if (roleOf(session.user) === 'admin') return
  const owned = session.members.filter((member) => roleOf(member) === 'owner')
  const all = await store.users.memberships(user.id)
  const isOwned = all.every((member) => owned.some(({ accountId }) => accountId === member.accountId))
  if (isOwned && user.signedInAtMs === undefined && roleOf(user) === null) return
  const message = 'This user has signed in before. Only an administrator can make a new link.'
  throw new GatewayError('forbidden', message)
}

function memberEntry(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  before: Member | null,
  after: Member | null,
): AuditEntry {
  const { accountId = '', email = '' } = after ?? before ?? {}
  const action = after === null ? 'member.remove' : before === null ? 'member.create' : 'member.change'
  const role = after === null ? null : roleOf(after)
  const detail = role === null ? email : `${email}: ${role}`
  const what = { accountId, action, target: email, detail, ...memberChange(before, after) }
  return entryOf(services, request, what)
}
