/** The people who can sign in: lists, invites, changes their roles in the gateway, and disables them. */
import { cursorOf, placeIn } from '../../cursor.js'
import {
  comparableEmail,
  roleOf,
  type Account,
  type AccountRole,
  type GatewayRole,
  type User,
} from '../../../accounts/account.js'
import { gatewayRoleOf, isUnproven, takesEffect, userState } from '../../../accounts/address-proof.js'
import { memberChange, userChange } from '../../../accounts/changes/audit-text.js'
import { conflictRefusal } from '../../../accounts/changes/decide.js'
import { checkedValue, FLAG } from '../../../accounts/changes/field-types.js'
import { checkedGatewayRole, checkedRole } from '../../../accounts/changes/fields.js'
import { noAccountNamed } from '../../../accounts/changes/refusal.js'
import { changeUser, withUser, setMember, unbindUser } from '../../../accounts/members.js'
import { GatewayError } from '../../../errors.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import type { AddedSignIn } from '../../../store/sign-in-tokens.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { notFound } from '../routing/access.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { entryOf, newDraft, newLink, type Services } from '../../services.js'
import { assertMayHavePassword, providerOf } from '../../sign-in/bound-users.js'

/** Users that a search reads at once. */
const READ_AT_ONCE = 200

export function userRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/users', {
      credential: 'read gateway',
      query: schema.usersQuery,
      reply: schema.usersReply,
      handle: ({ query }) => list(services, query),
    }),
    signedRoute('POST', '/users', {
      credential: 'admin',
      body: schema.inviteUserBody,
      reply: schema.invitedUserReply,
      handle: (request) => invite(services, request),
    }),
    signedRoute('PATCH', '/users/{id}', {
      credential: 'admin',
      body: schema.changeUserBody,
      reply: schema.userReply,
      handle: (request) => change(services, request),
    }),
    signedRoute('POST', '/users/{id}/invite', {
      credential: 'admin',
      body: schema.userLinkBody,
      reply: schema.userLinkReply,
      handle: (request) => resend(services, request),
    }),
    signedRoute('POST', '/users/{id}/unbind', {
      credential: 'admin',
      body: schema.unbindUserBody,
      reply: schema.userReply,
      handle: (request) => unbind(services, request),
    }),
  ]
}

async function list(services: Services, query: ReturnType<typeof schema.usersQuery.parse>): Promise<Reply> {
  const { search = '', role, state, limit = 50 } = query
  const words = search.trim().toLowerCase()
  const found: schema.UserRow[] = []
  let after = query.after === undefined ? null : placeIn(query.after)
  let isMore = false
  for (let end = false; !end;) {
    const page = await services.store.users.list({ after, limit: READ_AT_ONCE })
    end = page.next === null
    for (const user of page.items) {
      if (!user.email.toLowerCase().includes(words)) continue
      if (role !== undefined && roleOf(user) !== role) continue
      if (found.length === limit) {
        isMore = true
        break
      }
      const row = await rowOf(services, user)
      if (state === undefined || row.state === state) found.push(row)
    }
    if (isMore) break
    after = page.items.at(-1)?.email ?? after
    await adminTurns.next()
  }
  const last = found.at(-1)
  const next = isMore && last !== undefined ? cursorOf(last.email) : null
  const json: schema.UsersReply = { users: found, next, total: null }
  return { status: 200, json }
}

async function rowOf(services: Services, user: User): Promise<schema.UserRow> {
  const { store, snapshot } = services
  const { id, email, role, groupRole = null, passwordHash, createdAtMs } = user
  const roles = await store.users.memberships(id)
  const found = await Promise.all(roles.map(({ accountId }) => store.accountById(accountId)))
  const accounts = roles.flatMap((member, at) => {
    const [name, held] = [found[at]?.name, roleOf(member)]
    return name === undefined || held === null ? [] : [{ name, role: held }]
  })
  const known = userState(user)
  const hasPending = roles.some((member) => !takesEffect(user, member))
  const isPending = known === 'unproven' && (hasPending || roleOf(user) !== null)
  const hasSignedIn = user.signedInAtMs !== undefined
  return {
    ...{ id, email, role, groupRole, createdAtMs },
    state:
      known === 'unproven'
        ? isPending && hasSignedIn
          ? 'pending'
          : hasSignedIn
            ? 'active'
            : 'invited'
        : known,
    accounts: accounts.sort((a, b) => (a.name < b.name ? -1 : 1)),
    provider: providerOf(user, snapshot().config.dashboard),
    hasPassword: passwordHash !== '',
    lastSignInAtMs: hasSignedIn ? await lastSignIn(services, id) : null,
  }
}

async function lastSignIn({ store }: Services, accountId: string): Promise<number | null> {
  const filter = { action: 'session.sign-in' }
  const query = { accountId, filter, order: 'newest_first', after: null, limit: 1 } as const
  const { entries } = await store.auditTrail.find(query)
  return entries[0]?.atMs ?? null
}

