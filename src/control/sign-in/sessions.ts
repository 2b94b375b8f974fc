/**
 * Sessions, kept in the store, so that every process accepts them and a revocation takes effect in all.
 *
 * A session's secret is 256 random bits; the store has its SHA-256. The CSRF token is derived from the
 * secret.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { roleOf, type Account, type Member, type User } from '../../accounts/account.js'
import { isUnproven, withEffectiveRole } from '../../accounts/address-proof.js'
import { LOGIN_KINDS, endLoginsByGroup } from '../../accounts/logins/login-records.js'
import { GatewayError } from '../../errors.js'
import { isObject } from '../../base/json.js'
import type { SignInToken } from '../../store/sign-in-tokens.js'
import type { Store } from '../../store/store.js'

/**
 * A session ends after this time without a request (ASVS 7.3.1; NIST SP 800-63B has 30 minutes for this
 * level).
 */
export const IDLE_MS = 30 * 60_000
/** A session ends after this time in any case. */
export const SESSION_MS = 12 * 3_600_000
/** Minimum interval between writes that extend a session. */
const RENEW_MS = 60_000
/** Lifetime of a known device. */
export const DEVICE_MS = 90 * 86_400_000

/**
 * What has opened a session. Roles that groups of the identity provider give hold only in sessions that the
 * provider has opened: it may have refused the user since then.
 */
export type SessionProof = 'password' | 'provider'

/** A valid session. */
export interface Session {
  /** As in the store. */
  readonly id: string
  /** With the role in the whole gateway that takes effect in the session. */
  readonly user: User
  /** The user's roles in accounts that take effect, of those accounts that are not disabled. */
  readonly members: readonly Member[]
  /** Their accounts, by name. */
  readonly accounts: readonly Account[]
  /** The account of requests that name none: the one made with the user, or the first by name. */
  readonly account: Account
  /** The CSRF token of requests that change state. */
  readonly csrf: string
  readonly endsAtMs: number
}

/** A session with what a request may do. */
export interface AccountSession extends Session {
  /** Whether the request is about all accounts. */
  readonly isAll: boolean
  /** `own`: only keys that the user made. */
  readonly permission: 'yes' | 'own' | 'no'
}

/** A new session, with the secret for its cookie. */
interface OpenedSession extends Session {
  readonly secret: string
}

/** What a user may do in a session, by the accounts that are not disabled. */
type Rights = Pick<Session, 'user' | 'members' | 'accounts' | 'account'>

/** The store's id of a secret. */
export function signInTokenIdOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** 256 random bits in base64url, for a cookie or a link. */
export function newSignInSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Opens, finds and ends sessions. */
export class Sessions {
  private readonly store: Pick<Store, 'signInTokens' | 'accountById' | 'accountsByName' | 'users'>
  private readonly now: () => number
  private readonly groupSessionMs: () => number

  /** `groupSessionMs` is the maximum age of a session with a role that comes from a group. */
  constructor(
    store: Pick<Store, 'signInTokens' | 'accountById' | 'accountsByName' | 'users'>,
    now: () => number = Date.now,
    groupSessionMs: () => number = () => SESSION_MS,
  ) {
    this.store = store
    this.now = now
    this.groupSessionMs = groupSessionMs
  }

  /** Opens a session with a new secret. Throws `forbidden` if the user may not use any account. */
  async open(user: User, proof: SessionProof = 'password'): Promise<OpenedSession> {
    const { session, token } = await this.draft(user, proof)
    await this.store.signInTokens.add(token)
    return session
  }

