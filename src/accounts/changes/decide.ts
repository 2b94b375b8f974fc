/**
 * Every change of an account, a member or a key: from the stored record and the wanted values to the new
 * record, the fields that differ, and the entry of the audit trail, or a refusal. Pure, so that a transaction
 * may decide several times.
 */
import { shownAmounts } from '../../config/schema/limits-schema.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import { newRequestId } from '../../http/request-id.js'
import type { AccountConflict } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import type { Account, ApiKey, KeyLimits, Member } from '../account.js'
import { digestOf, newSecret, randomBase62, shownParts } from '../key-secret.js'
import {
  accountChange,
  accountChangeText,
  keyChange,
  keyChangeText,
  keyRotation,
  keyRotationText,
  keyText,
  memberChange,
  parentName,
  type AuditChange,
  type ParentNames,
} from './audit-text.js'
import { keyBeyond, type Bounds } from './bounds.js'
import { raisesLeft } from '../limit-raises.js'
import { isSame, without } from './field-types.js'
import {
  accountValues,
  accountWith,
  keySettings,
  keyState,
  keyValues,
  keyWith,
  laterThan,
  limitsIn,
  memberValues,
  memberWith,
  surplusLabels,
} from './fields.js'
import { invalid, Refusal } from './refusal.js'

/** Who makes a change, for the audit trail. */
export interface Actor {
  readonly actor: string
  /** The id of a token: several may have the name. */
  readonly actorId?: string
  readonly address: string | null
  readonly requestId?: string
  /** The reason, for the maker of the change. */
  readonly reason?: string
}

/** An entry of the audit trail for an action. The change itself must store it. */
export function entryOf(
  nowMs: number,
  { actor: name, actorId, reason = '', ...from }: Actor,
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  const actor = actorId === undefined ? name : `${name} (${actorId})`
  const why = reason === '' ? {} : { reason }
  return { id: newRequestId(nowMs), atMs: nowMs, actor, ...from, ...what, ...why }
}

/** Who makes a change of which account, and when. */
export interface ChangeContext {
  readonly nowMs: number
  readonly actor: Actor
  readonly accountId: string
  /** The account's name. */
  readonly account: string
}

/** What a change of a key is measured by. */
interface KeyRules {
  readonly bounds: Bounds
  /** The limits of the account, its plan and the accounts above. */
  readonly most: readonly KeyLimits[]
}

/** The fields that a change sets, each with its old and its new value. */
export type Differences = Readonly<Record<string, readonly [JsonValue, JsonValue]>>

/** A decided change of one object. `unchanged` has no entry. */
interface Decided<Item> {
  readonly kind: 'create' | 'change' | 'unchanged'
  readonly item: Item
  readonly differences: Differences
  readonly audit: readonly AuditEntry[]
}

/** Values by path; maps such as `limits` by their members. */
export function differencesOf(before: JsonObject, after: JsonObject): Differences {
  const differences: Record<string, readonly [JsonValue, JsonValue]> = {}
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, next] = [before[name] ?? null, after[name] ?? null]
    if (isSame(old, next)) continue
    if (isMap(old) && isMap(next)) {
      for (const [member, pair] of Object.entries(differencesOf(old, next))) {
        differences[`${name}.${member}`] = pair
      }
    } else differences[name] = [old, next]
  }
  return differences
}