async function invite(
  services: Services,
  request: SignedInRequest<unknown, ReturnType<typeof schema.inviteUserBody.parse>>,
): Promise<Reply> {
  const { store, now } = services
  const { email, role: wanted, account: named, accountRole: given = 'member' } = request.body
  if ((wanted === undefined) === (named === undefined)) {
    const message = 'Choose a role of the gateway, or an account.'
    throw new GatewayError('malformed_request', message, { param: 'role' })
  }
  const role = wanted === undefined ? undefined : checkedGatewayRole(wanted)
  const accountRole = checkedRole(given, 'accountRole')
  const account = named === undefined ? null : await accountNamed(services, named)
  return withUser(store, { email, now }, async (found, isNew) => {
    const draft = isUnproven(found) ? await newDraft(services, request, { user: found, account }) : null
    const invited = { user: found, isNew, link: draft?.write ?? null }
    const user = role === undefined ? found : await withRole(services, request, { ...invited, role })
    if (account !== null) await withAccount(services, request, { ...invited, account, role: accountRole })
    const link = draft?.written(account) ?? null
    const json: schema.InvitedUserReply = { user: await rowOf(services, user), link }
    return { status: 201, json }
  })
}

/** A user who gets a role, perhaps with a link; a new one is made with both. */
interface Invited {
  readonly user: User
  readonly isNew: boolean
  readonly link: AddedSignIn | null
}

async function withAccount(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  { user, isNew, link, account, role }: Invited & { readonly account: Account; readonly role: AccountRole },
): Promise<void> {
  await setMember(services.store, {
    ...{ account, user, role, nowMs: services.now(), link },
    ...(isNew ? { made: [userEntry(services, request, 'user.create', null, user)] } : {}),
    audit: (before, after) => [
      entryOf(services, request, {
        ...{ accountId: account.id, action: before === null ? 'member.create' : 'member.change' },
        ...{ target: user.email, detail: `${user.email}: ${role}` },
        ...memberChange(before, after),
      }),
    ],
  })
}

async function accountNamed({ store }: Services, nameOrId: string): Promise<Account> {
  const account = (await store.accountByName(nameOrId)) ?? (await store.accountById(nameOrId))
  if (account !== null) return account
  throw noAccountNamed(nameOrId)
}

async function withRole(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  { user, isNew, link, role }: Invited & { readonly role: GatewayRole },
): Promise<User> {
  const { store, now } = services
  const audit = (before: User, after: User) => [userEntry(services, request, 'user.role', before, after)]
  if (isNew) {
    const made = { ...user, role }
    const entries = [userEntry(services, request, 'user.create', null, user), ...audit(user, made)]
    const outcome = await store.users.create(made, entries, link)
    if (outcome !== 'created') throw conflictRefusal(outcome, user.email)
    return made
  }
  const changed = await changeUser(store, user.id, { edit: { role }, nowMs: now(), audit, link })
  if (changed === null) throw notFound()
  return changed
}

async function change(
  services: Services,
  request: SignedInRequest<unknown, ReturnType<typeof schema.changeUserBody.parse>>,
): Promise<Reply> {
  const { store, now } = services
  const { role: wanted, disabled: switched } = request.body
  const role = wanted === undefined || wanted === null ? wanted : checkedGatewayRole(wanted)
  const disabled = switched === undefined ? undefined : checkedValue(FLAG, switched, 'disabled')
  if (request.id === request.session.user.id) {
    const message = 'You cannot change your own role or disable yourself. Ask another administrator.'
    throw new GatewayError('malformed_request', message, { param: role === undefined ? 'disabled' : 'role' })
  }
  const edit = {
    ...(role === undefined ? {} : { role }),
    ...(disabled === undefined ? {} : { disabled }),
  }
  const action = role !== undefined ? 'user.role' : disabled === true ? 'user.disable' : 'user.enable'
  const user = await changeUser(store, request.id, {
    ...{ edit, nowMs: now() },
    audit: (before, after) => [userEntry(services, request, action, before, after)],
  })
  if (user === null) throw notFound()
  const json: schema.UserReply = { user: await rowOf(services, user) }
  return { status: 200, json }
}

async function resend(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const { store } = services
  const user = await store.users.byId(request.id)
  if (user === null) throw notFound()
  if (user.disabled) {
    throw new GatewayError('malformed_request', 'This user is disabled. Enable the user first.')
  }
  assertMayHavePassword(services, user)
  const auditEntries = [userEntry(services, request, 'user.invite', user, user)]
  const [first] = await store.users.memberships(user.id)
  const account = first === undefined ? null : await store.accountById(first.accountId)
  const link = await newLink(services, request, { user, account, auditEntries })
  const json: schema.UserLinkReply = { link }
  return { status: 201, json }
}

async function unbind(services: Services, request: SignedInRequest<unknown, unknown>): Promise<Reply> {
  const user = await unbindUser(services.store, request.id, {
    audit: (before, after) => [userEntry(services, request, 'user.unbind', before, after)],
  })
  if (user === null) throw notFound()
  const json: schema.UserReply = { user: await rowOf(services, user) }
  return { status: 200, json }
}

/** An entry for an action of an administrator on a user. */
function userEntry(
  services: Services,
  request: SignedInRequest<unknown, unknown>,
  action: string,
  before: User | null,
  after: User,
): AuditEntry {
  const detail = `${comparableEmail(after.email)}: ${gatewayText(after)}`
  const what = { accountId: after.id, action, target: after.id, detail }
  return entryOf(services, request, { ...what, ...userChange(before, after) })
}

function gatewayText(user: User): string {
  if (user.disabled) return 'disabled'
  const role = roleOf(user)
  if (role === null) return 'no role in the gateway'
  return gatewayRoleOf(user) === null ? `${role}, pending until the address is proven` : role
}
