/**
 * The changes of accounts, members and keys that the admin API and `sluice apply` make: from the stored
 * record and the wanted values to the new record, the fields that differ, and the entry of the audit trail.
 * Pure, so that a transaction may decide several times.
 */
import type { Account, ApiKey, Member } from '../../accounts/account.js'
import { keyRotation } from '../../accounts/audit-changes.js'
import { digestOf, newSecret, randomBase62, shownParts } from '../../accounts/key-secret.js'
import { shownAmounts } from '../../config/schema/limits-schema.js'
import type { JsonObject, JsonValue } from '../../formats/chat/json.js'
import type { AccountConflict } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { isSame, without } from './field-types.js'
import {
  accountValues,
  accountWith,
  keyValues,
  keyWith,
  limitsIn,
  memberValues,
  memberWith,
} from './objects.js'
import { invalid, Problem } from './problem-details.js'
import { entryOf, type Actor } from './services.js'

/** Who makes a change of which account, and when. */
export interface ChangeContext {
  readonly nowMs: number
  readonly actor: Actor
  readonly accountId: string
  /** The account's name. */
  readonly account: string
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

/** The changed fields of an object, before and after. */
function changedFields(before: JsonObject | null, after: JsonObject): Pick<AuditEntry, 'before' | 'after'> {
  if (before === null) {
    const set = Object.entries(after).filter(([, value]) => {
      return value !== null && value !== false && JSON.stringify(value) !== '{}'
    })
    return { before: null, after: Object.fromEntries(set) }
  }
  const names = Object.keys(after).filter((name) => !isSame(before[name], after[name]))
  const chosen = (values: JsonObject): JsonObject => {
    return Object.fromEntries(names.map((name) => [name, values[name] ?? null]))
  }
  return { before: chosen(before), after: chosen(after) }
}

/** An audit entry of a change. */
export function changeEntry(
  { nowMs, actor, accountId, account }: ChangeContext,
  what: Pick<AuditEntry, 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  return { ...entryOf(nowMs, actor, { accountId, ...what }), account }
}

/** Names of parents by id: those of the account before and after a change. */
type ParentNames = ReadonlyMap<string, string>

/** The name of the account's parent; null for none. */
export function parentName({ parentId }: Account, parents: ParentNames): string | null {
  return parentId === undefined ? null : (parents.get(parentId) ?? parentId)
}

/** The account with these values. `parents` also has the id of the wanted parent. */
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
      const change = changedFields(before, before === null ? { name, ...after } : after)
      const action = kind === 'create' ? 'account.create' : 'account.change'
      return changeEntry(context, { action, target: id, detail: name, ...change })
    },
  })
}

