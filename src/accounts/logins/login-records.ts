/** The records of sign-ins of programs in the store, and the end of those of a user. */
import { isObject } from '../../base/json.js'
import type { SignInTokens } from '../../store/sign-in-tokens.js'

/** A sign-in, as the store has it. */
export interface LoginRecord {
  /** The id of the account that its requests run as. */
  readonly account: string
  /** The program that requested it, by its user agent. */
  readonly program: string
  /** The digest of the refresh token that is valid now. */
  readonly refresh: string
  /**
   * When it ends in any case, in ms since 1970: roles by groups hold for so long without the identity
   * provider. Null: a role that is given by hand.
   */
  readonly endsAtMs: number | null
}

/** Ends all sign-ins of programs of a user; returns their number. */
export async function endLogins(signInTokens: SignInTokens, userId: string): Promise<number> {
  const count = await signInTokens.end('login', userId, null)
  await signInTokens.end('access', userId, null)
  return count
}

/** Removes the access tokens of these sign-ins. */
export async function endAccess(
  signInTokens: SignInTokens,
  userId: string,
  logins: ReadonlySet<string>,
  nowMs: number,
): Promise<void> {
  const tokens = await signInTokens.tokensOf('access', userId, nowMs)
  for (const { id, text } of tokens) {
    if (logins.has(readAccess(text).login)) await signInTokens.take('access', id, nowMs)
  }
}

/** The record of a sign-in. */
export function readLogin(text: string): LoginRecord {
  const value: unknown = JSON.parse(text)
  const { account, program, refresh, endsAtMs } = isObject(value) ? value : {}
  return {
    ...{ account: textOf(account), program: textOf(program), refresh: textOf(refresh) },
    endsAtMs: typeof endsAtMs === 'number' ? endsAtMs : null,
  }
}

/** The record of an access token: its sign-in, and when it expires. */
export function readAccess(text: string): { readonly login: string; readonly untilMs: number } {
  const value: unknown = JSON.parse(text)
  const { login, untilMs } = isObject(value) ? value : {}
  return { login: textOf(login), untilMs: typeof untilMs === 'number' ? untilMs : 0 }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
