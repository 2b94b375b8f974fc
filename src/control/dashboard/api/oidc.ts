/**
 * Sign-in with an identity provider. The account is the one with the e-mail address that the provider has
 * verified. A cookie with a secret and a one-time token in the store tie the browser's return to its start.
 */
import type { Account, User } from '../../../accounts/account.js'
import { checkedEmail, createAccount } from '../../../accounts/changes/change-accounts.js'
import { emailFault } from '../../../accounts/changes/fields.js'
import { userChange } from '../../../accounts/changes/audit-text.js'
import { allSignIns } from '../../../accounts/ended-sign-ins.js'
import { followAddress } from '../../../accounts/follow-address.js'
import { groupRolesOf, setGroupRoles, type GroupRoles } from '../../../accounts/group-roles.js'
import { ensureUser, userOfIdentity } from '../../../accounts/members.js'
import { planOfNewAccounts } from '../../../accounts/plans.js'
import type { OidcConfig } from '../../../config/config.js'
import { GatewayError } from '../../../errors.js'
import { headerOf } from '../../../http/message.js'
import {
  cookieOf,
  cookieText,
  noCookieText,
  OIDC_COOKIE,
  SESSION_COOKIE,
  signInTokenIdOf,
} from '../../sign-in/sessions.js'
import { IdentityError, IdentityProvider, type Identity } from '../../sign-in/identity-provider.js'
import { oneAtATime } from '../../sign-in/one-at-a-time.js'
import { openRoute, type ApiRequest, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { endFormer, entryOf, ownEntry, type Services } from '../../services.js'
import { assertCookiesWork, enter } from './sign-in.js'

/** Maximum time at the provider. */
const MAX_SIGN_IN_MS = 600_000

export function oidcRoutes(services: Services): Route[] {
  const provider = new IdentityProvider()
  return [
    openRoute('POST', '/oidc/start', {
      body: schema.oidcStartBody,
      reply: schema.oidcStartReply,
      handle: (request) => start(services, provider, request),
    }),
    openRoute('POST', '/oidc/finish', {
      body: schema.oidcFinishBody,
      reply: schema.sessionReply,
      handle: (request) => finish(services, provider, request),
    }),
  ]
}

async function start(
  services: Services,
  provider: IdentityProvider,
  request: ApiRequest<unknown, unknown>,
): Promise<Reply> {
  const { store, sessions, attemptLimits, now } = services
  const { config, publicUrl, redirectUri } = oidcSettings(services)
  assertCookiesWork(request.origin)
  // The provider returns to `publicUrl`, so a cookie set for another origin would be missing.
  if (request.origin !== publicUrl) {
    throw new GatewayError('forbidden', `Open ${publicUrl}/dashboard/ to sign in this way.`)
  }
  await attemptLimits.countStep(request.address)
  const former = cookieOf(headerOf(request.req, 'cookie'), OIDC_COOKIE)
  if (former !== null) await store.signInTokens.take('oidc', signInTokenIdOf(former), now())
  const secret = await sessions.issue('oidc', '', MAX_SIGN_IN_MS)
  const url = await provider
    .start(config, redirectUri, secret)
    .catch((error: unknown) => fail(services, request, error))
  return {
    status: 200,
    json: { url },
    cookies: [cookieText(OIDC_COOKIE, secret, MAX_SIGN_IN_MS / 1000)],
  }
}

async function finish(
  services: Services,
  provider: IdentityProvider,
  request: ApiRequest<unknown, { query: string }>,
): Promise<Reply> {
  const { store, attemptLimits, now } = services
  const { config, redirectUri } = oidcSettings(services)
  assertCookiesWork(request.origin)
  await attemptLimits.countStep(request.address)
  const secret = cookieOf(headerOf(request.req, 'cookie'), OIDC_COOKIE)
  const pass = secret === null ? null : await store.signInTokens.take('oidc', signInTokenIdOf(secret), now())
  if (secret === null || pass === null) {
    throw new GatewayError(
      'forbidden',
      'This sign-in works once, for ten minutes, in the browser that began it: sign in again.',
    )
  }
  try {
    const identity = await provider
      .finish(config, { redirectUri, secret, query: request.body.query })
      .catch((error: unknown) => fail(services, request, error))
    return await enterAs(services, request, identity)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'forbidden') await endGroupRoles(services, request)
    throw error
  }
}

