/**
 * Sign-in and sign-out. A wrong password, an unknown e-mail address and an account without a password get the
 * same reply after the same time, so that guesses reveal nothing.
 */
import { comparableEmail, roleOf, type User } from '../../../accounts/account.js'
import { LOGIN_KINDS } from '../../../accounts/logins/login-records.js'
import { hasEntered, isUnproven } from '../../../accounts/address-proof.js'
import { setAccepted } from '../../../accounts/members.js'
import { isOutdated } from '../../../accounts/password.js'
import { isLoopback } from '../../../http/private-addresses.js'
import { GatewayError } from '../../../errors.js'
import { headerOf } from '../../../http/message.js'
import {
  accountDisabled,
  cookieOf,
  cookieText,
  DEVICE_COOKIE,
  noCookieText,
  SESSION_COOKIE,
  DEVICE_MS,
  SESSION_MS,
  signInTokenIdOf,
  type Session,
  type SessionProof,
} from '../../sign-in/sessions.js'
import { assertMayHavePassword } from '../../sign-in/bound-users.js'
import { openRoute, signedRoute, type ApiRequest, type Reply, type Route } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { withBelow } from '../../../usage/account-selection.js'
import { accountView, ownEntry, planOf, type Services } from '../../services.js'
import { hasAdmin } from '../../sign-in/set-up.js'

export function sessionRoutes(services: Services): Route[] {
  const { sessions, store } = services
  return [
    openRoute('GET', '/session', {
      reply: schema.sessionReply,
      // Polled by open pages, so it does not extend the session.
      passive: true,
      handle: async ({ session }) => ({ status: 200, json: await sessionView(services, session) }),
    }),
    openRoute('POST', '/session', {
      body: schema.signInBody,
      reply: schema.sessionReply,
      handle: (request) => signIn(services, request),
    }),
    signedRoute('DELETE', '/session', {
      credential: 'session',
      reply: schema.doneReply,
      handle: async ({ req }) => {
        const secret = cookieOf(headerOf(req, 'cookie'), SESSION_COOKIE)
        if (secret !== null) await sessions.end(secret)
        return goodbye()
      },
    }),
    signedRoute('DELETE', '/sessions', {
      credential: 'session',
      reply: schema.doneReply,
      handle: async (request) => {
        const { user } = request.session
        const entry = ownEntry(services, request, { user, action: 'session.end-all' })
        await store.signInTokens.end(['session', 'device', ...LOGIN_KINDS], user.id, null, () => [entry])
        return goodbye()
      },
    }),
    signedRoute('GET', '/plans', {
      credential: 'session',
      reply: schema.plansReply,
      handle: () => {
        const snapshot = services.snapshot()
        const plans = Object.keys(snapshot.config.plans).map((name) => planOf(snapshot, name))
        return { status: 200, json: { plans } }
      },
    }),
  ]
}

/** A completed sign-in. */
interface SignIn {
  readonly user: User
  /** The action of the audit entry; null if the caller has stored one. */
  readonly auditAction: string | null
  /** What has opened the session. By default: a password. */
  readonly proof?: SessionProof
  /** Whether the stored user still has the proven credential. By default: the password hash of `user`. */
  readonly isStillProven?: (stored: User) => boolean | Promise<boolean>
  /** The reply if the credential was replaced, or the user disabled, during the sign-in. */
  readonly refusal: () => GatewayError
}

/**
 * Opens a session and ends the browser's previous one. The browser becomes a known device. Throws `refusal`
 * and leaves nothing open if the credential was replaced or the user disabled in the meantime.
 */
export async function enter(
  services: Services,
  request: ApiRequest<unknown, unknown>,
  signIn: SignIn,
): Promise<Reply> {
  assertCookiesWork(request.origin)
  const { sessions, store } = services
  const { user, auditAction } = signIn
  const header = headerOf(request.req, 'cookie')
  const former = cookieOf(header, SESSION_COOKIE)
  if (former !== null) await sessions.end(former)
  const session = await sessions.open(user, signIn.proof)
  const isKnown = (await sessions.device(cookieOf(header, DEVICE_COOKIE), user.id)) !== null
  const device = isKnown ? null : await sessions.issue('device', user.id, DEVICE_MS)
  // A password change or a disabling first writes the user and then ends what is stored. So it either ends
  // what has been stored here, or this read sees it.
  if (!(await isStillValid(services, signIn))) {
    await sessions.end(session.secret)
    if (device !== null) await store.signInTokens.take('device', signInTokenIdOf(device), services.now())
    services.log.info('sign-in refused', { account_id: user.id, request_id: request.requestId })
    throw signIn.refusal()
  }
  if (user.signedInAtMs === undefined) {
    await store.users.change(user.id, { signedInAtMs: services.now() })
  }
  await noteEntered(services, user)
  if (auditAction !== null) {
    await store.auditTrail.add(ownEntry(services, request, { user, action: auditAction }))
  }
  const cookies = [cookieText(SESSION_COOKIE, session.secret, SESSION_MS / 1000)]
  if (device !== null) cookies.push(cookieText(DEVICE_COOKIE, device, DEVICE_MS / 1000))
  return { status: 200, json: await sessionView(services, session), cookies }
}

/** Inviters see from now on that the user has signed in since it was given its roles. */
async function noteEntered({ store, now }: Services, user: User): Promise<void> {
  if (user.signedInAtMs === undefined || isUnproven(user)) return
  const roles = await store.users.memberships(user.id)
  const news = roles.filter((member) => !hasEntered(user, member))
  await setAccepted(store, news, { isAccepted: true, nowMs: now() })
}

