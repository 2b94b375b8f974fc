/**
 * How accounts and keys are written down: compact JSON with a version, `{"v":1,…}`.
 * Knows no engine, so that every engine keeps the same text and refuses the same damage.
 */
import type { Account, ApiKey, PlanName } from '../accounts/account.js'
import { isObject, type JsonObject } from '../chat/json.js'

/** An account with what the store itself counts for it. */
export interface AccountRecord {
  readonly account: Account
  /** The place in the order of creation. */
  readonly order: number
  /** Keys that are not revoked; changed in the transaction that changes them. */
  readonly liveKeys: number
}

/** The version that this code writes. It reads no other: a migration is a decision, not a guess. */
const VERSION = 1

/** The text of an account. */
export function writeAccount(record: AccountRecord): string {
  const { account, order, liveKeys } = record
  return JSON.stringify({ v: VERSION, ...account, order, liveKeys })
}

/** The text of a key. */
export function writeKey(key: ApiKey): string {
  return JSON.stringify({ v: VERSION, ...key })
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAccount(text: string): AccountRecord {
  const from = fields(text)
  const account: Account = {
    id: string(from, 'id'),
    email: string(from, 'email'),
    plan: plan(from),
    role: role(from),
    passwordHash: string(from, 'passwordHash'),
    disabled: flag(from, 'disabled'),
    createdAtMs: count(from, 'createdAtMs'),
  }
  return { account, order: count(from, 'order'), liveKeys: count(from, 'liveKeys') }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readKey(text: string): ApiKey {
  const from = fields(text)
  const key: ApiKey = {
    id: string(from, 'id'),
    accountId: string(from, 'accountId'),
    name: string(from, 'name'),
    digest: string(from, 'digest'),
    prefix: string(from, 'prefix'),
    lastFour: string(from, 'lastFour'),
    createdAtMs: count(from, 'createdAtMs'),
  }
  // Only a missing field means "not revoked": a damaged one must never bring a key back to life.
  return from['revokedAtMs'] === undefined
    ? key
    : { ...key, revokedAtMs: count(from, 'revokedAtMs') }
}

function fields(text: string): JsonObject {
  const value = parse(text)
  if (!isObject(value)) throw new Error('not a JSON object')
  if (value['v'] !== VERSION) throw new Error(`field 'v' is not ${VERSION}`)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text, which may hold a password hash.
    throw new Error('not JSON')
  }
}

function string(from: JsonObject, name: string): string {
  const value = from[name]
  if (typeof value !== 'string') throw new Error(`field '${name}' is not a string`)
  return value
}

function count(from: JsonObject, name: string): number {
  const value = from[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Error(`field '${name}' is not a whole number`)
  }
  return value
}

function flag(from: JsonObject, name: string): boolean {
  const value = from[name]
  if (typeof value !== 'boolean') throw new Error(`field '${name}' is not true or false`)
  return value
}

function plan(from: JsonObject): PlanName {
  const value = from['plan']
  if (value !== 'starter' && value !== 'pro' && value !== 'max') {
    throw new Error("field 'plan' is not a plan's name")
  }
  return value
}

function role(from: JsonObject): Account['role'] {
  const value = from['role']
  if (value !== 'owner' && value !== 'admin') throw new Error("field 'role' is not a role's name")
  return value
}
