/** Password changes, sign-up, and one-time links that set a password. */
import type { Account, Member, User } from '../../../accounts/account.js'
import { isUnproven } from '../../../accounts/address-proof.js'
import { checkedEmail, createAccount } from '../../../accounts/changes/change-accounts.js'
import { allSignIns } from '../../../accounts/ended-sign-ins.js'
import { setAccepted, writeAsIfMade } from '../../../accounts/members.js'
import { assertPassword } from '../../../accounts/password.js'
import { planOfAdministrators, planOfNewAccounts } from '../../../accounts/plans.js'
import { GatewayError } from '../../../errors.js'
import { headerOf } from '../../../http/message.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import type { AddedSignIn } from '../../../store/sign-in-tokens.js'
import { assertMayHavePassword, providerOf } from '../../sign-in/bound-users.js'
import { openRoute, signedRoute, type ApiRequest, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { endFormer, entryOf, ownEntry, type Services } from '../../services.js'
import { makeLink, usableLink } from '../../sign-in/links.js'
import {
  cookieOf,
  cookieText,
  DEVICE_COOKIE,
  SESSION_COOKIE,
  SESSION_MS,
  signInTokenIdOf,
} from '../../sign-in/sessions.js'
import { hasAdmin, redeemSetUp } from '../../sign-in/set-up.js'
import { assertCookiesWork, enter, sessionView } from './sign-in.js'

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
      reply: schema.resetReply,
      handle: (request) => reset(services, request),
    }),
    openRoute('POST', '/lost-password', {
      body: schema.lostPasswordBody,
      reply: schema.doneReply,
      handle: (request) => lostPassword(services, request),
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
  const { attemptLimits, passwords, sessions } = services
  assertCookiesWork(request.origin)
  assertMayHavePassword(services, user)
  assertPassword(request.body.next)
  if (user.passwordHash !== '') {
    await attemptLimits.attempt(user.email, request.address, `session ${user.id}`)
    if (!(await passwords.matches(user.passwordHash, request.body.current ?? ''))) {
      throw wrongCurrent()
    }
  }
  const known = await sessions.device(cookieOf(headerOf(request.req, 'cookie'), DEVICE_COOKIE), user.id)
  const { session, token } = await sessions.draft(user)
  const changed = await setPassword(services, request, {
    user,
    password: request.body.next,
    action: 'account.password',
    // A link or another change may have replaced the password that was verified.
    mayReplace: (stored) => stored.passwordHash === user.passwordHash && !stored.disabled,
    kept: known === null ? [] : [known],
    link: { token, replaces: [] },
  })
  if (changed === null) throw wrongCurrent()
  const cookies = [cookieText(SESSION_COOKIE, session.secret, SESSION_MS / 1000)]
  return { status: 200, json: await sessionView(services, session), cookies }
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
  /** Whether the address of the user who sets it is not proven; absent: as before. */
  readonly isUnproven?: boolean
  /** Ids of the known devices and links that stay. */
  readonly kept?: readonly string[]
  /** The session of the user who sets it. */
  readonly link?: AddedSignIn
}

/**
 * Ends all earlier sessions and links, so that only the new password opens sessions. Returns the changed
 * user; null, without a change, if the stored password may not be replaced.
 */
async function setPassword(
  services: Services,
  request: Pick<ApiRequest<unknown, unknown>, 'address' | 'requestId'>,
  { user, password, action, mayReplace, isUnproven, kept, link }: PasswordChange,
): Promise<User | null> {
  const { store, passwords, snapshot } = services
  const passwordHash = await passwords.hash(password)
  const { dashboard } = snapshot().config
  const proof = isUnproven === undefined ? {} : { unproven: isUnproven ? (true as const) : null }
  return store.users.change(
    user.id,
    // The identity provider may have signed the user in for the first time meanwhile.
    (stored) => {
      const isAllowed = providerOf(stored, dashboard) === null && mayReplace(stored)
      return isAllowed ? { passwordHash, ...proof } : null
    },
    () => [ownEntry(services, request, { user, action })],
    () => ({ ends: [allSignIns(user.id, kept)], link }),
  )
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
  const { store, attemptLimits, passwords, now } = services
  const { link: secret, password } = request.body
  assertCookiesWork(request.origin)
  await attemptLimits.countStep(request.address)
  // Before the link is read, which compares the password: a slip costs neither the link nor an attempt.
  assertPassword(password)
  const link = await usableLink(services, {
    secret,
    isSignInOf: (user) => hasSignIn(services, request, user),
  })
  if (link === null) throw badLink()
  const { user, provesAddress, setsPassword, accepted, suspended } = link
  const done = { status: 200, json: { email: user.email } }
  if (!setsPassword) {
    if ((await store.signInTokens.take('reset', link.id, now())) === null) throw badLink()
    // After the same time.
    await passwords.hash(password)
    return done
  }
  if (provesAddress && !(await services.sessions.mayEnter(user, 'password', true))) throw badLink()
  const isSameHolder = provesAddress && isUnproven(user) && (await hasSignIn(services, request, user))
  // Before the password is set: its owner may not get the roles of others.
  await setAccepted(store, suspended, { isAccepted: false, nowMs: now() })
  // The link ends last: a use that was interrupted is completed by the next one.
  const kept = [link.id]
  const hasFormer = provesAddress && isUnproven(user) && user.signedInAtMs !== undefined
  if (hasFormer && !(await signOut(services, user, kept))) throw badLink()
  if (hasFormer) await endFormer(services, request, { user, isSameHolder })
  const changed = await setPassword(services, request, {
    ...{ user, password, action: 'account.password-by-link', isUnproven: !provesAddress, kept },
    // Of concurrent uses of a link, one sets the password.
    mayReplace: ({ passwordHash }) => passwordHash === (hasFormer ? '' : user.passwordHash),
  })
  if (changed === null) throw badLink()
  await setAccepted(store, accepted, {
    ...{ isAccepted: true, nowMs: now() },
    audit: (member) => [acceptance(services, request, member)],
  })
  // A session would tell that the address had no user.
  const entered = provesAddress
    ? await enter(services, request, { user: changed, auditAction: null, refusal: badLink })
    : done
  await store.signInTokens.take('reset', link.id, now())
  return entered
}

/**
 * Ends the password and the sign-ins of a user whose address another person may have used, except these;
 * false if the password has changed meanwhile. After an interruption no person counts as the same holder.
 */
async function signOut({ store }: Services, user: User, kept: readonly string[]): Promise<boolean> {
  const changed = await store.users.change(
    user.id,
    ({ passwordHash }) => (passwordHash === user.passwordHash ? { passwordHash: '' } : null),
    () => [],
    () => ({ ends: [allSignIns(user.id, kept)] }),
  )
  return changed !== null
}

/** Whether the request comes from a session of the user, or has its present password. */
async function hasSignIn(
  { attemptLimits, passwords }: Services,
  { session, address, body }: ApiRequest<unknown, { password: string }>,
  user: User,
): Promise<boolean> {
  if (session?.user.id === user.id) return true
  await attemptLimits.attempt(user.email, address, null)
  return passwords.matches(user.passwordHash, body.password)
}

function acceptance(
  services: Services,
  { address, requestId }: Pick<ApiRequest<unknown, unknown>, 'address' | 'requestId'>,
  { accountId, email }: Member,
): AuditEntry {
  const actor = { session: { user: { email } }, address, requestId }
  return entryOf(services, actor, { accountId, action: 'invitation.accept', target: email, detail: email })
}

function badLink(): GatewayError {
  return new GatewayError(
    'forbidden',
    'This link is invalid or has expired: it works once, for one day. Sign in if you have a password here, or ask for a new link.',
    { param: 'link' },
  )
}

/**
 * Mails a link that sets a new password. The address is looked up after the reply, so that neither its words
 * nor its time tell whether it has a user.
 */
async function lostPassword(
  services: Services,
  request: ApiRequest<unknown, { email: string }>,
): Promise<Reply> {
  const { snapshot, attemptLimits, log } = services
  if (snapshot().config.smtp === null) {
    throw new GatewayError('forbidden', 'Ask an administrator for a link to set a new password.')
  }
  const email = checkedEmail(request.body.email)
  await attemptLimits.attempt(`lost ${email}`, request.address, null)
  setImmediate(() => {
    mailNewPassword(services, request, email).catch((error: unknown) => {
      // The address has got enough mails; the reply tells nothing about it.
      if (error instanceof GatewayError && error.kind === 'rate_limited') return
      log.error('a link for a new password was not sent', error)
    })
  })
  return { status: 200, json: {} }
}

/** A user of an identity provider gets a mail without a link; a disabled one gets none. */
async function mailNewPassword(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  email: string,
): Promise<void> {
  const user = await services.store.users.byEmail(email)
  if (user === null || user.disabled) return
  const maker = { as: 'self', id: user.id } as const
  await services.store.auditTrail.add(ownEntry(services, request, { user, action: 'account.password-lost' }))
  await makeLink(services, { maker, user, account: null, origin: request.origin ?? '' })
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
    const known = await store.users.byEmail(email)
    if (known !== null) await writeAsIfMade(store, known.id)
  }
  // After the reply: a proven address gets no mail.
  setImmediate(() => {
    mailProof(services, request, email).catch((error: unknown) => {
      services.log.error('a link that proves an address was not sent', error)
    })
  })
  return { status: 200, json: {} }
}

/** Mails a link that proves the address, also to one who signs up again because the mail was lost. */
async function mailProof(
  services: Services,
  { origin }: Pick<ApiRequest<unknown, unknown>, 'origin'>,
  email: string,
): Promise<void> {
  const { store, snapshot } = services
  if (snapshot().config.smtp === null) return
  const user = await store.users.byEmail(email)
  const account = user === null ? null : await store.accountByEmail(email)
  if (user === null || account === null || !isUnproven(user)) return
  const maker = { as: 'owner', id: user.id } as const
  try {
    await makeLink(services, { maker, user, account, origin: origin ?? 'http://localhost' })
  } catch (error) {
    // The address has got enough mails; the reply tells nothing about it.
    if (!(error instanceof GatewayError && error.kind === 'rate_limited')) throw error
  }
}
