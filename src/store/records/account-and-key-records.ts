/**
 * Reads and writes the records of accounts, users, members, keys, sign-in tokens and audit entries: compact
 * JSON with a version, `{"v":1,…}`. Every engine stores the same text.
 */
import * as z from 'zod'
import {
  ACCOUNT_ROLES,
  comparableEmail,
  GATEWAY_ROLES,
  type Account,
  type ApiKey,
  type Member,
  type User,
} from '../../accounts/account.js'
import { isObject } from '../../base/json.js'
import { byMember } from '../../base/limit-members.js'
import type { AdminToken } from '../admin-tokens.js'
import type { AuditEntry } from '../audit-trail.js'
import type { Denial } from '../denials.js'
import { SIGN_IN_TOKEN_KINDS, type SignInToken } from '../sign-in-tokens.js'
import type { UserEdit } from '../store.js'
import { checkFields, parseJson } from './parse-record.js'

/** The version of every record except the keys below. */
const VERSION = 1
/** A key with limits: earlier versions of the program, which would ignore the limits, refuse the record. */
const LIMITED = 2
/** A key with labels, by which limits select it: refused by earlier versions for the same reason. */
const LABELLED = 3
/** A key with a list of tools: refused by earlier versions for the same reason. */
const WITH_TOOLS = 4
/** A key of another gateway: earlier versions would drop the mark when they change the key. */
const IMPORTED = 5
/** A user whose address is not proven: refused by earlier versions, which would give it every role. */
const UNPROVEN = 2

const count = z.int().min(0)

const limitsSchema = z.object(byMember('field', () => count.exactOptional()))

const raisesSchema = z.array(
  z.object({
    budget: z.enum(['nanoUsdPerDay', 'nanoUsdPerWeek', 'nanoUsdPerMonth']),
    nanoUsd: count,
    untilMs: count,
    reason: z.string(),
    by: z.string(),
    atMs: count,
  }),
)

const labelsSchema = z.record(z.string(), z.string())

/**
 * `email`, `role` and `passwordHash` are those of the login of an earlier version; the record of this version
 * keeps them for gateways of that version, without a role or password.
 */
const accountSchema = z.object({
  id: z.string(),
  name: z.string().exactOptional(),
  displayName: z.string().exactOptional(),
  email: z.string(),
  plan: z.string(),
  role: z.enum(['owner', 'admin']),
  passwordHash: z.string(),
  parentId: z.string().exactOptional(),
  labels: labelsSchema.exactOptional(),
  limits: limitsSchema.exactOptional(),
  raises: raisesSchema.exactOptional(),
  disabled: z.boolean(),
  createdAtMs: count,
  updatedAtMs: count.exactOptional(),
  order: count,
  liveKeys: count,
})

const userSchema = z.object({
  id: z.string(),
  email: z.string(),
  formerEmail: z.string().exactOptional(),
  role: z.enum(GATEWAY_ROLES).nullable(),
  groupRole: z.enum(GATEWAY_ROLES).exactOptional(),
  passwordHash: z.string(),
  issuer: z.string().exactOptional(),
  subject: z.string().exactOptional(),
  disabled: z.boolean(),
  createdAtMs: count,
  signedInAtMs: count.exactOptional(),
  unproven: z.literal(true).exactOptional(),
  views: z.array(z.object({ id: z.string(), name: z.string(), url: z.string() })).exactOptional(),
})

const memberSchema = z.object({
  accountId: z.string(),
  userId: z.string(),
  email: z.string(),
  role: z.enum(ACCOUNT_ROLES).nullable(),
  groupRole: z.enum(ACCOUNT_ROLES).exactOptional(),
  accepted: z.literal(true).exactOptional(),
  labels: labelsSchema.exactOptional(),
  createdAtMs: count,
  updatedAtMs: count.exactOptional(),
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
  imported: z.literal(true).exactOptional(),
  createdBy: z.string().exactOptional(),
  createdAtMs: count,
  updatedAtMs: count.exactOptional(),
  revokedAtMs: count.exactOptional(),
  replaces: z.string().exactOptional(),
  replacedBy: z.string().exactOptional(),
  expiresAtMs: count.exactOptional(),
  models: z.array(z.string()).exactOptional(),
  allowTools: z.array(z.string()).exactOptional(),
  limits: limitsSchema.exactOptional(),
  raises: raisesSchema.exactOptional(),
  labels: labelsSchema.exactOptional(),
})

const signInTokenSchema = z.object({
  id: z.string(),
  kind: z.enum(SIGN_IN_TOKEN_KINDS),
  accountId: z.string(),
  expiresAtMs: count,
  text: z.string(),
})

const adminTokenSchema = z.object({
  id: z.string(),
  name: z.string(),
  digest: z.string(),
  lastFour: z.string(),
  scopes: z.array(z.string()),
  accountId: z.string().nullable(),
  expiresAtMs: count,
  createdBy: z.string(),
  createdAtMs: count,
  revokedAtMs: count.exactOptional(),
  lastUsedAtMs: count.exactOptional(),
})

const auditEntrySchema = z.object({
  id: z.string(),
  atMs: count,
  accountId: z.string(),
  account: z.string().exactOptional(),
  actor: z.string(),
  action: z.string(),
  target: z.string(),
  detail: z.string(),
  reason: z.string().exactOptional(),
  address: z.string().nullable(),
  requestId: z.string().exactOptional(),
  before: z.record(z.string(), z.json()).nullable().exactOptional(),
  after: z.record(z.string(), z.json()).nullable().exactOptional(),
})