function isMap(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An audit entry of a change. */
export function changeEntry(
  { nowMs, actor, accountId, account }: ChangeContext,
  what: Pick<AuditEntry, 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  return { ...entryOf(nowMs, actor, { accountId, ...what }), account }
}

/**
 * The account with these values, which the caller has compared with its bounds (`accountBeyond`). `parents`
 * also has the id of the wanted parent.
 */
export function decideAccount(
  former: Account | null,
  values: JsonObject,
  parents: ParentNames,
  context: ChangeContext,
): Decided<Account> {
  const { nowMs, accountId: id, account: name } = context
  const wanted = values['parent'] ?? null
  const [parentId = null] = [...parents].find(([, parent]) => parent === wanted) ?? []
  const start = former ?? { id, name, createdAtMs: nowMs }
  const item = accountWith(start, values, { parentId: wanted === null ? null : parentId, nowMs })
  const before = former === null ? null : accountValues(former, parentName(former, parents))
  const after = accountValues(item, parentName(item, parents))
  return decided(former, item, {
    values: [before, after],
    entry: (kind) => {
      const action = kind === 'create' ? 'account.create' : 'account.change'
      const detail = accountChangeText(former, item)
      return changeEntry(context, {
        action,
        target: id,
        detail,
        ...accountChange(former, item, parents),
      })
    },
  })
}

/** The account with these limits, in the spelling of the API; one that is left out is removed. */
export function decideLimits(
  former: Account,
  wanted: JsonObject,
  context: ChangeContext,
): Omit<Decided<Account>, 'differences'> {
  const { limits: formerLimits = {}, raises, ...kept } = former
  const limits = limitsIn(wanted)
  const [before, after] = [shownAmounts(formerLimits), shownAmounts(limits ?? {})]
  if (isSame(before, after)) return { kind: 'unchanged', item: former, audit: [] }
  const updatedAtMs = laterThan(former.updatedAtMs, context.nowMs)
  const left = raisesLeft(raises, formerLimits, limits ?? {})
  const item = { ...kept, ...(limits === null ? {} : { limits }), ...left, updatedAtMs }
  const entry = changeEntry(context, {
    ...{ action: 'account.change', target: former.id, detail: accountChangeText(former, item) },
    ...{ before: { limits: before }, after: { limits: after } },
  })
  return { kind: 'change', item, audit: [entry] }
}

/** The audit entries of a changed account: of its plan, of its state, and of the rest. */
export function entriesByAction(
  before: Account,
  after: Account,
  parents: ParentNames,
  context: ChangeContext,
): AuditEntry[] {
  const steps: readonly (readonly [action: string, from: Account, to: Account])[] = [
    ['account.plan', before, { ...before, plan: after.plan }],
    [
      `account.${after.disabled ? 'disable' : 'enable'}`,
      { ...before, plan: after.plan },
      { ...before, plan: after.plan, disabled: after.disabled },
    ],
    ['account.change', { ...before, plan: after.plan, disabled: after.disabled }, after],
  ]
  const entries = steps.flatMap(([action, from, to]) => {
    const change = accountChange(from, to, parents)
    if (Object.keys(change.after ?? {}).length === 0) return []
    const detail = accountChangeText(from, to)
    return [changeEntry(context, { action, target: after.id, detail, ...change })]
  })
  // Ids of one millisecond have no order of their own.
  const ids = entries.map(({ id }) => id).sort()
  return entries.map((entry, at) => ({ ...entry, id: ids[at] ?? entry.id }))
}

/** The member with these values. */
export function decideMember(
  former: Member | null,
  values: JsonObject,
  user: { readonly userId: string; readonly email: string },
  context: ChangeContext,
): Decided<Member> {
  const { nowMs, accountId } = context
  const item = memberWith(former, values, { accountId, ...user, nowMs })
  const before = former === null ? null : { ...memberValues(former), role: former.role }
  return decided(former, item, {
    values: [before, { ...memberValues(item), role: item.role }],
    entry: (kind) => {
      const action = kind === 'create' ? 'member.create' : 'member.change'
      const detail = `${user.email}: ${item.role ?? ''}`
      return changeEntry(context, { action, target: user.email, detail, ...memberChange(former, item) })
    },
  })
}

function decided<Item>(
  former: Item | null,
  item: Item,
  { values: [before, after], entry }: DecidedParts,
): Decided<Item> {
  const differences = differencesOf(before ?? {}, after)
  if (former !== null && Object.keys(differences).length === 0) {
    return { kind: 'unchanged', item: former, differences, audit: [] }
  }
  const kind = former === null ? 'create' : 'change'
  return { kind, item, differences: former === null ? {} : differences, audit: [entry(kind)] }
}

interface DecidedParts {
  readonly values: readonly [before: JsonObject | null, after: JsonObject]
  readonly entry: (kind: 'create' | 'change') => AuditEntry
}

/** The id and the secret of a new key. `secret` null: only its digest is known. */
export interface FreshKey {
  readonly id: string
  readonly digest: string
  readonly prefix: string
  readonly lastFour: string
  readonly secret: string | null
}

/** A new key with a generated secret, or with the digest of one that another system keeps. */
export function freshKey(digest?: string): FreshKey {
  const id = `key_${randomBase62(16)}`
  if (digest !== undefined) return { id, digest, prefix: '', lastFour: '', secret: null }
  const secret = newSecret()
  return { id, digest: digestOf(secret), ...shownParts(secret), secret }
}

/** A decided change of a key: the records to write, beside the item. */
interface DecidedKey extends Decided<ApiKey> {
  readonly newKeys: readonly ApiKey[]
  readonly keys: readonly ApiKey[]
}

/** What a key is to be. */
interface KeyWish {
  readonly name: string
  /** Of `KEY_FIELDS`, or of `KEY_SETTINGS` without the name. */
  readonly values: JsonObject
  readonly fresh: FreshKey
  /** Whether the key must have the digest of `fresh`: another one is replaced. */
  readonly hasGivenSecret: boolean
  /** Whether another gateway made the secret; null or absent: as before. */
  readonly imported?: boolean | null
}

/** The key with these values. Another given secret replaces the key: the old one ends at once. */
export function decideKey(
  former: ApiKey | null,
  { name, values, fresh, hasGivenSecret, imported = null }: KeyWish,
  { bounds, most }: KeyRules,
  context: ChangeContext,
): DecidedKey | Refusal {
  const { nowMs } = context
  const isReplaced = former !== null && hasGivenSecret && former.digest !== fresh.digest
  const settings = former === null ? {} : keySettings(former)
  const before = isReplaced ? without(settings, 'expires_at') : settings
  const refusal = surplusLabels(values) ?? keyBeyond(bounds, { values, before, most, nowMs })
  if (refusal !== null) return refusal
  if (former === null || isReplaced) {
    const start = keyOf(fresh, name, context)
    const replaces = former === null ? {} : { replaces: former.id, ...toolsOf(former) }
    const marked = imported === true ? { imported } : {}
    const item = keyWith({ ...start, ...replaces, ...marked }, values, nowMs)
    const old = former === null ? [] : [{ ...former, replacedBy: item.id, revokedAtMs: nowMs }]
    return {
      kind: former === null ? 'create' : 'change',
      ...{ item, newKeys: [item], keys: old },
      differences: former === null ? {} : { secret: ['old', 'new'], ...keyDifferences(former, item) },
      audit: [former === null ? creation(context, item) : rotation(context, former, item)],
    }
  }
  const kept = imported === null ? former : markedAs(former, imported)
  const item = { ...keyWith(kept, values, nowMs), name }
  const change = keyChange(former, item)
  if (Object.keys(change.after ?? {}).length === 0) {
    return { kind: 'unchanged', item: former, differences: {}, audit: [], newKeys: [], keys: [] }
  }
  const entry = keyEntry(context, 'key.change', item, { detail: keyChangeText(former, item), ...change })
  const differences = keyDifferences(former, item)
  return { kind: 'change', item, differences, audit: [entry], newKeys: [], keys: [item] }
}

/** A new key without settings. */
function keyOf(
  { id, digest, prefix, lastFour }: FreshKey,
  name: string,
  { nowMs, actor, accountId }: ChangeContext,
): ApiKey {
  const made = { createdBy: actor.actor, createdAtMs: nowMs }
  return { id, accountId, name, digest, prefix, lastFour, ...made }
}

function keyDifferences(before: ApiKey, after: ApiKey): Differences {
  return differencesOf(auditedValues(before), auditedValues(after))
}

/** The values of a key, and what only documents set. */
function auditedValues(key: ApiKey): JsonObject {
  return { ...keyValues(key), imported: key.imported === true }
}

function markedAs(key: ApiKey, imported: boolean): ApiKey {
  return imported ? { ...key, imported } : without(key, 'imported')
}

/** Tools of providers are no field of the admin API: a successor has those of the old key. */
function toolsOf({ allowTools }: ApiKey): Pick<ApiKey, 'allowTools'> {
  return allowTools === undefined ? {} : { allowTools }
}

function keyEntry(
  context: ChangeContext,
  action: string,
  { id: target }: ApiKey,
  what: { readonly detail: string } & AuditChange,
): AuditEntry {
  return changeEntry(context, { action, target, ...what })
}

function creation(context: ChangeContext, item: ApiKey): AuditEntry {
  return keyEntry(context, 'key.create', item, { detail: keyText(item), ...keyChange(null, item) })
}

function rotation(context: ChangeContext, old: ApiKey, item: ApiKey, endsAtMs?: number): AuditEntry {
  const change = keyRotation(old, item, endsAtMs)
  return keyEntry(context, 'key.rotate', old, { detail: keyRotationText(old, item), ...change })
}

/** How a key is replaced by a new one with the same settings. */
interface RotationWish {
  /** The name of the new key. */
  readonly name: string
  readonly fresh: FreshKey
  /** How long the old key works beside the new one; 0: it ends at once, `Infinity`: as long as it would. */
  readonly overlapMs: number
  /** When the new key ends at the latest. */
  readonly latestMs: number
}

/** The new key and the old one, which ends after the overlap; both change in one step. */
export function decideRotation(
  old: ApiKey,
  { name, fresh, overlapMs, latestMs }: RotationWish,
  context: ChangeContext,
): (DecidedKey & { readonly endsAtMs: number }) | Refusal {
  const { nowMs } = context
  if (keyState(old, nowMs) !== 'live') return invalid('key_name', 'This key has ended.', 'Create a new one.')
  const { limits, raises, labels, models } = old
  const expiresAtMs = Math.min(old.expiresAtMs ?? Infinity, latestMs)
  const item: ApiKey = {
    ...keyOf(fresh, name, context),
    ...(expiresAtMs === Infinity ? {} : { expiresAtMs }),
    ...(models === undefined ? {} : { models }),
    ...toolsOf(old),
    ...(limits === undefined ? {} : { limits }),
    ...(raises === undefined ? {} : { raises }),
    ...(labels === undefined ? {} : { labels }),
    ...{ replaces: old.id, updatedAtMs: nowMs },
  }
  const endsAtMs = Math.min(old.expiresAtMs ?? Infinity, nowMs + overlapMs)
  const former: ApiKey = {
    ...old,
    ...{ replacedBy: item.id, updatedAtMs: laterThan(old.updatedAtMs, nowMs) },
    ...(endsAtMs === Infinity ? {} : { expiresAtMs: endsAtMs }),
    ...(overlapMs === 0 ? { revokedAtMs: nowMs } : {}),
  }
  const audit = [rotation(context, old, item, endsAtMs === Infinity ? undefined : endsAtMs)]
  return { kind: 'change', item, differences: {}, newKeys: [item], keys: [former], audit, endsAtMs }
}

/** The revoked key and its audit entry. */
export function decideRevocation(key: ApiKey, context: ChangeContext): { key: ApiKey; audit: AuditEntry } {
  const { nowMs } = context
  const revoked = { ...key, revokedAtMs: nowMs, updatedAtMs: laterThan(key.updatedAtMs, nowMs) }
  const change = keyChange(key, revoked)
  return { key: revoked, audit: keyEntry(context, 'key.revoke', key, { detail: keyText(key), ...change }) }
}

/** The audit entry of a removed member. */
export function memberRemoval(member: Member, context: ChangeContext): AuditEntry {
  return changeEntry(context, {
    ...{ action: 'member.remove', target: member.email, detail: member.email },
    ...memberChange(member, null),
  })
}

/** The refusal of a rule of the store. `name` is that of the object. */
export function conflictRefusal(conflict: AccountConflict, name: string): Refusal {
  switch (conflict) {
    case 'name_taken':
      return new Refusal('name_taken', `The name "${name}" is in use.`, {
        fix: 'Use another name.',
      })
    case 'no_parent':
      return invalid('parent', 'The parent does not exist.', 'Send the name of an account, or null.')
    case 'parent_loop':
      return invalid('parent', 'The parent is below this account.', 'Send the name of another one.')
    case 'too_deep':
      return invalid('parent', 'Accounts have at most 4 levels.', 'Send a parent that is higher up.')
    case 'has_children':
      return new Refusal('has_children', `The account "${name}" has accounts below it.`, {
        fix: 'Remove them first, or give them another parent.',
      })
    case 'id_taken':
      return new Refusal('secret_in_use', 'Another key has this secret, or had it.', {
        field: 'secret_sha256',
        fix: 'Use another secret: `sluice keys generate` prints one.',
      })
    case 'account_full':
      return new Refusal(
        'plan_limit',
        'The account has as many keys as the store keeps, revoked and expired ones included: those are removed 30 days after they ended.',
      )
    case 'no_user':
      return new Refusal('not_found', 'The user of this member does not exist.')
    case 'email_taken':
      return invalid('email', 'An account with this e-mail address exists.', 'Use another address.')
    case 'bad_name':
      return invalid('name', `"${name}" cannot be stored.`, 'Use another name.')
    default:
      return conflict satisfies never
  }
}