  /** The same; the caller writes the token. */
  async draft(
    user: User,
    proof: SessionProof = 'password',
  ): Promise<{ readonly session: OpenedSession; readonly token: SignInToken }> {
    const rights = await this.rightsOf(user, proof)
    if (rights === null) throw accountDisabled()
    const secret = newSignInSecret()
    const nowMs = this.now()
    const endsAtMs = nowMs + SESSION_MS
    const id = signInTokenIdOf(secret)
    const token: SignInToken = {
      id,
      kind: 'session',
      accountId: user.id,
      expiresAtMs: nowMs + IDLE_MS,
      text: JSON.stringify({ endsAtMs, proof }),
    }
    const session = { id, ...rights, csrf: csrfOf(secret), endsAtMs: this.endWith(rights, endsAtMs), secret }
    return { session, token }
  }

  /**
   * The session of a secret; null if it has ended, or its user is disabled or has no account. A request that
   * is not `passive` extends it.
   */
  async find(secret: string, passive: boolean): Promise<Session | null> {
    const nowMs = this.now()
    const id = signInTokenIdOf(secret)
    const pass = await this.store.signInTokens.find('session', id, nowMs)
    if (pass === null) return null
    const stored = readSession(pass.text)
    if (stored.endsAtMs <= nowMs) return null
    const user = await this.store.users.byId(pass.accountId)
    const rights = user === null ? null : await this.rightsOf(user, stored.proof)
    if (rights === null) return null
    const endsAtMs = this.endWith(rights, stored.endsAtMs)
    if (endsAtMs <= nowMs) return null
    const until = Math.min(nowMs + IDLE_MS, endsAtMs)
    if (!passive && until - pass.expiresAtMs >= RENEW_MS) {
      const prolonged = await this.store.signInTokens.change(
        'session',
        id,
        () => ({ expiresAtMs: until }),
        nowMs,
      )
      if (prolonged === null) return null
    }
    return { id, ...rights, csrf: csrfOf(secret), endsAtMs }
  }

  /** The end of a session with these rights, which ends after 12 hours at `endsAtMs` otherwise. */
  private endWith(rights: Rights, endsAtMs: number): number {
    return isByGroup(rights) ? Math.min(endsAtMs, endsAtMs - SESSION_MS + this.groupSessionMs()) : endsAtMs
  }

  /** Ends the session with this secret, if it exists. */
  async end(secret: string): Promise<void> {
    await this.store.signInTokens.take('session', signInTokenIdOf(secret), this.now())
  }

  /**
   * Ends the session with this secret, and programs, if it has a role that comes from a group; the id of its
   * user then, else null.
   */
  async endByGroup(secret: string): Promise<string | null> {
    const session = await this.find(secret, true)
    if (session === null || !isByGroup(session)) return null
    await this.end(secret)
    await endLoginsByGroup(this.store.signInTokens, session.user.id, this.now())
    return session.user.id
  }

  /** Ends all sessions of the user, except one, and all programs. */
  async endAll(userId: string, except: string | null = null): Promise<number> {
    return this.store.signInTokens.end(['session', ...LOGIN_KINDS], userId, except)
  }

  /**
   * Whether the user is not disabled and may use an account in a session that `proof` opens. `isProven`: as
   * if the address were proven.
   */
  async mayEnter(
    user: User,
    proof: SessionProof = 'password',
    isProven = !isUnproven(user),
  ): Promise<boolean> {
    return (await this.rightsOf(user, proof, isProven)) !== null
  }

  /** The roles and accounts of the user; null if there is none that the user may use. */
  private async rightsOf(
    stored: User,
    proof: SessionProof,
    isProven = !isUnproven(stored),
  ): Promise<Rights | null> {
    if (stored.disabled) return null
    const { store } = this
    const isByProvider = proof === 'provider'
    const held = isByProvider ? stored : withoutGroupRole(stored)
    const user = isProven ? held : withEffectiveRole(held)
    const roles = await store.users.memberships(user.id)
    const memberships = roles.filter(({ accepted }) => isProven || accepted === true)
    const all = isByProvider
      ? memberships
      : memberships.map(withoutGroupRole).filter(({ role }) => role !== null)
    const found = await Promise.all(all.map(({ accountId }) => store.accountById(accountId)))
    const accounts = found.filter((account) => account !== null && !account.disabled)
    const byName = accounts.filter((account) => account !== null)
    byName.sort((a, b) => (a.name < b.name ? -1 : 1))
    const ids = new Set(byName.map(({ id }) => id))
    const members = all.filter(({ accountId }) => ids.has(accountId))
    const own = byName.find(({ id }) => id === user.id) ?? byName[0]
    if (own !== undefined) return { user, members, accounts: byName, account: own }
    if (roleOf(user) === null) return null
    const [first] = (await store.accountsByName({ after: null, limit: 1 })).items
    return first === undefined ? null : { user, members, accounts: byName, account: first }
  }

