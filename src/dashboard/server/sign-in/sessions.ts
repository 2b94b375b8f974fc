/**
 * Who is signed in: sessions in the store, so that any process knows them and a revocation holds in all.
 * Knows no cookie and no password.
 *
 * A session's secret is 256 random bits; the store has its SHA-256. The token against forged requests is
 * made from the secret, so there is nothing else to keep.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Account } from '../../../accounts/account.js'
import { isObject } from '../../../chat/json.js'
import type { SignInTokenKind } from '../../../store/sign-in-tokens.js'
import type { Store } from '../../../store/store.js'

/** Ends without a request for so long (ASVS 7.3.1; NIST SP 800-63B has 30 minutes for this level), … */
export const IDLE_MS = 30 * 60_000
/** … and in any case after so long. */
export const SESSION_MS = 12 * 3_600_000
/** A session that is in use is written once in so long, not with every request. */
const RENEW_MS = 60_000
/** A device that signed in is known for so long. */
export const DEVICE_MS = 90 * 86_400_000

/** A session that is good. */
export interface Session {
  /** As in the store. */
  readonly id: string
  readonly account: Account
  /** What a page has to send back with everything that changes something. */
  readonly csrf: string
  readonly endsAtMs: number
}

/** A session that was just opened, with what the cookie gets. */
export interface OpenedSession extends Session {
  readonly secret: string
}

/** What the store has of a secret. */
export function passIdOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** 256 random bits, as a cookie or a link can carry them. */
export function newPassSecret(): string {
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

  /** A new session; its secret was never seen before, whoever signs in. */
  async open(account: Account): Promise<OpenedSession> {
    const secret = newPassSecret()
    const nowMs = this.now()
    const endsAtMs = nowMs + SESSION_MS
    const id = passIdOf(secret)
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
   * The session of a secret; null where it has ended, or its account is disabled or gone. Unless the
   * request is `passive`, the wait for the next one begins again.
   */
  async find(secret: string, passive: boolean): Promise<Session | null> {
    const nowMs = this.now()
    const id = passIdOf(secret)
    const pass = await this.store.signInTokens.find('session', id, nowMs)
    if (pass === null) return null
    const endsAtMs = endOf(pass.text)
    if (endsAtMs <= nowMs) return null
    const account = await this.store.accountById(pass.accountId)
    if (account === null || account.disabled) return null
    const until = Math.min(nowMs + IDLE_MS, endsAtMs)
    if (!passive && until - pass.expiresAtMs >= RENEW_MS) {
      const isLive = await this.store.signInTokens.prolong('session', id, until, nowMs)
      if (!isLive) return null
    }
    return { id, account, csrf: csrfOf(secret), endsAtMs }
  }

  /** Ends one, whose secret this is; nothing where there is none. */
  async end(secret: string): Promise<void> {
    await this.store.signInTokens.take('session', passIdOf(secret), this.now())
  }

  /** Ends all of the account's, save one. */
  async endAll(accountId: string, except: string | null = null): Promise<number> {
    return this.store.signInTokens.end('session', accountId, except)
  }

  /** A pass of another kind for the account (empty: nobody's yet), good for a while; its secret. */
  async issue(kind: SignInTokenKind, accountId: string, forMs: number, text = ''): Promise<string> {
    const secret = newPassSecret()
    const expiresAtMs = this.now() + forMs
    await this.store.signInTokens.add({ id: passIdOf(secret), kind, accountId, expiresAtMs, text })
    return secret
  }

  /** The account's device that the secret is of; null where it is none. */
  async device(secret: string | null, accountId: string | null): Promise<string | null> {
    if (secret === null || accountId === null) return null
    const pass = await this.store.signInTokens.find('device', passIdOf(secret), this.now())
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