/**
 * Roles by groups of the user in this browser end when the provider, or the groups, refuse. They leave the
 * store, too: links that the user made ask for its roles when they are used.
 */
async function endGroupRoles(services: Services, request: ApiRequest<unknown, unknown>): Promise<void> {
  const { store, sessions, now } = services
  const secret = cookieOf(headerOf(request.req, 'cookie'), SESSION_COOKIE)
  const userId = secret === null ? null : await sessions.endByGroup(secret)
  const user = userId === null ? null : await store.users.byId(userId)
  if (user === null) return
  const actor = { address: request.address, requestId: request.requestId, session: { user } }
  await setGroupRoles(store, {
    ...{ user, roles: { gateway: null, accounts: new Map() }, nowMs: now() },
    entryOf: (what) => entryOf(services, actor, what),
  })
}

/** Signs in the user of an identity that the provider has proven. */
async function enterAs(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  identity: Identity,
): Promise<Reply> {
  // Checked before any account is read: an unverified e-mail address may belong to another person.
  const { verifiedEmail } = identity
  // Blanks at its ends would be removed, and leave the address of another person.
  if (
    verifiedEmail === null ||
    verifiedEmail.trim() !== verifiedEmail ||
    emailFault(verifiedEmail) !== null
  ) {
    throw new GatewayError('forbidden', 'The provider has not verified your e-mail address.')
  }
  const user = await userOf(services, request, { ...identity, email: checkedEmail(verifiedEmail) })
  if (!(await services.sessions.mayEnter(user, 'provider'))) throw noAccount()
  const entered = await enter(services, request, {
    ...{ user, auditAction: 'session.sign-in-oidc', proof: 'provider', refusal: noAccount },
    // The provider has proven the identity, so a password change does not concern this sign-in.
    isStillProven: ({ issuer, subject }) => issuer === identity.issuer && subject === identity.subject,
  })
  return { ...entered, cookies: [...(entered.cookies ?? []), noCookieText(OIDC_COOKIE)] }
}

/** A user at the provider with a verified address. */
interface Verified extends Identity {
  readonly email: string
}

/** The user of the identity with the roles of its groups. Throws as `boundUser` does. */
async function userOf(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  verified: Verified,
): Promise<User> {
  const { store, now, snapshot } = services
  const { oidc } = snapshot().config.dashboard
  const roles = await groupRolesOf(store, oidc?.roles ?? null, verified.groups)
  const known = await store.users.byEmail(verified.email)
  const isBound = known !== null && isOf(known, verified) && isSettled(known)
  const user = isBound
    ? known
    : await oneAtATime(services, verified, () => boundUser(services, request, { ...verified, roles }))
  const actor = { address: request.address, requestId: request.requestId, session: { user } }
  await setGroupRoles(store, {
    ...{ user, roles, nowMs: now() },
    entryOf: (what) => entryOf(services, actor, what),
  })
  return (await store.users.byId(user.id)) ?? user
}

