/**
 * What the audit trail records of a change: the fields that changed, before and after, in the spelling of the
 * command line and the API. Never a secret or a digest.
 */
import { shownAmounts } from '../config/schema/limits-schema.js'
import type { JsonObject } from '../formats/chat/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Account, ApiKey, Member, User } from './account.js'

/** The changed fields; null on the side on which the record did not exist. */
export type AuditChange = Pick<AuditEntry, 'before' | 'after'>

/** Longer values are cut: a key may have a hundred names of models. */
const MAX_VALUE = 1_000

/** The change of a key; null is a key that does not exist yet. */
export function keyChange(before: ApiKey | null, after: ApiKey): AuditChange {
  return changeOf(before === null ? null : keyFields(before), keyFields(after))
}

/** The change of an account; null is an account that does not exist yet. */
export function accountChange(before: Account | null, after: Account): AuditChange {
  return changeOf(before === null ? null : accountFields(before), accountFields(after))
}

/** The change of a user; null is a user that does not exist yet. */
export function userChange(before: User | null, after: User): AuditChange {
  return changeOf(before === null ? null : userFields(before), userFields(after))
}

/** The change of a member; null is one that does not exist, before or after. */
export function memberChange(before: Member | null, after: Member | null): AuditChange {
  if (after !== null) return changeOf(before === null ? null : memberFields(before), memberFields(after))
  return {
    before: before === null ? null : (changeOf(null, memberFields(before)).after ?? null),
    after: null,
  }
}

/** The key that a rotation replaces, and the new one with the end of the old one, if it is known. */
export function keyRotation(old: ApiKey, created: ApiKey, oldEndsAtMs?: number): AuditChange {
  const fields = ({ id, prefix, lastFour }: ApiKey) => ({ id, prefix, last_four: lastFour })
  const previous = oldEndsAtMs === undefined ? {} : { previous_expires_at: time(oldEndsAtMs) }
  return { before: fields(old), after: { ...fields(created), ...previous } }
}

function keyFields(key: ApiKey): JsonObject {
  const { name, models, allowTools, limits, labels, expiresAtMs, revokedAtMs } = key
  return {
    name,
    models: models === undefined ? null : [...models],
    allow_tools: allowTools === undefined ? null : [...allowTools],
    limits: shownAmounts(limits ?? {}),
    labels: { ...labels },
    expires_at: time(expiresAtMs),
    revoked_at: time(revokedAtMs),
  }
}

function accountFields(account: Account): JsonObject {
  const { name, displayName, email, plan, parentId, labels, limits, disabled } = account
  return {
    name,
    email: email ?? null,
    display_name: displayName ?? null,
    plan,
    parent: parentId ?? null,
    labels: { ...labels },
    limits: shownAmounts(limits ?? {}),
    disabled,
  }
}

function userFields({ email, role, groupRole, disabled }: User): JsonObject {
  return { email, role, group_role: groupRole ?? null, disabled }
}

function memberFields({ email, role, groupRole, labels }: Member): JsonObject {
  return { email, role, group_role: groupRole ?? null, labels: { ...labels } }
}

/** Only the fields that differ; of a new record, all that are set. */
function changeOf(before: JsonObject | null, after: JsonObject): AuditChange {
  const names = Object.keys(after).filter((name) => {
    const text = JSON.stringify(after[name])
    return before === null ? !EMPTY.includes(text) : text !== JSON.stringify(before[name])
  })
  const chosen = (fields: JsonObject): JsonObject => {
    // The history of labels needs them whole; there are at most 16.
    const shown = (name: string): JsonObject[string] =>
      name === 'labels' ? fields[name] : short(fields[name] ?? null)
    return Object.fromEntries(names.map((name) => [name, shown(name) ?? null]))
  }
  return { before: before === null ? null : chosen(before), after: chosen(after) }
}

const EMPTY = ['null', '{}', 'false']

function short(value: NonNullable<JsonObject[string]> | null): JsonObject[string] {
  const text = JSON.stringify(value)
  return text.length <= MAX_VALUE ? value : `${text.slice(0, MAX_VALUE)}…`
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
