/** Password changes, sign-up, and one-time links that set a password. */
import type { Account, User } from '../../../accounts/account.js'
import { checkedEmail, createAccount } from '../../../accounts/change-accounts.js'
import { assertPassword } from '../../../accounts/password.js'
import { planOfAdministrators, planOfNewAccounts } from '../../../accounts/plans.js'
import { GatewayError } from '../../../errors.js'
import { assertMayHavePassword, providerOf } from '../sign-in/bound-users.js'
import { openRoute, signedRoute, type ApiRequest, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { ownEntry, type Services } from '../services.js'
import { signInTokenIdOf } from '../sign-in/sessions.js'
import { hasAdmin, redeemSetUp } from '../sign-in/set-up.js'
import { assertCookiesWork, enter } from './sign-in.js'

export function passwordRoutes(services: Services): Route[] {
  return [
    signedRoute('PUT', '/password', {
      credential: 'session',
      body: schema.passwordBody,
      reply: schema.sessionReply,
      handle: (request) => changePassword(services, request, request.session.user),
    }),
    openRoute('POST', '/setup', {
      body: schema.setUpBody,
      reply: schema.sessionReply,
      handle: (request) => setUp(services, request),
    }),
    openRoute('POST', '/reset', {
      body: schema.resetBody,
      reply: schema.sessionReply,
      handle: (request) => reset(services, request),
    }),
    openRoute('POST', '/sign-up', {
      body: schema.signUpBody,
      reply: schema.doneReply,
      handle: (request) => signUp(services, request),
    }),
  ]
}

async function changePassword(
  services: Services,
  request: ApiRequest<unknown, { current?: string | undefined; next: string }>,
  user: User,
): Promise<Reply> {
  const { attemptLimits, passwords } = services
  assertMayHavePassword(services, user)
  assertPassword(request.body.next)
  if (user.passwordHash !== '') {
    await attemptLimits.attempt(user.email, request.address, `session ${user.id}`)
    if (!(await passwords.matches(user.passwordHash, request.body.current ?? ''))) {
      throw wrongCurrent()
    }
  }
  const changed = await setPassword(services, request, {
    user,
    password: request.body.next,
    action: 'account.password',
    // A link or another change may have replaced the password that was verified.
    mayReplace: ({ passwordHash }) => passwordHash === user.passwordHash,
  })
  if (changed === null) throw wrongCurrent()
  return enter(services, request, { user: changed, auditAction: null, refusal: wrongCurrent })
}

function wrongCurrent(): GatewayError {
  return new GatewayError('forbidden', 'The current password is wrong.', { param: 'current' })
}

interface PasswordChange {
  readonly user: User
  readonly password: string
  /** The action of the audit entry. */
  readonly action: string
  /** Whether the password of the user, as stored now, may be replaced. */
  readonly mayReplace: (stored: User) => boolean
}

/**
 * Ends all earlier sessions and links, so that only the new password opens sessions. Returns the changed
 * user; null, without a change, if the stored password may not be replaced.
 */
async function setPassword(
  services: Services,
  request: Pick<ApiRequest<unknown, unknown>, 'address' | 'requestId'>,
  { user, password, action, mayReplace }: PasswordChange,
): Promise<User | null> {
  const { store, sessions, passwords, snapshot } = services
  const passwordHash = await passwords.hash(password)
  const { dashboard } = snapshot().config
  const changed = await store.users.change(
    user.id,
    // The identity provider may have signed the user in for the first time meanwhile.
    (stored) => (providerOf(stored, dashboard) === null && mayReplace(stored) ? { passwordHash } : null),
    () => [ownEntry(services, request, { user, action })],
  )
  if (changed === null) return null
  await sessions.endAll(user.id)
  for (const kind of ['device', 'reset'] as const) {
    await store.signInTokens.end(kind, user.id, null)
  }
  return changed
}

async function setUp(
  services: Services,
  request: ApiRequest<unknown, { link: string; email: string; password: string }>,
): Promise<Reply> {
  const { store, attemptLimits, passwords, now } = services
  const { link, email, password } = request.body
  assertCookiesWork(request.origin)
  await attemptLimits.countStep(request.address)
  const id = signInTokenIdOf(link)
  const found = await store.signInTokens.find('set-up', id, now())
  if (found === null || (await hasAdmin(store))) throw badLink()
  // Checked before the link is used up, so that a typing error does not consume it.
  checkedEmail(email)
  assertPassword(password)
  const sources = { now, hash: (text: string) => passwords.hash(text) }
  const plan = planOfAdministrators(services.snapshot().config.plans)
  const wanted = { email, password, plan, role: 'admin' } as const
  const auditEntries = ({ id }: Account) => [
    ownEntry(services, request, { user: { id, email }, action: 'account.set-up' }),
  ]
  const made = await redeemSetUp(store, { id, now }, () =>
    createAccount(store, wanted, { ...sources, audit: auditEntries }),
  )
  if (made === null) throw badLink()
  if (made.user === null) throw new GatewayError('bug', 'an account was made without its user')
  return enter(services, request, { user: made.user, auditAction: null, refusal: badLink })
}

async function reset(
  services: Services,
  request: ApiRequest<unknown, { link: string; password: string }>,
): Promise<Reply> {
  const { store, attemptLimits, now } = services
  assertCookiesWork(request.origin)
  await attemptLimits.countStep(request.address)
  const id = signInTokenIdOf(request.body.link)
  const found = await store.signInTokens.find('reset', id, now())
  const owner = found === null ? null : await store.users.byId(found.accountId)
  if (owner === null) throw badLink()
  assertMayHavePassword(services, owner)
  assertPassword(request.body.password)
  const pass = await store.signInTokens.take('reset', id, now())
  const user = pass === null ? null : await store.users.byId(pass.accountId)
  if (user === null || !(await services.sessions.mayEnter(user))) throw badLink()
  const changed = await setPassword(services, request, {
    user,
    password: request.body.password,
    action: 'account.password-by-link',
    mayReplace: () => true,
  })
  if (changed === null) throw badLink()
  return enter(services, request, { user: changed, auditAction: null, refusal: badLink })
}

function badLink(): GatewayError {
  return new GatewayError(
    'forbidden',
    'This link is invalid or has expired: it works once, for one day. Ask for a new one.',
    { param: 'link' },
  )
}

async function signUp(
  services: Services,
  request: ApiRequest<unknown, { email: string; password: string }>,
): Promise<Reply> {
  const { store, attemptLimits, passwords, now } = services
  const { password } = request.body
  if (!services.snapshot().config.dashboard.selfSignUp) {
    throw new GatewayError('forbidden', 'Ask an administrator for an account.')
  }
  const email = checkedEmail(request.body.email)
  assertPassword(password)
  await attemptLimits.attempt(`new ${email}`, request.address, null)
  // Before the address is looked up: a known one gets the same reply after the same time.
  const passwordHash = await passwords.hash(password)
  const plan = planOfNewAccounts(services.snapshot().config.plans)
  const wanted = { email, password, plan, isSelfMade: true } as const
  try {
    await createAccount(store, wanted, {
      ...{ now, hash: () => passwordHash },
      audit: ({ id }) => [ownEntry(services, request, { user: { id, email }, action: 'account.sign-up' })],
    })
  } catch (error) {
    if (!(error instanceof GatewayError && error.wire.param === 'email')) throw error
  }
  return { status: 200, json: {} }
}
