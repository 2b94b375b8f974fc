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

/**
 * The session in which a user approves a program. The program gets nothing if it ends before: it may have
 * been another person's, such as one who opened it before the address was proven.
 */
export interface ApprovingSession {
  /** As in the store. */
  readonly id: string
  readonly endsAtMs: number
}

/** Ends those sign-ins of programs of a user whose role only a group of the identity provider gives. */
export async function endLoginsByGroup(
  signInTokens: SignInTokens,
  userId: string,
  nowMs: number,
): Promise<void> {
  const logins = await signInTokens.tokensOf('login', userId, nowMs)
  const ids = logins.filter(({ text }) => readLogin(text).endsAtMs !== null).map(({ id }) => id)
  for (const id of ids) await signInTokens.take('login', id, nowMs)
  await endAccess(signInTokens, userId, new Set(ids), nowMs)
}

/** The kinds of tokens of sign-ins of programs, also of those that are only approved. */
export const LOGIN_KINDS = ['device_code', 'login', 'access'] as const

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
