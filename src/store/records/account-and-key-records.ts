/**
 * Reads and writes the records of accounts, keys, sign-in tokens and audit entries: compact JSON with a
 * version, `{"v":1,…}`. Every engine stores the same text.
 */
import { z } from 'zod'
import type { Account, ApiKey } from '../../accounts/account.js'
import { isObject } from '../../formats/chat/json.js'
import type { AuditEntry } from '../audit-trail.js'
import type { SignInToken } from '../sign-in-tokens.js'
import type { KeyEdit } from '../store.js'
import { checkFields, parseJson } from './parse-record.js'

/** The version of every record except the keys below. */
const VERSION = 1
/** A key with limits: earlier versions of the program, which would ignore the limits, refuse the record. */
const LIMITED = 2
/** A key with labels, by which limits select it: refused by earlier versions for the same reason. */
const LABELLED = 3
/** A key with a list of tools: refused by earlier versions for the same reason. */
const WITH_TOOLS = 4

const count = z.int().min(0)

const accountSchema = z.object({
  id: z.string(),
  email: z.string(),
  plan: z.string(),
  role: z.enum(['owner', 'admin']),
  passwordHash: z.string(),
  disabled: z.boolean(),
  createdAtMs: count,
  order: count,
  liveKeys: count,
})

const limitsSchema = z.object({
  requestsPerMinute: count.exactOptional(),
  tokensPerMinute: count.exactOptional(),
  concurrent: count.exactOptional(),
  nanoUsdPerDay: count.exactOptional(),
  nanoUsdPerWeek: count.exactOptional(),
  nanoUsdPerMonth: count.exactOptional(),
})

/**
 * Only an absent member means "not so": a damaged one must never make a key valid again, nor remove its
 * limits.
 */
const keySchema = z.object({
  id: z.string(),
  accountId: z.string(),
  name: z.string(),
  digest: z.string(),
  prefix: z.string(),
  lastFour: z.string(),
  createdAtMs: count,
  revokedAtMs: count.exactOptional(),
  replaces: z.string().exactOptional(),
  replacedBy: z.string().exactOptional(),
  expiresAtMs: count.exactOptional(),
  models: z.array(z.string()).exactOptional(),
  allowTools: z.array(z.string()).exactOptional(),
  limits: limitsSchema.exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
})

const signInTokenSchema = z.object({
  id: z.string(),
  kind: z.enum(['session', 'device', 'set-up', 'reset', 'oidc']),
  accountId: z.string(),
  expiresAtMs: count,
  text: z.string(),
})

const auditEntrySchema = z.object({
  id: z.string(),
  atMs: count,
  accountId: z.string(),
  actor: z.string(),
  action: z.string(),
  target: z.string(),
  detail: z.string(),
  address: z.string().nullable(),
  requestId: z.string().exactOptional(),
  before: z.record(z.string(), z.json()).nullable().exactOptional(),
  after: z.record(z.string(), z.json()).nullable().exactOptional(),
})

/** An account with what the store itself counts for it. */
export interface AccountRecord {
  readonly account: Account
  /** The place in the order of creation. */
  readonly order: number
  /** Keys that are not revoked; changed in the transaction that changes them. */
  readonly liveKeys: number
}

/** The text of an account. */
export function writeAccount({ account, order, liveKeys }: AccountRecord): string {
  return JSON.stringify({ v: VERSION, ...account, order, liveKeys })
}

/** The text of a key. */
export function writeKey(key: ApiKey): string {
  return JSON.stringify({ v: versionOf(key), ...key })
}

function versionOf({ expiresAtMs, models, allowTools, limits, labels }: ApiKey): number {
  if (allowTools !== undefined) return WITH_TOOLS
  if (labels !== undefined) return LABELLED
  const isLimited = expiresAtMs !== undefined || models !== undefined || limits !== undefined
  return isLimited ? LIMITED : VERSION
}

/** The text of a sign-in token. */
export function writeSignInToken(token: SignInToken): string {
  return JSON.stringify({ v: VERSION, ...token })
}

/** The text of an entry of the audit trail. */
export function writeAuditEntry(entry: AuditEntry): string {
  return JSON.stringify({ v: VERSION, ...entry })
}

/** The key after a change. */
export function editedKey(key: ApiKey, edit: KeyEdit | ((key: ApiKey) => KeyEdit)): ApiKey {
  const edited = { ...key, ...(typeof edit === 'function' ? edit(key) : edit) }
  const { expiresAtMs = null, models = null, allowTools = null, ...others } = edited
  const { limits = null, labels = null, ...plain } = others
  return {
    ...plain,
    ...(expiresAtMs === null ? {} : { expiresAtMs }),
    ...(models === null ? {} : { models }),
    ...(allowTools === null ? {} : { allowTools }),
    ...(limits === null ? {} : { limits }),
    ...(labels === null ? {} : { labels }),
  }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAccount(text: string): AccountRecord {
  const { order, liveKeys, ...account } = read(accountSchema, text)
  return { account, order, liveKeys }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readKey(text: string): ApiKey {
  return read(keySchema, text, [VERSION, LIMITED, LABELLED, WITH_TOOLS])
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readSignInToken(text: string): SignInToken {
  return read(signInTokenSchema, text)
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAuditEntry(text: string): AuditEntry {
  return read(auditEntrySchema, text)
}

/** Reads a record of these versions: a migration is a decision, not a guess. */
function read<Schema extends z.ZodType>(
  schema: Schema,
  text: string,
  versions: readonly unknown[] = [VERSION],
): z.output<Schema> {
  const value = parseJson(text)
  if (!isObject(value)) throw new Error('not a JSON object')
  if (!versions.includes(value['v'])) throw new Error(`field 'v' is not ${String(versions.at(-1))}`)
  return checkFields(schema, value)
}
