/**
 * From what Redis answered to accounts and keys; what does not fit is a failure of the store.
 * Knows no client and no key of Redis.
 */
import type { Account, ApiKey } from '../../../accounts/account.js'
import { damaged, unavailable } from '../../errors.js'
import { readAccount, readKey } from '../../records/account-records.js'
import type { Page } from '../../store.js'

/** What is wrong with a record that can be read and is not the one that it should be. */
export const MISMATCH = 'it is another, or its index is'

/** What there is behind a cursor that no store gave out. */
export const EMPTY_PAGE: Page<never> = { items: [], next: null }

/** Whether it is a cursor of a list here: a place in an order, or null for the start. */
export function isCursor(cursor: string | null): boolean {
  return cursor === null || /^\d{1,16}$/.test(cursor)
}

/** A key whose id is not known, for the log: the beginning of a digest names it and opens nothing. */
export function nameOfKey(digest: string): string {
  return `the key with digest ${digest.slice(0, 12)}…`
}

/** The account, which must be the one that was asked for. */
export function parseAccount(what: string, id: string, text: unknown): Account {
  const { account } = parseRecord(what, `account '${id}'`, () => readAccount(String(text)))
  if (account.id !== id) throw unavailable(`${what} failed`, damaged(`account '${id}'`, MISMATCH))
  return account
}

/** The key with its mark of revocation; null where there is none. */
export function parseKey(
  what: string,
  digest: string,
  text: unknown,
  revoked: unknown,
): ApiKey | null {
  if (typeof text !== 'string') return null
  const key = parseRecord(what, nameOfKey(digest), () => readKey(text))
  // The answer must be to this question and no other, whatever went wrong below.
  if (key.digest !== digest)
    throw unavailable(`${what} failed`, damaged(`key '${key.id}'`, MISMATCH))
  if (typeof revoked !== 'string') return key
  const revokedAtMs = Number(revoked)
  // A damaged mark must never bring a key back to life.
  if (!Number.isSafeInteger(revokedAtMs) || revokedAtMs < 0) {
    throw unavailable(`${what} failed`, damaged(`key '${key.id}'`, MISMATCH))
  }
  return { ...key, revokedAtMs }
}

/** The parts of an answer that is a list. */
export function listOf(answer: unknown): unknown[] {
  return Array.isArray(answer) ? answer : []
}

/** The numbers of a script's answer that is their JSON; none where it is not. */
export function parseNumbers(answer: unknown): readonly number[] {
  if (typeof answer !== 'string') return []
  const value: unknown = JSON.parse(answer)
  return isNumbers(value) ? value : []
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'number')
}

/** What `read` makes of a record; its complaint is a failure of the store. */
export function parseRecord<T>(what: string, of: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw unavailable(
      `${what} failed`,
      damaged(of, cause instanceof Error ? cause.message : String(cause)),
    )
  }
}
