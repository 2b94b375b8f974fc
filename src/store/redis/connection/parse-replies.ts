/**
 * Parses replies of Redis to accounts and keys. A damaged record is a failure of the store.
 */
import type { Account, ApiKey } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../store-errors.js'
import { readAccount, readKey } from '../../records/account-and-key-records.js'
import type { Page } from '../../store.js'

/** The reason for refusing a readable record of another account or key. */
export const MISMATCH = 'it is another, or its index is'

/** The page after an invalid cursor. */
export const EMPTY_PAGE: Page<never> = { items: [], next: null }

/** Whether the text is a cursor: a position in an order, or null for the start. */
export function isCursor(cursor: string | null): boolean {
  return cursor === null || /^\d{1,16}$/.test(cursor)
}

/** A key for the log, if its id is unknown: the beginning of its digest cannot be used to authenticate. */
export function nameOfKey(digest: string): string {
  return `the key with digest ${digest.slice(0, 12)}…`
}

/** The account; throws if the record is another account's. */
export function parseAccount(what: string, id: string, text: unknown): Account {
  const { account } = parseRecord(what, `account '${id}'`, () => readAccount(String(text)))
  if (account.id !== id) throw unavailable(`${what} failed`, damaged(`account '${id}'`, MISMATCH))
  return account
}

/** The replies of Redis about one key. */
export interface KeyReplies {
  readonly digest: string
  /** The record; not a string if there is none. */
  readonly text: unknown
  /** The time of its revocation; not a string if it is not revoked. */
  readonly revoked: unknown
}

/** The key with the time of its revocation; null if it does not exist. */
export function parseKey(what: string, { digest, text, revoked }: KeyReplies): ApiKey | null {
  if (typeof text !== 'string') return null
  const key = parseRecord(what, nameOfKey(digest), () => readKey(text))
  // A reply to another command must never identify a client.
  if (key.digest !== digest) throw unavailable(`${what} failed`, damaged(`key '${key.id}'`, MISMATCH))
  if (typeof revoked !== 'string') return key
  const revokedAtMs = Number(revoked)
  // A damaged time must never make a revoked key valid.
  if (!Number.isSafeInteger(revokedAtMs) || revokedAtMs < 0) {
    throw unavailable(`${what} failed`, damaged(`key '${key.id}'`, MISMATCH))
  }
  return { ...key, revokedAtMs }
}

/** The items of a reply that is a list. */
export function listOf(answer: unknown): unknown[] {
  return Array.isArray(answer) ? answer : []
}

/** The items of a reply that is a list of strings or numbers. */
export function stringsOf(answer: unknown): string[] {
  return listOf(answer).map(String)
}

/** The reply of a script that decides several requests (scripts/limits/each-request.lua). */
interface BatchReply {
  readonly numbers: readonly number[]
  /** The additional value of the request at this position: its error, or what its script returned. */
  readonly valueAt: (position: number) => string | null
}

/** Parses the reply; throws a SyntaxError if it is not JSON. */
export function parseBatchReply(answer: unknown): BatchReply {
  const [text, ...pairs] = listOf(answer)
  const valueAt = (position: number): string | null => {
    const at = pairs.indexOf(position + 1)
    const value = at < 0 ? null : pairs[at + 1]
    return typeof value === 'string' ? value : null
  }
  return { numbers: parseNumbers(text), valueAt }
}

/** The numbers of a reply that is a JSON list of numbers; else none. */
export function parseNumbers(answer: unknown): readonly number[] {
  const value: unknown = typeof answer === 'string' ? JSON.parse(answer) : []
  return listOf(value).filter((each) => typeof each === 'number')
}

/** Reads a record; an error of `read` becomes a failure of the store. */
export function parseRecord<T>(what: string, of: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw unavailable(`${what} failed`, damaged(of, cause instanceof Error ? cause.message : String(cause)))
  }
}
