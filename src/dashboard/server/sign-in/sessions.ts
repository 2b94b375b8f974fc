/**
 * Sessions, kept in the store, so that every process accepts them and a revocation takes effect in all.
 *
 * A session's secret is 256 random bits; the store has its SHA-256. The CSRF token is derived from the
 * secret.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Account } from '../../../accounts/account.js'
import { isObject } from '../../../formats/chat/json.js'
import type { SignInTokenKind } from '../../../store/sign-in-tokens.js'
import type { Store } from '../../../store/store.js'

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

/** A valid session. */
export interface Session {
  /** As in the store. */
  readonly id: string
  readonly account: Account
  /** The CSRF token of requests that change state. */
  readonly csrf: string
  readonly endsAtMs: number
}

/** A new session, with the secret for its cookie. */
export interface OpenedSession extends Session {
  readonly secret: string
}

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
  private readonly store: Pick<Store, 'signInTokens' | 'accountById'>
  private readonly now: () => number

  constructor(store: Pick<Store, 'signInTokens' | 'accountById'>, now: () => number = Date.now) {
    this.store = store
    this.now = now
  }

  /** Opens a session with a new secret. */
  async open(account: Account): Promise<OpenedSession> {
    const secret = newSignInSecret()
    const nowMs = this.now()
    const endsAtMs = nowMs + SESSION_MS
    const id = signInTokenIdOf(secret)
    await this.store.signInTokens.add({
      id,
      kind: 'session',
      accountId: account.id,
      expiresAtMs: nowMs + IDLE_MS,
      text: JSON.stringify({ endsAtMs }),
    })
    return { id, account, csrf: csrfOf(secret), endsAtMs, secret }
  }

  /**
   * The session of a secret; null if it has ended, or its account is disabled or removed. A request that is
   * not `passive` extends it.
   */
  async find(secret: string, passive: boolean): Promise<Session | null> {
    const nowMs = this.now()
    const id = signInTokenIdOf(secret)
    const pass = await this.store.signInTokens.find('session', id, nowMs)
    if (pass === null) return null
    const endsAtMs = endOf(pass.text)
    if (endsAtMs <= nowMs) return null
    const account = await this.store.accountById(pass.accountId)
    if (account === null || account.disabled) return null
    const until = Math.min(nowMs + IDLE_MS, endsAtMs)
    if (!passive && until - pass.expiresAtMs >= RENEW_MS) {
      const isLive = await this.store.signInTokens.prolong('session', id, {
        expiresAtMs: until,
        nowMs,
      })
      if (!isLive) return null
    }
    return { id, account, csrf: csrfOf(secret), endsAtMs }
  }

  /** Ends the session with this secret, if it exists. */
  async end(secret: string): Promise<void> {
    await this.store.signInTokens.take('session', signInTokenIdOf(secret), this.now())
  }

  /** Ends all sessions of the account, except one. */
  async endAll(accountId: string, except: string | null = null): Promise<number> {
    return this.store.signInTokens.end('session', accountId, except)
  }

  /**
   * Issues a token of another kind for the account (empty: none yet) with this lifetime. Returns its secret.
   */
  async issue(kind: SignInTokenKind, accountId: string, forMs: number): Promise<string> {
    const secret = newSignInSecret()
    const expiresAtMs = this.now() + forMs
    await this.store.signInTokens.add({
      id: signInTokenIdOf(secret),
      kind,
      accountId,
      expiresAtMs,
      text: '',
    })
    return secret
  }

  /** The id of the account's known device with this secret; null if it is unknown. */
  async device(secret: string | null, accountId: string | null): Promise<string | null> {
    if (secret === null || accountId === null) return null
    const pass = await this.store.signInTokens.find('device', signInTokenIdOf(secret), this.now())
    return pass?.accountId === accountId ? pass.id : null
  }
}

function csrfOf(secret: string): string {
  return createHmac('sha256', secret).update('csrf').digest('base64url')
}

function endOf(text: string): number {
  const value: unknown = JSON.parse(text)
  const endsAtMs = isObject(value) ? value['endsAtMs'] : undefined
  return typeof endsAtMs === 'number' ? endsAtMs : 0
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
 * The value of a cookie; null if it is absent, duplicated or malformed.
 *
 * The dashboard's cookies. The prefix `__Host-` makes browsers accept them only from this host, over https,
 * for all paths. Chromium also accepts them over plain http on localhost and 127.0.0.0/8 (tested with version
 * 156).
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