const denialSchema = z.object({
  id: z.string(),
  identity: z.string(),
  sub: z.string().nullable(),
  jti: z.string().nullable(),
  reason: z.string(),
  expiresAtMs: count.nullable(),
  createdAtMs: count,
})

/** An account with what the store itself counts for it. */
export interface AccountRecord {
  readonly account: Account
  /** The place in the order of creation. */
  readonly order: number
  /** Keys that are not revoked; changed in the transaction that changes them. */
  readonly liveKeys: number
}

/**
 * The text of an account. An account with more than an earlier version of the program knew has another
 * version, so that the earlier one, which would ignore or drop it, refuses the record.
 */
export function writeAccount({ account, order, liveKeys }: AccountRecord): string {
  const { email = '', displayName, parentId, labels, limits } = account
  const isPlain = [displayName, parentId, labels, limits].every((each) => each === undefined)
  const v = isPlain ? VERSION : LIMITED
  return JSON.stringify({ v, ...account, email, ...NO_LOGIN, order, liveKeys })
}

const NO_LOGIN = { role: 'owner', passwordHash: '' } as const

/** The text of a user. */
export function writeUser(user: User): string {
  return JSON.stringify({ v: user.unproven === true ? UNPROVEN : VERSION, ...user })
}

/** The text of a member. */
export function writeMember(member: Member): string {
  return JSON.stringify({ v: VERSION, ...member })
}

/** The text of a key. */
export function writeKey(key: ApiKey): string {
  return JSON.stringify({ v: versionOf(key), ...key })
}

function versionOf({ imported, expiresAtMs, models, allowTools, limits, labels }: ApiKey): number {
  if (imported === true) return IMPORTED
  if (allowTools !== undefined) return WITH_TOOLS
  if (labels !== undefined) return LABELLED
  const isLimited = expiresAtMs !== undefined || models !== undefined || limits !== undefined
  return isLimited ? LIMITED : VERSION
}

/** The text of a sign-in token. */
export function writeSignInToken(token: SignInToken): string {
  return JSON.stringify({ v: VERSION, ...token })
}

/** The text of a token of the admin API. */
export function writeAdminToken(token: AdminToken): string {
  return JSON.stringify({ v: VERSION, ...token })
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAdminToken(text: string): AdminToken {
  return read(adminTokenSchema, text)
}

/** The text of an entry of the audit trail. */
export function writeAuditEntry(entry: AuditEntry): string {
  return JSON.stringify({ v: VERSION, ...entry })
}

/** The text of a denied identity. */
export function writeDenial(denial: Denial): string {
  return JSON.stringify({ v: VERSION, ...denial })
}

/** The user after a change; null if there is none. */
export function editedUser(user: User, edit: UserEdit | ((user: User) => UserEdit | null)): User | null {
  const change = typeof edit === 'function' ? edit(user) : edit
  if (change === null) return null
  const { groupRole = null, formerEmail = null, unproven = null, ...named } = { ...user, ...change }
  const { issuer = null, subject = null, ...others } = named
  return {
    ...others,
    ...(issuer === null ? {} : { issuer }),
    ...(subject === null ? {} : { subject }),
    ...(groupRole === null ? {} : { groupRole }),
    ...(formerEmail === null ? {} : { formerEmail }),
    ...(unproven === null ? {} : { unproven }),
  }
}

/**
 * The name is empty if an earlier version wrote the record. Throws an Error naming the field that is damaged,
 * never its value.
 */
export function readAccount(text: string): AccountRecord {
  const record = read(accountSchema, text, [VERSION, LIMITED])
  const { id, email, plan, disabled, createdAtMs, order, liveKeys } = record
  const { name = '', displayName, parentId, labels, limits, raises, updatedAtMs } = record
  const account: Account = {
    ...{ id, name, plan, disabled, createdAtMs },
    ...(email === '' ? {} : { email }),
    ...(displayName === undefined ? {} : { displayName }),
    ...(parentId === undefined ? {} : { parentId }),
    ...(labels === undefined ? {} : { labels }),
    ...(limits === undefined ? {} : { limits }),
    ...(raises === undefined ? {} : { raises }),
    ...(updatedAtMs === undefined ? {} : { updatedAtMs }),
  }
  return { account, order, liveKeys }
}

/**
 * The login that an earlier version kept in the account's record, as a user with the account's id and a role
 * in the account.
 */
export function readFormerLogin(text: string): { readonly user: User; readonly member: Member } {
  const record = read(accountSchema, text, [VERSION, LIMITED])
  const { id, role, passwordHash, disabled, createdAtMs } = record
  const email = comparableEmail(record.email)
  const signedInAtMs = createdAtMs
  const own = { id, email, passwordHash, disabled, createdAtMs, signedInAtMs }
  return {
    user: { ...own, role: role === 'admin' ? 'admin' : null },
    member: { accountId: id, userId: id, email, role: 'owner', createdAtMs },
  }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readUser(text: string): User {
  return read(userSchema, text, [VERSION, UNPROVEN])
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readMember(text: string): Member {
  return read(memberSchema, text)
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readKey(text: string): ApiKey {
  return read(keySchema, text, [VERSION, LIMITED, LABELLED, WITH_TOOLS, IMPORTED])
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readSignInToken(text: string): SignInToken {
  return read(signInTokenSchema, text)
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readAuditEntry(text: string): AuditEntry {
  return read(auditEntrySchema, text)
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readDenial(text: string): Denial {
  return read(denialSchema, text)
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
