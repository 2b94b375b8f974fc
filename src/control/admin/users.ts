/** Users in the admin API: frees one of its identity at an identity provider, and ends its programs. */
import { roleOf, GATEWAY_ROLES, type User } from '../../accounts/account.js'
import { USER_STATES, userState } from '../../accounts/address-proof.js'
import { entryOf } from '../../accounts/changes/decide.js'
import { choiceType, FLAG, type Fields, readFields } from '../../accounts/changes/field-types.js'
import { SHOWN_TEXT } from '../../accounts/changes/fields.js'
import { userChange } from '../../accounts/changes/audit-text.js'
import { LOGIN_KINDS } from '../../accounts/logins/login-records.js'
import { unbindUser } from '../../accounts/members.js'
import { etagOf, unmet } from './conditional-requests.js'
import { notFound } from '../problem-details.js'
import { fieldsObject, replyForm } from './reply-forms.js'
import type { AdminRequest, AdminRoute, JsonReply } from './route.js'
import { actorOf, type AdminServices } from './services.js'

/** A user in replies. */
const USER_FIELDS: Fields = {
  id: { type: SHOWN_TEXT, means: 'The id of the user.', readOnly: true },
  email: { type: SHOWN_TEXT, means: 'The e-mail address, in lower case.', readOnly: true },
  role: { type: choiceType(GATEWAY_ROLES).nullable(), means: 'The role in the gateway.', readOnly: true },
  state: {
    type: choiceType(USER_STATES),
    means: '`invited` before the first sign-in; `unproven` before the address is proven.',
    readOnly: true,
  },
  bound: {
    type: FLAG,
    means: 'Whether an identity of an identity provider signs in as the user.',
    readOnly: true,
  },
  etag: { type: SHOWN_TEXT, means: 'The entity tag.', readOnly: true },
}

const USER = replyForm('User', () => fieldsObject(USER_FIELDS))

export function userRoutes(services: AdminServices): AdminRoute[] {
  return [
    {
      ...{ method: 'POST', path: '/users/{email}/unbind', scopes: ['accounts:write'] },
      summary: 'Free a user of its identity at an identity provider, and end its sessions and links',
      body: { name: 'Unbind', fields: {}, isOptional: true },
      replies: { 200: USER },
      handle: (request) => unbind(services, request),
    },
    {
      ...{ method: 'DELETE', path: '/users/{email}/logins', scopes: ['accounts:write'] },
      summary: 'End the sign-ins of all programs of a user',
      replies: { 204: null },
      handle: (request) => endPrograms(services, request),
    },
  ]
}

/** Users belong to no account, so that a token with an account sees none. */
async function unbind({ store, now }: AdminServices, request: AdminRequest): Promise<JsonReply> {
  const { token, path, body, conditions } = request
  readFields({}, body)
  const known = token.accountId === null ? await store.users.byEmail(path['email'] ?? '') : null
  if (known === null) throw notFound()
  const user = await unbindUser(store, known.id, {
    check: (stored) => unmet(conditions, tagOf(stored)),
    audit: (before, after) => [
      entryOf(now(), actorOf(request), {
        ...{ accountId: after.id, action: 'user.unbind', target: after.id, detail: after.email },
        ...userChange(before, after),
      }),
    ],
  })
  if (user === null) throw notFound()
  const { id, email, subject } = user
  const etag = tagOf(user)
  const json = { id, email, role: roleOf(user), state: userState(user), bound: subject !== undefined, etag }
  return { status: 200, json, etag }
}

/** Again: 204. */
async function endPrograms({ store, now }: AdminServices, request: AdminRequest): Promise<'none'> {
  const { token, path } = request
  const user = token.accountId === null ? await store.users.byEmail(path['email'] ?? '') : null
  if (user === null) throw notFound()
  await store.signInTokens.end(LOGIN_KINDS, user.id, null, (ended) => {
    const count = ended.filter((kind) => kind !== 'access').length
    const detail = `${user.email}: ${count}`
    const what = { accountId: user.id, action: 'login.end', target: user.id, detail }
    return count === 0 ? [] : [entryOf(now(), actorOf(request), what)]
  })
  return 'none'
}

function tagOf(user: User): string {
  const { id, email, issuer, subject } = user
  return etagOf('user', id, email, roleOf(user), userState(user), issuer ?? null, subject ?? null)
}
