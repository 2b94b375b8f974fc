/**
 * Reads and writes the records of accounts, keys, sign-in tokens and audit entries: compact JSON with a version,
 * `{"v":1,…}`. Every engine stores the same text.
 */
import type { Account, ApiKey, KeyLimits, PlanName } from '../../accounts/account.js'
import type { Labels } from '../../accounts/labels.js'
import { isObject, type JsonObject } from '../../chat/json.js'
import type { SignInToken } from '../sign-in-tokens.js'
import type { AccountEdit, KeyEdit } from '../store.js'
import type { AuditEntry } from '../audit-trail.js'

/** An account with what the store itself counts for it. */
export interface AccountRecord {
  readonly account: Account
  /** The place in the order of creation. */
  readonly order: number
  /** Keys that are not revoked; changed in the transaction that changes them. */
  readonly liveKeys: number
}

/** The version of every record except the keys below. */
const VERSION = 1
/**
 * A key with limits: earlier versions of the program, which would ignore the limits, refuse the record.
 */
const LIMITED = 2
/** A key with labels, by which limits select it: refused by earlier versions for the same reason. */
const LABELLED = 3

/** The text of an account. */
export function writeAccount(record: AccountRecord): string {
  const { account, order, liveKeys } = record
  return JSON.stringify({ v: VERSION, ...account, order, liveKeys })
}

/** The text of a key. */
export function writeKey(key: ApiKey): string {
  const { expiresAtMs, models, limits, labels } = key
  const isLimited = expiresAtMs !== undefined || models !== undefined || limits !== undefined
  const version = labels !== undefined ? LABELLED : isLimited ? LIMITED : VERSION
  return JSON.stringify({ v: version, ...key })
}

/** The text of a sign-in token. */
export function writeSignInToken(token: SignInToken): string {
  return JSON.stringify({ v: VERSION, ...token })
}

/** The text of an entry of the audit trail. */
export function writeAuditEntry(entry: AuditEntry): string {
  return JSON.stringify({ v: VERSION, ...entry })
}

/** The account after a change. */
export function editedAccount(account: Account, edit: AccountEdit): Account {
  return { ...account, ...edit }
}

/** The key after a change. */
export function editedKey(key: ApiKey, edit: KeyEdit): ApiKey {
  const {
    expiresAtMs = null,
    models = null,
    limits = null,
    ...plain
  } = {
    ...key,
    ...edit,
  }
  return {
    ...plain,
    ...(expiresAtMs === null ? {} : { expiresAtMs }),
    ...(models === null ? {} : { models }),
    ...(limits === null ? {} : { limits }),
  }
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
  const from = fields(text, LIMITED, LABELLED)
  const key: ApiKey = {
    id: string(from, 'id'),
    accountId: string(from, 'accountId'),
    name: string(from, 'name'),
    digest: string(from, 'digest'),
    prefix: string(from, 'prefix'),
    lastFour: string(from, 'lastFour'),
    createdAtMs: count(from, 'createdAtMs'),
  }
  // Only a missing field means "not so": a damaged one must never bring a key back to life, nor free it.
  if (from['revokedAtMs'] !== undefined) key.revokedAtMs = count(from, 'revokedAtMs')
  if (from['replaces'] !== undefined) key.replaces = string(from, 'replaces')
  if (from['replacedBy'] !== undefined) key.replacedBy = string(from, 'replacedBy')
  if (from['v'] === VERSION) return key
  if (from['expiresAtMs'] !== undefined) key.expiresAtMs = count(from, 'expiresAtMs')
  if (from['models'] !== undefined) key.models = strings(from, 'models')
  if (from['limits'] !== undefined) key.limits = limits(from)
  if (from['labels'] !== undefined) key.labels = labels(from)
  return key
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readSignInToken(text: string): SignInToken {
  const from = fields(text)
  return {
    id: string(from, 'id'),
    kind: passKind(from),
    accountId: string(from, 'accountId'),
    expiresAtMs: count(from, 'expiresAtMs'),
    text: string(from, 'text'),
  }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAuditEntry(text: string): AuditEntry {
  const from = fields(text)
  return {
    id: string(from, 'id'),
    atMs: count(from, 'atMs'),
    accountId: string(from, 'accountId'),
    actor: string(from, 'actor'),
    action: string(from, 'action'),
    target: string(from, 'target'),
    detail: string(from, 'detail'),
    address: from['address'] === null ? null : string(from, 'address'),
  }
}

/** Reads version 1, and those named: a migration is a decision, not a guess. */
function fields(text: string, ...others: readonly number[]): JsonObject {
  const value = parse(text)
  if (!isObject(value)) throw new Error('not a JSON object')
  const version = value['v']
  if (version !== VERSION && !others.some((each) => each === version)) {
    throw new Error(`field 'v' is not ${others.at(-1) ?? VERSION}`)
  }
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

function strings(from: JsonObject, name: string): string[] {
  const value = from[name]
  if (!Array.isArray(value)) throw new Error(`field '${name}' is not a list`)
  return value.map((item) => {
    if (typeof item !== 'string') throw new Error(`field '${name}' is not a list of strings`)
    return item
  })
}

const LIMITS = [
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrent',
  'nanoUsdPerDay',
  'nanoUsdPerMonth',
] as const

function limits(from: JsonObject): KeyLimits {
  const value = from['limits']
  if (!isObject(value)) throw new Error("field 'limits' is not an object")
  const read: KeyLimits = {}
  for (const name of LIMITS) if (value[name] !== undefined) read[name] = count(value, name)
  return read
}

function labels(from: JsonObject): Labels {
  const value = from['labels']
  if (!isObject(value)) throw new Error("field 'labels' is not an object")
  const read: [string, string][] = Object.entries(value).map(([name, label]) => {
    if (typeof label !== 'string')
      throw new Error("field 'labels' has a value that is not a string")
    return [name, label]
  })
  return Object.fromEntries(read)
}

function passKind(from: JsonObject): SignInToken['kind'] {
  const value = from['kind']
  switch (value) {
    case 'session':
    case 'device':
    case 'set-up':
    case 'reset':
    case 'oidc':
      return value
    default:
      throw new Error("field 'kind' is not a kind of pass")
  }
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