  /**
   * Issues a token of another kind for the user (empty: none yet) with this lifetime. Returns its secret.
   */
  async issue(kind: 'device' | 'oidc', userId: string, forMs: number): Promise<string> {
    const secret = newSignInSecret()
    const expiresAtMs = this.now() + forMs
    await this.store.signInTokens.add({
      id: signInTokenIdOf(secret),
      kind,
      accountId: userId,
      expiresAtMs,
      text: '',
    })
    return secret
  }

  /** The id of the user's known device with this secret; null if it is unknown. */
  async device(secret: string | null, userId: string | null): Promise<string | null> {
    if (secret === null || userId === null) return null
    const pass = await this.store.signInTokens.find('device', signInTokenIdOf(secret), this.now())
    return pass?.accountId === userId ? pass.id : null
  }
}

/** The refusal of a user who is disabled, or whose accounts are, or all of whose roles are pending. */
export function accountDisabled(): GatewayError {
  return new GatewayError(
    'forbidden',
    'This account is disabled, or waits for proof of your address by a link. Ask an administrator.',
  )
}

function csrfOf(secret: string): string {
  return createHmac('sha256', secret).update('csrf').digest('base64url')
}

function isByGroup({ user, members }: Pick<Rights, 'user' | 'members'>): boolean {
  return [user, ...members].some((each) => roleOf(each) !== each.role)
}

function withoutGroupRole<Held extends User | Member>(held: Held): Held {
  const changed = { ...held }
  delete changed.groupRole
  return changed
}

/** Sessions of earlier versions name no proof: they have no roles by groups until the next sign-in. */
function readSession(text: string): { readonly endsAtMs: number; readonly proof: SessionProof } {
  const value: unknown = JSON.parse(text)
  const { endsAtMs, proof } = isObject(value) ? value : {}
  return {
    endsAtMs: typeof endsAtMs === 'number' ? endsAtMs : 0,
    proof: proof === 'provider' ? 'provider' : 'password',
  }
}

/** The session's secret. */
export const SESSION_COOKIE = '__Host-sid'
/** The secret of a device that has signed in before. */
export const DEVICE_COOKIE = '__Host-device'
/** Ties a sign-in at an identity provider to the browser that started it. */
export const OIDC_COOKIE = '__Host-oidc'

/** A value of these cookies: base64url without padding. */
const VALUE = /^[A-Za-z0-9_-]{1,200}$/

/**
 * The value of one of the dashboard's cookies; null if it is absent, duplicated or malformed. The prefix
 * `__Host-` makes browsers accept them only from this host, over https, for all paths. Chromium also accepts
 * them over plain http on localhost and 127.0.0.0/8 (tested with version 156).
 */
export function cookieOf(header: string | undefined, name: string): string | null {
  let found: string | null = null
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at === -1 || part.slice(0, at).trim() !== name) continue
    // Of two cookies with one name, another site may have set one.
    if (found !== null) return null
    found = part.slice(at + 1).trim()
  }
  return found !== null && VALUE.test(found) ? found : null
}

/** A `set-cookie` value. Scripts cannot read the cookie, and cross-site requests do not send it. */
export function cookieText(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Strict`
}

/** The value that removes a cookie. */
export function noCookieText(name: string): string {
  return cookieText(name, '', 0)
}