/** The account with these limits, in the spelling of the API; one that is left out is removed. */
export function decideLimits(
  former: Account,
  wanted: JsonObject,
  context: ChangeContext,
): Omit<Decided<Account>, 'differences'> {
  const { limits: formerLimits = {}, ...kept } = former
  const limits = limitsIn(wanted)
  const [before, after] = [shownAmounts(formerLimits), shownAmounts(limits ?? {})]
  if (isSame(before, after)) return { kind: 'unchanged', item: former, audit: [] }
  const updatedAtMs = Math.max(context.nowMs, (former.updatedAtMs ?? 0) + 1)
  const item = { ...kept, ...(limits === null ? {} : { limits }), updatedAtMs }
  const entry = changeEntry(context, {
    ...{ action: 'account.change', target: former.id, detail: former.name },
    ...{ before: { limits: before }, after: { limits: after } },
  })
  return { kind: 'change', item, audit: [entry] }
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
  const before = former === null ? null : memberValues(former)
  return decided(former, item, {
    values: [before, memberValues(item)],
    entry: (kind) => {
      const action = kind === 'create' ? 'member.create' : 'member.change'
      const what = { action, target: user.email, detail: user.email }
      return changeEntry(context, { ...what, ...changedFields(before, memberValues(item)) })
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

/** What a change of a key needs. */
interface KeyWish {
  readonly name: string
  readonly values: JsonObject
  readonly fresh: FreshKey
  /** Whether the key must have the digest of `fresh`: another one is replaced. */
  readonly hasGivenSecret: boolean
  /** Whether another gateway made the secret; null: as before. */
  readonly imported: boolean | null
}

/** The key with these values. Another given secret replaces the key: the old one ends at once. */
export function decideKey(
  former: ApiKey | null,
  { name, values, fresh, hasGivenSecret, imported }: KeyWish,
  context: ChangeContext,
): DecidedKey {
  const { nowMs, actor, accountId } = context
  const start: ApiKey = {
    ...{ id: fresh.id, accountId, name, digest: fresh.digest },
    ...{ prefix: fresh.prefix, lastFour: fresh.lastFour },
    ...(imported === true ? { imported } : {}),
    createdBy: actor.actor,
    createdAtMs: nowMs,
  }
  const isReplaced = former !== null && hasGivenSecret && former.digest !== fresh.digest
  if (former === null || isReplaced) {
    const replaces = former === null ? {} : { replaces: former.id, ...toolsOf(former) }
    const item = keyWith({ ...start, ...replaces }, values, nowMs)
    const old = former === null ? [] : [{ ...former, replacedBy: item.id, revokedAtMs: nowMs }]
    return {
      kind: former === null ? 'create' : 'change',
      ...{ item, newKeys: [item], keys: old },
      differences: former === null ? {} : { secret: ['old', 'new'], ...keyDifferences(former, item) },
      audit: [former === null ? creation(context, item) : rotation(context, former, item)],
    }
  }
  const item = keyWith(imported === null ? former : markedAs(former, imported), values, nowMs)
  const differences = keyDifferences(former, item)
  if (Object.keys(differences).length === 0) {
    return { kind: 'unchanged', item: former, differences, audit: [], newKeys: [], keys: [] }
  }
  const change = changedFields(auditedValues(former), auditedValues(item))
  const entry = changeEntry(context, {
    action: 'key.change',
    target: item.id,
    detail: name,
    ...change,
  })
  return { kind: 'change', item, differences, audit: [entry], newKeys: [], keys: [item] }
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

/** Tools of providers are no field of the API: a successor has those of the old key. */
function toolsOf({ allowTools }: ApiKey): Pick<ApiKey, 'allowTools'> {
  return allowTools === undefined ? {} : { allowTools }
}

function creation(context: ChangeContext, item: ApiKey): AuditEntry {
  const { id: target, name: detail } = item
  const change = changedFields(null, { name: detail, ...auditedValues(item) })
  return changeEntry(context, { action: 'key.create', target, detail, ...change })
}

/** The audit entry of a key that replaces another. */
export function rotation(context: ChangeContext, old: ApiKey, item: ApiKey, endsAtMs?: number): AuditEntry {
  const { id: target, name: detail } = old
  const change = keyRotation(old, item, endsAtMs)
  return changeEntry(context, { action: 'key.rotate', target, detail, ...change })
}

/** The revoked key and its audit entry. */
export function revokedKey(key: ApiKey, context: ChangeContext): { key: ApiKey; audit: AuditEntry } {
  const { nowMs } = context
  const revoked = {
    ...key,
    revokedAtMs: nowMs,
    updatedAtMs: Math.max(nowMs, (key.updatedAtMs ?? 0) + 1),
  }
  const audit = changeEntry(context, {
    ...{ action: 'key.revoke', target: key.id, detail: key.name },
    ...{ before: { revoked_at: null }, after: { revoked_at: new Date(nowMs).toISOString() } },
  })
  return { key: revoked, audit }
}

/** The audit entry of a removed member. */
export function memberRemoval(member: Member, context: ChangeContext): AuditEntry {
  return changeEntry(context, {
    ...{ action: 'member.remove', target: member.email, detail: member.email },
    ...{ before: memberValues(member), after: null },
  })
}

/** The problem of a rule of the store. `name` is that of the object. */
export function conflictProblem(conflict: AccountConflict, name: string): Problem {
  switch (conflict) {
    case 'name_taken':
      return new Problem('name_taken', `The name "${name}" is in use.`, {
        fix: 'Use another name.',
      })
    case 'no_parent':
      return invalid('parent', 'The parent does not exist.', 'Send the name of an account, or null.')
    case 'parent_loop':
      return invalid('parent', 'The parent is below this account.', 'Send the name of another one.')
    case 'too_deep':
      return invalid('parent', 'Accounts have at most 4 levels.', 'Send a parent that is higher up.')
    case 'has_children':
      return new Problem('has_children', `The account "${name}" has accounts below it.`, {
        fix: 'Remove them first, or give them another parent.',
      })
    case 'id_taken':
      return new Problem('secret_in_use', 'Another key has this secret, or had it.', {
        field: 'secret_sha256',
        fix: 'Use another secret: `sluice keys generate` prints one.',
      })
    case 'account_full':
      return new Problem(
        'plan_limit',
        'The account has as many keys as the store keeps, revoked and expired ones included: those are removed 30 days after they ended.',
      )
    case 'no_user':
      return new Problem('not_found', 'The user of this member does not exist.')
    case 'bad_name':
      return invalid('name', `"${name}" cannot be stored.`, 'Use another name.')
    default:
      return conflict satisfies never
  }
}
