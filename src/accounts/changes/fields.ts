/**
 * The fields of accounts, members and keys: the rules of their values in the spelling of the admin API, and
 * the records that follow from values. Every door checks values here. Pure.
 */
import * as z from 'zod'
import { MODEL_NAME } from '../../formats/chat/model-facts.js'
import { ALLOWED_TOOL, allowedTools, MAX_ALLOWED_TOOLS } from '../../formats/chat/hosted-tools.js'
import { amountsOf, shownAmounts } from '../../config/schema/limits-schema.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import {
  boundsOf,
  PLAIN_LIMITS,
  type LimitMember,
  UNIT_LIMITS,
  UNIT_MEMBERS,
} from '../../base/limit-members.js'
import {
  ACCOUNT_ROLES,
  comparableEmail,
  GATEWAY_ROLES,
  roleOf,
  type Account,
  type AccountRole,
  type ApiKey,
  type GatewayRole,
  type KeyLimits,
  type Member,
} from '../account.js'
import { raisesLeft } from '../limit-raises.js'
import { LABEL_NAME, LABEL_VALUE, MAX_LABELS } from '../labels.js'
import { ACCOUNT_NAME, displayNameOf } from '../names.js'
import { isPlanOf, planOfNewAccounts, type Plans } from '../plans.js'
import {
  checkedValue,
  choiceType,
  Faults,
  FLAG,
  listType,
  MAPS,
  numberType,
  objectType,
  rule,
  textIn,
  textType,
  TIME,
  without,
  type Fields,
  type FieldType,
} from './field-types.js'
import { faulty, type Refusal } from './refusal.js'

/** The same bounds as in the configuration's `limits`. */
export const LIMIT_FIELDS: Fields = {
  ...limitFields(PLAIN_LIMITS.map((member) => [member.name, member])),
  [UNIT_LIMITS.name]: {
    type: objectType(limitFields(UNIT_MEMBERS.map((member) => [member.unit, member]))),
    means: UNIT_LIMITS.means,
    optional: true,
  },
}
const LIMITS = objectType(LIMIT_FIELDS)

/** A field for each limit, by name. */
function limitFields(members: readonly (readonly [string, LimitMember])[]): Fields {
  return Object.fromEntries(
    members.map(([name, member]) => {
      const { min, max } = boundsOf(member)
      const type = numberType(min, max, { isWhole: member.counts !== 'usd' })
      return [name, { type, means: member.means, optional: true }]
    }),
  )
}

/** A text that only replies have. */
export const SHOWN_TEXT = textType(() => true, { fix: 'Send a text.' })

const LABEL = z.record(
  z.string().regex(LABEL_NAME, {
    error: ({ input }) => {
      const fix = "Use 1 to 32 characters of a-z, 0-9, '_', '.' and '-'."
      return rule(fix, `"${String(input).slice(0, 64)}" is no name of a label.`).error
    },
  }),
  textType((text) => LABEL_VALUE.test(text), {
    fix: 'Send a text of 1 to 64 printable ASCII characters without spaces and commas.',
    schema: { pattern: LABEL_VALUE.source },
  }),
)
export const LABELS: FieldType<JsonObject> = z
  .record(z.string(), z.unknown(), rule('Send {"name": "value"}.', 'The value of $PATH is not an object.'))
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, {
    error: ({ input }) => {
      const count = Object.keys(isObject(input) ? input : {}).length
      return rule(`Send at most ${MAX_LABELS}.`, `$PATH has ${count} labels.`).error
    },
    abort: true,
  })
  .pipe(LABEL)
  .transform((labels) => Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))))
  .meta({ maxProperties: MAX_LABELS })
MAPS.set(LABELS, null)

/** Reports too many labels; a merge patch may add some to those that there are. */
function assertCount(count: number, path: string, faults: Faults): void {
  if (count <= MAX_LABELS) return
  faults.report(path, `"${path}" has ${count} labels.`, `Send at most ${MAX_LABELS}.`)
}

const MODEL = textType((text) => MODEL_NAME.test(text) && !text.slice(0, -1).includes('*'), {
  fix: 'Send the id of a model, or the beginning of ids and a "*".',
})
/** Control characters, and characters that reorder text. */
const HIDDEN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** Whether a text may be the name of a key, or the name of an account that people see. */
export function isShownName(text: string): boolean {
  const { length } = Array.from(text)
  return text.trim() === text && length >= 1 && length <= 100 && !HIDDEN.test(text)
}