/** Whether the user is bound to the identity. */
function isOf(user: User, { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>): boolean {
  return user.subject === subject && user.issuer === issuer
}

/**
 * Whether nothing of a first sign-in, or of a change of the address, is left to do. An earlier version let
 * users who are bound to an identity set a password.
 */
function isSettled({ passwordHash, formerEmail, unproven }: User): boolean {
  return passwordHash === '' && formerEmail === undefined && unproven !== true
}

/**
 * The user of the identity, or else of its verified e-mail address, bound to the identity; made if the
 * configuration allows it or a group gives a role. Its address becomes that of the provider. Throws
 * `forbidden` if the address belongs to another identity.
 */
async function boundUser(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  verified: Verified & { readonly roles: GroupRoles },
): Promise<User> {
  const { store } = services
  const known = (await userOfIdentity(store, verified)) ?? (await store.users.byEmail(verified.email))
  const found = known ?? (await newUser(services, request, verified))
  const isBound = isOf(found, verified) && found.passwordHash === '' && found.unproven !== true
  const user = isBound ? found : await bind(services, request, { user: found, verified })
  const { email } = verified
  if (user.email === email && isSettled(user)) return user
  const actor = { address: request.address, requestId: request.requestId, session: { user } }
  const moved = await followAddress(store, {
    ...{ user, email, nowMs: services.now() },
    audit: (before, after) => [
      entryOf(services, actor, {
        ...{ accountId: user.id, action: 'user.email', target: user.id },
        ...{ detail: `${before.email} → ${after.email}`, ...userChange(before, after) },
      }),
    ],
  })
  if (moved !== null) return moved
  services.log.warn('a user keeps the former address: another user has that of the identity provider', {
    account_id: user.id,
    request_id: request.requestId,
  })
  return user
}

/**
 * Binds the user to the identity. A password of before, which another person may know, is removed, and of an
 * unproven user what such a person made. Throws `forbidden` if the user belongs to another identity.
 */
async function bind(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  { user, verified }: { readonly user: User; readonly verified: Verified },
): Promise<User> {
  const { store } = services
  const { issuer, subject } = verified
  const bound = await store.users.change(
    user.id,
    (current) => {
      if (current.subject === undefined) return { issuer, subject, passwordHash: '' }
      return isOf(current, verified) ? { passwordHash: '' } : null
    },
    // A new user has an entry already.
    (before, after) =>
      before.signedInAtMs === undefined
        ? []
        : [
            {
              ...ownEntry(services, request, { user, action: 'user.bind' }),
              ...{ detail: user.email, ...userChange(before, after) },
            },
          ],
    // Others may have opened these: with a password, or with a link that they made themselves.
    () => ({ ends: [allSignIns(user.id)] }),
  )
  if (bound === null) throw noAccount()
  if (bound.unproven !== true) return bound
  await endFormer(services, request, { user, isSameHolder: request.session?.user.id === user.id })
  // Last: a sign-in that was interrupted is completed by the next one.
  return (await store.users.change(user.id, { unproven: null })) ?? bound
}

async function newUser(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  { email, roles }: Verified & { readonly roles: GroupRoles },
): Promise<User> {
  const { store, now, snapshot } = services
  const { oidc } = snapshot().config.dashboard
  if (roles.gateway !== null || roles.accounts.size > 0) {
    const { user } = await ensureUser(store, {
      ...{ email, now },
      audit: (made) => [ownEntry(services, request, { user: made, action: 'user.create' })],
    })
    return user
  }
  if (oidc?.createAccounts !== true) {
    throw noAccount()
  }
  const plan = planOfNewAccounts(snapshot().config.plans)
  const wanted = { email, plan, password: { none: true }, isSelfMade: true } as const
  const auditEntries = ({ id }: Account) => [
    ownEntry(services, request, { user: { id, email }, action: 'account.sign-up' }),
  ]
  const { user } = await createAccount(store, wanted, { now, audit: auditEntries })
  if (user === null) throw new GatewayError('bug', 'an account was made without its user')
  return user
}

/**
 * One text for an address without a user, with a disabled one and with one of another identity: the provider
 * may have given the address to another person.
 */
function noAccount(): GatewayError {
  return new GatewayError('forbidden', 'You have no account here, or it is disabled. Ask an administrator.')
}

/** The configured provider. The redirect address never comes from a request. */
function oidcSettings({ snapshot }: Services): {
  readonly config: OidcConfig
  readonly publicUrl: string
  readonly redirectUri: string
} {
  const { oidc, publicUrl } = snapshot().config.dashboard
  if (oidc === null || publicUrl === null) {
    throw new GatewayError('forbidden', 'No identity provider is configured.')
  }
  return { config: oidc, publicUrl, redirectUri: `${publicUrl}/dashboard/oidc` }
}

function fail({ log }: Services, { requestId }: ApiRequest<unknown, unknown>, error: unknown): never {
  if (!(error instanceof IdentityError)) throw error
  log.warn('sign-in with the identity provider failed', {
    request_id: requestId,
    reason: error.message,
  })
  if (error.fault === 'userinfo') {
    throw new GatewayError(
      'identity_unavailable',
      `${error.message}: an administrator must check its settings.`,
    )
  }
  if (error.fault === 'unavailable') {
    throw new GatewayError(
      'identity_unavailable',
      'The identity provider does not reply; try again later, or sign in with a password.',
    )
  }
  throw new GatewayError('forbidden', 'The identity provider refused the sign-in; sign in again.')
}