/** Whether the user, as stored now, may still enter with the credential of the sign-in. */
async function isStillValid(
  { store, sessions }: Services,
  { user, proof, isStillProven = ({ passwordHash }) => passwordHash === user.passwordHash }: SignIn,
): Promise<boolean> {
  const stored = await store.users.byId(user.id)
  return stored !== null && (await sessions.mayEnter(stored, proof)) && (await isStillProven(stored))
}

/**
 * Over plain http, browsers drop `__Host-` cookies except on loopback; refuses a sign-in that could not last.
 */
export function assertCookiesWork(origin: string | null): void {
  if (origin === null || !origin.toLowerCase().startsWith('http:')) return
  if (!URL.canParse(origin) || isLoopback(new URL(origin).hostname)) return
  throw new GatewayError(
    'forbidden',
    'Browsers do not store a sign-in over plain HTTP. Use HTTPS or localhost.',
  )
}

/** The session as the page sees it. */
export async function sessionView(services: Services, session: Session | null): Promise<schema.SessionReply> {
  const { dashboard } = services.snapshot().config
  const isAdmin = session !== null && roleOf(session.user) === 'admin'
  return {
    account: session === null ? null : await accountView(services, session),
    user: session === null ? null : { email: session.user.email, role: roleOf(session.user) },
    accounts: session === null ? [] : await accountsOf(services, session),
    csrf: session?.csrf ?? null,
    endsAtMs: session?.endsAtMs ?? null,
    needsSetUp: session === null && !(await hasAdmin(services.store)),
    signUp: dashboard.selfSignUp,
    oidc: dashboard.oidc?.name ?? null,
    mails: services.snapshot().config.smtp !== null,
    publicUrl: dashboard.publicUrl,
    grafanaUrl: isAdmin ? dashboard.grafanaUrl : null,
    version: services.version,
    sampleData: services.hasSampleData,
  }
}

/** Accounts below those of an owner that the page can choose. */
const MOST_BELOW = 500

/** The accounts with the user's role; administrators and auditors find others by the list of accounts. */
async function accountsOf(
  { store }: Services,
  { user, accounts, members }: Session,
): Promise<schema.SessionReply['accounts']> {
  const own = accounts.flatMap(({ id, name }) => {
    const member = members.find(({ accountId }) => accountId === id)
    const role = member === undefined ? null : roleOf(member)
    return role === null ? [] : [{ id, name, role }]
  })
  if (roleOf(user) !== null) return own
  const owned = own.filter(({ role }) => role === 'owner').map(({ id }) => id)
  const below = new Set<string>()
  for (const id of owned) {
    for (const child of await withBelow({ store }, id)) below.add(child)
    if (below.size > MOST_BELOW) break
  }
  const others = [...below].filter((id) => !own.some((each) => each.id === id)).slice(0, MOST_BELOW)
  const found = await Promise.all(others.map((id) => store.accountById(id)))
  const named = found.flatMap((account) =>
    account === null ? [] : [{ id: account.id, name: account.name, role: 'above' as const }],
  )
  return [...own, ...named.sort((a, b) => (a.name < b.name ? -1 : 1))]
}

function goodbye(): Reply {
  return { status: 200, json: {}, cookies: [noCookieText(SESSION_COOKIE)] }
}

async function signIn(
  services: Services,
  request: ApiRequest<unknown, { email: string; password: string }>,
): Promise<Reply> {
  const { store, sessions, attemptLimits, passwords } = services
  const { body, address } = request
  assertCookiesWork(request.origin)
  const email = comparableEmail(body.email)
  const user = await store.users.byEmail(email)
  const secret = cookieOf(headerOf(request.req, 'cookie'), DEVICE_COOKIE)
  const device = await sessions.device(secret, user?.id ?? null)
  await attemptLimits.attempt(email, address, device)
  const isRight = await passwords.matches(user?.passwordHash ?? null, body.password)
  if (user === null || !isRight) {
    services.log.info('sign-in refused', { account_id: user?.id, request_id: request.requestId })
    throw wrongPassword()
  }
  // Reported only to users with the right password, which an earlier version may have stored.
  assertMayHavePassword(services, user)
  if (!(await sessions.mayEnter(user))) throw accountDisabled()
  await attemptLimits.reset(email, address, device)
  const passwordHash = await rehashed(services, user, body.password)
  return enter(services, request, {
    ...{ user, auditAction: 'session.sign-in', refusal: wrongPassword },
    // Another sign-in may have hashed the same password again.
    isStillProven: (stored) =>
      stored.passwordHash === passwordHash || passwords.matches(stored.passwordHash, body.password),
  })
}

/** Replaces an outdated hash of the verified password, unless it has changed. Returns the hash in use. */
async function rehashed(
  { store, passwords }: Services,
  { id, passwordHash: verified }: User,
  password: string,
): Promise<string> {
  const passwordHash = isOutdated(verified) ? await passwords.rehash(password) : null
  if (passwordHash === null) return verified
  const changed = await store.users.change(id, (stored) =>
    stored.passwordHash === verified ? { passwordHash } : null,
  )
  return changed === null ? verified : passwordHash
}

function wrongPassword(): GatewayError {
  return new GatewayError('unauthenticated', 'Wrong e-mail or password.')
}