/** One `@`, no spaces or control characters, a domain; delivery is not checked. */
const EMAIL = /^[^\s@"(),:;<>[\\\]\p{Cc}]{1,64}@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*$/u
/** The longest address that SMTP carries (RFC 5321, 4.5.3.1.3). */
const MAX_EMAIL = 254

/** What is wrong with a value, and what to do. */
type Rule = readonly [detail: string, fix: string]

/** Why a text is no e-mail address; null if it is one. */
export function emailFault(text: string): Rule | null {
  const email = comparableEmail(text)
  if (email.length <= MAX_EMAIL && EMAIL.test(email)) return null
  return [`"${email.slice(0, 100)}" is no e-mail address.`, 'Use one such as team@example.com.']
}

/** Why a text is no name of an account; null if it is one. */
export function accountNameFault(name: string): Rule | null {
  if (ACCOUNT_NAME.test(name)) return null
  return [
    `"${name.slice(0, 100)}" is no name of an account.`,
    'Use 1 to 63 characters of a-z, 0-9 and "-", which is neither first nor last.',
  ]
}

/** What is wrong with the name of a key, and what to do. */
export const KEY_NAME_RULE = [
  'This is no name of a key.',
  'Use 1 to 100 characters, without control characters and without spaces at the ends.',
] as const

const [WRONG_KEY_NAME, KEY_NAME_FIX] = KEY_NAME_RULE
const KEY_NAME = textType(isShownName, { fix: KEY_NAME_FIX, wrong: WRONG_KEY_NAME })

const NAMED = textType(isShownName, {
  fix: 'Send 1 to 100 characters, without control characters and without spaces at the ends.',
})
const TIMES: Fields = {
  created_at: { type: TIME, means: 'When it was made.', readOnly: true },
  updated_at: { type: TIME, means: 'The last change of a writable field.', readOnly: true },
}
const ETAG: Fields = { etag: { type: SHOWN_TEXT, means: 'The entity tag.', readOnly: true } }
const ACCOUNT_NAMED: Fields = {
  account: { type: SHOWN_TEXT, means: 'The name of the account.', readOnly: true },
}

const PLAN_TYPES = new WeakMap<Plans, FieldType<string>>()

/** The name of one of the plans. */
export function planType(plans: Plans): FieldType<string> {
  const known = PLAN_TYPES.get(plans)
  if (known !== undefined) return known
  const type = textType((text) => isPlanOf(plans, text), { fix: `Use ${Object.keys(plans).join(', ')}.` })
  PLAN_TYPES.set(plans, type)
  return type
}

/**
 * The fields of an account; the defaults depend on its name and on the plans. `usual`: the default plan.
 * `plans` null: as replies have them, in which a plan may be one that the configuration has no more.
 */
export function accountFields(
  name: string,
  plans: Plans | null,
  usual = planOfNewAccounts(plans ?? {}),
): Fields {
  return {
    id: { type: SHOWN_TEXT, means: 'The id of the account.', readOnly: true },
    name: { type: SHOWN_TEXT, means: 'Its name, which never changes.', readOnly: true },
    display_name: { type: NAMED, means: 'The name that people see.', default: name },
    plan: {
      type: plans === null ? SHOWN_TEXT : planType(plans),
      means: 'A plan of the configuration.',
      default: usual,
    },
    parent: {
      type: SHOWN_TEXT.nullable(),
      means: 'The name of the account whose limits count for this one, too.',
      default: null,
    },
    labels: { type: LABELS, means: 'Labels.', default: {} },
    limits: { type: LIMITS, means: 'Limits of the account and of all below it.', default: {} },
    disabled: { type: FLAG, means: 'Whether its keys are refused.', default: false },
    ...TIMES,
    ...ETAG,
  }
}

/** Characters of a reason. */
export const MAX_REASON = 500

/** Why something is changed or denied, in one line. */
export const REASON = textType((text) => text.length <= MAX_REASON && !/\p{Cc}/u.test(text), {
  fix: `Send one line of at most ${MAX_REASON} characters.`,
})

/** A reason without blanks at its ends. Throws a `Refusal`. */
export function checkedReason(text: JsonValue): string {
  return checkedValue(REASON, text, 'reason').trim()
}

/** The fields of the limits of an account, as an object of their own. */
export const ACCOUNT_LIMIT_FIELDS: Fields = { ...ACCOUNT_NAMED, ...LIMIT_FIELDS, ...ETAG }

const ACCOUNT_ROLE = choiceType(ACCOUNT_ROLES)

/** A role in an account. Throws a `Refusal`. */
export function checkedRole(value: JsonValue | undefined, field = 'role'): AccountRole {
  return checkedValue(ACCOUNT_ROLE, value, field)
}

const GATEWAY_ROLE = choiceType(GATEWAY_ROLES)

/** A role in the whole gateway. Throws a `Refusal`. */
export function checkedGatewayRole(value: JsonValue): GatewayRole {
  return checkedValue(GATEWAY_ROLE, value, 'role')
}

export const MEMBER_FIELDS: Fields = {
  ...ACCOUNT_NAMED,
  email: { type: SHOWN_TEXT, means: 'The e-mail address, in lower case.', readOnly: true },
  role: { type: ACCOUNT_ROLE, means: 'The role in the account.' },
  labels: { type: LABELS, means: 'Labels.', default: {} },
  state: {
    type: choiceType(['active', 'invited', 'pending']),
    means:
      '`invited` before the first sign-in; `pending` while the role waits for proof of the address. A token with an account sees `pending` until the person has signed in since it has the role.',
    readOnly: true,
  },
  ...TIMES,
  ...ETAG,
}

/** The digest of a secret. */
export const DIGEST = textType((text) => /^[0-9a-f]{64}$/.test(text), {
  fix: 'Send 64 lower-case hex digits: the SHA-256 of the secret.',
  schema: { pattern: '^[0-9a-f]{64}$' },
})

export const KEY_FIELDS: Fields = {
  id: { type: SHOWN_TEXT, means: 'The id of the key.', readOnly: true },
  ...ACCOUNT_NAMED,
  name: { type: SHOWN_TEXT, means: 'Its name, unique among the live keys.', readOnly: true },
  models: {
    type: listType(MODEL, { least: 1, most: 100 }).nullable(),
    means: 'The models that it may use; null: all.',
    default: null,
  },
  limits: { type: LIMITS, means: 'Limits of the key.', default: {} },
  labels: { type: LABELS, means: 'Labels.', default: {} },
  expires_at: {
    type: TIME.nullable(),
    means: 'When it ends; null: never, or with the token that makes it if that has an account.',
    default: null,
  },
  state: {
    type: choiceType(['live', 'expired', 'revoked']),
    means: 'Whether it works.',
    readOnly: true,
  },
  prefix: { type: SHOWN_TEXT.nullable(), means: 'Its first characters.', readOnly: true },
  last_four: { type: SHOWN_TEXT.nullable(), means: 'Its last characters.', readOnly: true },
  imported: {
    type: FLAG,
    means: 'Whether another gateway made its secret, which may have any form (`auth.accept_imported_keys`).',
    readOnly: true,
  },
  created_by: { type: SHOWN_TEXT.nullable(), means: 'Who made it.', readOnly: true },
  ...TIMES,
  last_used_at: {
    type: TIME.nullable(),
    means: 'The last request with it.',
    readOnly: true,
    isVolatile: true,
  },
  ...ETAG,
  secret_sha256: {
    type: DIGEST,
    means: 'The SHA-256 of the secret, instead of a generated one.',
    optional: true,
    writeOnly: true,
  },
}

/** A name of a tool in the form in which requests are compared. */
const TOOL = textType((text) => ALLOWED_TOOL.test(text), {
  fix: 'Send the name of a tool such as web_search, or "*" for all.',
})
const TOOLS = listType(TOOL, { most: MAX_ALLOWED_TOOLS }).transform((tools) => [...allowedTools(tools)])

/** What the dashboard and the command line set of a key: its name and its tools, too. */
export const KEY_SETTINGS: Fields = {
  name: { type: KEY_NAME, means: 'Its name.' },
  ...Object.fromEntries(
    Object.entries(KEY_FIELDS).filter(
      ([, { readOnly, writeOnly }]) => readOnly !== true && writeOnly !== true,
    ),
  ),
  allow_tools: { type: TOOLS.nullable(), means: 'The tools that it may use.', default: null },
}

/** The writable values of an account. */
export function accountValues(account: Account, parent: string | null): JsonObject {
  const { plan, labels = {}, limits = {}, disabled } = account
  return {
    display_name: displayNameOf(account),
    plan,
    parent,
    labels: { ...labels },
    limits: shownAmounts(limits),
    disabled,
  }
}

/** The account with these values; `former` is the record before, or the start of a new one. */
export function accountWith(
  former: Pick<Account, 'id' | 'name' | 'createdAtMs'> & Partial<Account>,
  values: JsonObject,
  { parentId, nowMs }: { readonly parentId: string | null; readonly nowMs: number },
): Account {
  const { display_name: displayName, plan, disabled } = values
  const labels = labelsIn(values)
  const limits = limitsIn(values['limits'])
  return {
    ...without(former, 'displayName', 'parentId', 'labels', 'limits', 'raises'),
    ...(displayName === former.name ? {} : { displayName: textIn(displayName) }),
    plan: textIn(plan),
    ...(parentId === null ? {} : { parentId }),
    ...(labels === null ? {} : { labels }),
    ...(limits === null ? {} : { limits }),
    ...raisesLeft(former.raises, former.limits, limits ?? {}),
    disabled: disabled === true,
    updatedAtMs: laterThan(former.updatedAtMs, nowMs),
  }
}

/** The writable values of a member. */
export function memberValues(member: Member): JsonObject {
  return { role: roleOf(member), labels: { ...member.labels } }
}

/**
 * The member with these values. A role that equals the one of a group stays the group's, which takes it away
 * again: a change of labels does not make it permanent.
 */
export function memberWith(
  former: Member | null,
  values: JsonObject,
  as: Pick<Member, 'accountId' | 'userId' | 'email'> & { readonly nowMs: number },
): Member {
  const { nowMs, ...owner } = as
  const { role } = values
  const labels = labelsIn(values)
  const start: Omit<Member, 'role'> = former ?? { ...owner, createdAtMs: nowMs }
  const given = role === 'owner' || role === 'member' ? role : 'viewer'
  return {
    ...without(start, 'labels'),
    role: former !== null && roleOf(former) === given ? former.role : given,
    ...(labels === null ? {} : { labels }),
    updatedAtMs: laterThan(former?.updatedAtMs, nowMs),
  }
}

/** The writable values of a key. */
export function keyValues({ models, limits = {}, labels = {}, expiresAtMs }: ApiKey): JsonObject {
  return {
    models: models === undefined ? null : [...models],
    limits: shownAmounts(limits),
    labels: { ...labels },
    expires_at: expiresAtMs === undefined ? null : timeOfMs(expiresAtMs),
  }
}

/** The values of `KEY_SETTINGS`, without the name. */
export function keySettings(key: ApiKey): JsonObject {
  return { ...keyValues(key), allow_tools: key.allowTools === undefined ? null : [...key.allowTools] }
}

/** Whether a key works, or why not. */
export function keyState(
  { revokedAtMs, expiresAtMs }: ApiKey,
  nowMs: number,
): 'live' | 'expired' | 'revoked' {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'live'
}

/** The key with these values; `former` is the record before, or the start of a new one. */
export function keyWith(former: ApiKey, values: JsonObject, nowMs: number): ApiKey {
  const { models, expires_at: end, allow_tools: tools } = values
  const kept = tools === undefined ? former : without(former, 'allowTools')
  const limits = limitsIn(values['limits'])
  const labels = labelsIn(values)
  return {
    ...without(kept, 'models', 'limits', 'raises', 'labels', 'expiresAtMs'),
    ...(Array.isArray(models) ? { models: models.map(String) } : {}),
    ...(Array.isArray(tools) ? { allowTools: tools.map(String) } : {}),
    ...(limits === null ? {} : { limits }),
    ...raisesLeft(former.raises, former.limits, limits ?? {}),
    ...(labels === null ? {} : { labels }),
    ...(typeof end === 'string' ? { expiresAtMs: Date.parse(end) } : {}),
    updatedAtMs: laterThan(former.updatedAtMs, nowMs),
  }
}

/** The limits in values; null for none. */
export function limitsIn(values: JsonValue | undefined): KeyLimits | null {
  const given = isObject(values) ? values : {}
  const units = given[UNIT_LIMITS.name]
  const limits = amountsOf({
    ...numbersIn(given),
    [UNIT_LIMITS.name]: numbersIn(isObject(units) ? units : {}),
  })
  return Object.keys(limits).length === 0 ? null : limits
}

function numbersIn(values: JsonObject): Record<string, number> {
  const numbers = Object.entries(values).filter((pair): pair is [string, number] => {
    return typeof pair[1] === 'number'
  })
  return Object.fromEntries(numbers)
}

/** The refusal of too many labels after a merge patch; null for none. */
export function surplusLabels({ labels }: JsonObject): Refusal | null {
  const faults = new Faults()
  assertCount(isObject(labels) ? Object.keys(labels).length : 0, 'labels', faults)
  return faults.all.length === 0 ? null : faulty(faults.all)
}

/** The time of a change, later than the one before. */
export function laterThan(formerMs: number | undefined, nowMs: number): number {
  return Math.max(nowMs, (formerMs ?? 0) + 1)
}

/** The labels in values, sorted; null for none. */
function labelsIn({ labels }: JsonObject): Record<string, string> | null {
  const given = isObject(labels) ? Object.entries(labels) : []
  if (given.length === 0) return null
  const sorted = given.sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, value]) => [name, textIn(value)]))
}

/** A time in ms since 1970 as the admin API writes it. */
export function timeOfMs(ms: number): string {
  return new Date(ms).toISOString()
}
