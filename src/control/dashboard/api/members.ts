/** The members of an account: lists them, gives and takes roles, and makes links for new users. */
import { comparableEmail, roleOf, type Member, type User } from '../../../accounts/account.js'
import { hasEntered, isUnproven, memberState, stateForInviter } from '../../../accounts/address-proof.js'
import { memberChange, userChange } from '../../../accounts/changes/audit-text.js'
import { checkedRole } from '../../../accounts/changes/fields.js'
import { withUser, removeMember, setMember } from '../../../accounts/members.js'
import { GatewayError } from '../../../errors.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { entryOf, newDraft, newLink, type Services } from '../../services.js'
import { assertMayHavePassword } from '../../sign-in/bound-users.js'
import type { Session } from '../../sign-in/sessions.js'

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

async function list(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const { account, isAll } = request.session
  if (isAll) {
    const message = 'Set "account": members are listed for one account.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const members = await services.store.membersOf(account.id)
  const json: schema.MembersReply = {
    members: await Promise.all(members.map((member) => view(services, request, member))),
  }
  return { status: 200, json }
}

async function view(
  { store }: Services,
  { session }: SignedInRequest<unknown, unknown>,
  member: Member,
): Promise<schema.Member> {
  const { email, groupRole = null, createdAtMs, userId } = member
  const user = await store.users.byId(userId)
  const state = mayListUsers(session) ? memberState(member, user) : stateForInviter(member, user)
  return { email, role: roleOf(member) ?? 'viewer', groupRole, state, createdAtMs }
}

/** Administrators and auditors. Others do not see whether an address has a user. */
function mayListUsers({ user }: Session): boolean {
  return roleOf(user) !== null
}

async function put(services: Services, request: SignedInRequest<unknown, schema.MemberBody>): Promise<Reply> {
  const { store, now } = services
  const { session, body, id } = request
  const { account } = session
  const role = checkedRole(body.role)
  return withUser(store, { email: id, now }, async (user, isNew) => {
    const isMember = (await store.memberOf(account.id, user.email)) !== null
    const isInvited = !isMember && (isUnproven(user) || !mayListUsers(session))
    const draft = isInvited ? await newDraft(services, request, { user, account }) : null
    const member = await setMember(store, {
      ...{ account, user, role, nowMs: now(), link: draft?.write ?? null },
      ...(isNew ? { made: [userCreation(services, request, user)] } : {}),
      audit: (before, after) => [memberEntry(services, request, before, after)],
    })
    const link = draft?.written(account) ?? null
    const json: schema.MemberReply = { member: await view(services, request, member), link }
    return { status: isMember ? 200 : 201, json }
  })
}

function userCreation(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  user: User,
): AuditEntry {
  return entryOf(services, request, {
    ...{ accountId: user.id, action: 'user.create', target: user.id, detail: user.email },
    ...userChange(null, user),
  })
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
  assertMayInvite(services, request.session, { user, member })
  const { email } = member
  const what = { accountId: account.id, action: 'member.invite', target: email, detail: email }
  const auditEntries = [entryOf(services, request, what)]
  const json: schema.InviteReply = { link: await newLink(services, request, { user, account, auditEntries }) }
  return { status: 201, json }
}

/** An owner makes no link for a user who has signed in since it is a member. */
function assertMayInvite(
  services: Services,
  session: Session,
  { user, member }: { readonly user: User; readonly member: Member },
): void {
  if (mayListUsers(session)) assertMayHavePassword(services, user)
  else if (hasEntered(user, member)) {
    const message = 'This user has signed in before. Only an administrator can make a new link.'
    throw new GatewayError('forbidden', message)
  }
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
