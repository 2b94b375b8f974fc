/**
 * Sessions and other sign-in tokens: known devices, one-time links, and the sign-ins of programs
 * (`accounts/logins`). The store has the digest of a token, never its secret.
 */
import type { AuditEntry } from './audit-trail.js'

/** What a token is for. */
export type SignInTokenKind = (typeof SIGN_IN_TOKEN_KINDS)[number]
export const SIGN_IN_TOKEN_KINDS = [
  'session',
  'device',
  'set-up',
  'reset',
  'oidc',
  // Of programs: a sign-in that waits for its user, its code, wrong codes, the sign-in, its access tokens.
  'device_code',
  'user_code',
  'wrong_codes',
  'login',
  'access',
] as const

/** A stored token. */
export interface SignInToken {
  /** SHA-256 of its secret, lower-case hex. */
  readonly id: string
  readonly kind: SignInTokenKind
  /** Its account; empty if it has none yet. */
  readonly accountId: string
  readonly expiresAtMs: number
  /** Data of the caller; at most 8,192 characters. */
  readonly text: string
}

/**
 * Maximum number of tokens of one account and kind, so that repeated sign-ins cannot fill the store. Tokens
 * without an account expire within a day and are not counted.
 */
export const SIGN_IN_TOKENS_PER_ACCOUNT = 100

/** The tokens beyond the maximum, which expire first. */
export function surplusTokens(tokens: readonly SignInToken[]): SignInToken[] {
  const surplus = tokens.length - SIGN_IN_TOKENS_PER_ACCOUNT
  if (surplus <= 0) return []
  return [...tokens].sort((a, b) => a.expiresAtMs - b.expiresAtMs).slice(0, surplus)
}

/** Tokens that end in one step with another change; one that comes meanwhile ends, too. */
export interface EndedTokens {
  readonly kinds: readonly SignInTokenKind[]
  /** Of the user. */
  readonly accountId: string
  /** Ids of those that stay; none by default. */
  readonly except?: readonly string[]
}

/** A token that is written with another change. */
export interface AddedSignIn {
  readonly token: SignInToken
  /** Former tokens of the user that it replaces. */
  readonly replaces: readonly SignInToken[]
}

/** The sign-ins that change with another change: first some end, then one is added. */
export interface ChangedSignIns {
  readonly ends?: readonly EndedTokens[] | undefined
  /** A link for an invitation, or a session. */
  readonly link?: AddedSignIn | null | undefined
}

/** What of a token may change. */
export type SignInTokenEdit = Partial<Pick<SignInToken, 'expiresAtMs' | 'text'>>

/** What is changed with a new token. */
export interface AddedToken {
  readonly auditEntries?: readonly AuditEntry[]
  /** Of the same kind and account. */
  readonly replaces?: readonly SignInToken[]
}

/**
 * Tokens by id. Methods fail as those of `Store` do. A change is durable, and visible to every process,
 * before it resolves. An expired token is never returned, whether it was swept or not. Listeners of
 * `Store.subscribe` get `accessDigest` of an access token that is removed.
 */
export interface SignInTokens {
  /**
   * False if its id is in use; nothing is changed then. Beyond `SIGN_IN_TOKENS_PER_ACCOUNT` of the account
   * and kind, the tokens that expire first are removed. With it, audit entries are stored and the tokens that
   * it replaces are removed.
   */
  add(token: SignInToken, change?: AddedToken): Promise<boolean>
  /** Null if there is no token of this kind, or it has expired. */
  find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null>
  /**
   * Changes a valid token, and resolves with its former state; null if there is none, or `edit` returns
   * null: an expired token never becomes valid again. `edit` is pure, and an engine may call it several
   * times.
   */
  change(
    kind: SignInTokenKind,
    id: string,
    edit: (token: SignInToken) => SignInTokenEdit | null,
    nowMs: number,
  ): Promise<SignInToken | null>
  /** Removes and returns a token; of concurrent calls, one gets it. */
  take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null>
  /** The valid tokens of the account and kind, in no order. */
  tokensOf(kind: SignInTokenKind, accountId: string, nowMs: number): Promise<SignInToken[]>
  /**
   * Removes all tokens of the account and these kinds except one, with audit entries about the kind of each;
   * returns their number. Redis does so in steps of 256 tokens, the last one with the entries.
   */
  end(
    kinds: SignInTokenKind | readonly SignInTokenKind[],
    accountId: string,
    except: string | null,
    entriesOf?: (ended: readonly SignInTokenKind[]) => readonly AuditEntry[],
  ): Promise<number>
  /** Removes expired tokens; returns their number. */
  sweep(nowMs: number): Promise<number>
}
