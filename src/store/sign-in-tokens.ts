/**
 * What lets its holder in until it expires: sessions, known devices, one-time links. Whatever the engine.
 * Knows no cookie and no secret: a pass stands under the digest of what its holder shows.
 */

/** What a pass is good for. */
export type SignInTokenKind = 'session' | 'device' | 'set-up' | 'reset' | 'oidc'

/** A pass as it is kept. */
export interface SignInToken {
  /** SHA-256 of its secret, lower-case hex. */
  readonly id: string
  readonly kind: SignInTokenKind
  /** Whose it is; empty where it is nobody's yet. */
  readonly accountId: string
  readonly expiresAtMs: number
  /** What its maker wants to find again; at most 8,192 characters. */
  readonly text: string
}

/**
 * Passes of one account and kind that are kept: whoever signs in again and again has the newest, and fills no
 * store. Nobody's passes (an empty `accountId`) end within a day, and are not counted.
 */
export const SIGN_IN_TOKENS_PER_ACCOUNT = 100

/** Those of an account that have to go for one more to be kept: the first to expire. */
export function surplusTokens(passes: readonly SignInToken[]): SignInToken[] {
  const surplus = passes.length - SIGN_IN_TOKENS_PER_ACCOUNT
  if (surplus <= 0) return []
  return [...passes].sort((a, b) => a.expiresAtMs - b.expiresAtMs).slice(0, surplus)
}

/**
 * Passes by id. Fails as the store does. Durable before it resolves; every process sees a change once it
 * has resolved. What has expired is never given out, whether it was swept or not.
 */
export interface SignInTokens {
  /**
   * False where its id is in use; nothing is changed then. Beyond `PASSES_PER_ACCOUNT` of the account and kind,
   * those that expire first end.
   */
  add(pass: SignInToken): Promise<boolean>
  /** Null where there is none of this kind, or it has expired. */
  find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null>
  /** Moves the end of one that is still good; false where none is, so that nothing ended comes back. */
  prolong(kind: SignInTokenKind, id: string, expiresAtMs: number, nowMs: number): Promise<boolean>
  /** Ends it and gives it out: of those who ask at once, one gets it. */
  take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null>
  /** Ends all of the account's of this kind, save the one named; how many. */
  end(kind: SignInTokenKind, accountId: string, except: string | null): Promise<number>
  /** Removes what has expired; how many. Engines that do so by themselves answer 0. */
  sweep(nowMs: number): Promise<number>
}
