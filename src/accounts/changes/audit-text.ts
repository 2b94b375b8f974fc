/**
 * What the audit trail records of a change: the fields that changed, before and after, in the spelling of the
 * command line and the API. Never a secret or a digest.
 */
import { shownAmounts } from '../../config/schema/limits-schema.js'
import type { JsonObject } from '../../base/json.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import type { SettingChange } from '../../config/config.js'
import type { Account, ApiKey, Member, User } from '../account.js'
import { displayNameOf } from '../names.js'
import { timeText } from '../../base/time-units.js'

/** `acme; plan: starter → pro` */
export function accountChangeText(before: Account | null, after: Account): string {
  const fields = ['displayName', 'plan', 'parentId', 'labels', 'limits', 'disabled'] as const
  const start = after.email ?? after.name
  return before === null ? start : changeText(start, fields, before, after)
}

/** `ci (sk_9fQ2x…wXyZ)` */
export function keyText(key: ApiKey): string {
  return key.prefix === '' ? key.name : `${key.name} (${secretText(key)})`
}

function secretText({ prefix, lastFour }: ApiKey): string {
  return prefix === '' ? 'a given secret' : `${prefix}…${lastFour}`
}

/** `ci; limits: none → {"concurrent":4}` */
export function keyChangeText(before: ApiKey, after: ApiKey): string {
  const fields = ['name', 'expiresAtMs', 'models', 'allowTools', 'limits', 'labels'] as const
  return changeText(after.name, fields, before, after)
}

/** The fields that differ, behind the name. */
function changeText<Item>(name: string, fields: readonly (keyof Item)[], before: Item, after: Item): string {
  const differences = fields.flatMap((field) => {
    const [old, next] = [before[field], after[field]].map((value) => {
      return value === undefined ? 'none' : typeof value === 'string' ? value : JSON.stringify(value)
    })
    return old === next ? [] : [`${String(field)}: ${old ?? ''} → ${next ?? ''}`]
  })
  return [name, ...differences].join('; ').slice(0, MAX_VALUE)
}

/** `ci: sk_9fQ2x…wXyZ → sk_4kd0P…aBcD` */
export function keyRotationText(old: ApiKey, created: ApiKey): string {
  return `${old.name}: ${secretText(old)} → ${secretText(created)}`
}

/** The changed fields; null on the side on which the record did not exist. */
export type AuditChange = Pick<AuditEntry, 'before' | 'after'>

/** Changed settings of the configuration that an entry has; the number of further ones is given. */
const MAX_SETTINGS = 50

/** The entry of a change of the configuration: settings by path, as JSON with secrets masked. */
export function configurationChange(changes: readonly SettingChange[]): AuditChange {
  if (changes.length === 0) return {}
  const shown = changes.slice(0, MAX_SETTINGS)
  const rest = changes.length - shown.length
  const side = (pick: (change: SettingChange) => string | null): JsonObject =>
    Object.fromEntries(shown.map((change) => [change.path, short(pick(change)) ?? null]))
  return {
    before: side(({ before }) => before),
    after: { ...side(({ after }) => after), ...(rest === 0 ? {} : { 'further settings': rest }) },
  }
}

/** Longer values are cut: a key may have a hundred names of models. */
const MAX_VALUE = 1_000

/** The change of a key; null is a key that does not exist yet. */
export function keyChange(before: ApiKey | null, after: ApiKey): AuditChange {
  return changeOf(before === null ? null : keyFields(before), keyFields(after))
}

/** Names of parents by id: those of the account before and after a change. */
export type ParentNames = ReadonlyMap<string, string>

/** The name of the account's parent; null for none. */
export function parentName({ parentId }: Account, parents: ParentNames): string | null {
  return parentId === undefined ? null : (parents.get(parentId) ?? parentId)
}

/** The change of an account; null is an account that does not exist yet. */
export function accountChange(
  before: Account | null,
  after: Account,
  parents: ParentNames = new Map(),
): AuditChange {
  return changeOf(before === null ? null : accountFields(before, parents), accountFields(after, parents))
}

/** The change of a user; null is a user that does not exist yet. */
export function userChange(before: User | null, after: User): AuditChange {
  return changeOf(before === null ? null : userFields(before), userFields(after))
}

/** The change of a member; null is one that does not exist, before or after. */
export function memberChange(before: Member | null, after: Member | null): AuditChange {
  if (after !== null) return changeOf(before === null ? null : memberFields(before), memberFields(after))
  return { before: before === null ? null : memberFields(before), after: null }
}

/** The key that a rotation replaces, and the new one with the end of the old one, if it is known. */
export function keyRotation(old: ApiKey, created: ApiKey, oldEndsAtMs?: number): AuditChange {
  const fields = ({ id, prefix, lastFour }: ApiKey) => ({ id, prefix, last_four: lastFour })
  const previous = oldEndsAtMs === undefined ? {} : { previous_expires_at: timeText(oldEndsAtMs) }
  return { before: fields(old), after: { ...fields(created), ...previous } }
}

function keyFields(key: ApiKey): JsonObject {
  const { name, models, allowTools, limits, labels, expiresAtMs, revokedAtMs, imported } = key
  return {
    name,
    models: models === undefined ? null : [...models],
    allow_tools: allowTools === undefined ? null : [...allowTools],
    limits: shownAmounts(limits ?? {}),
    labels: { ...labels },
    expires_at: timeText(expiresAtMs),
    revoked_at: timeText(revokedAtMs),
    imported: imported === true,
  }
}

function accountFields(account: Account, parents: ParentNames): JsonObject {
  const { name, email, plan, labels, limits, disabled } = account
  return {
    name,
    email: email ?? null,
    display_name: displayNameOf(account),
    plan,
    parent: parentName(account, parents),
    labels: { ...labels },
    limits: shownAmounts(limits ?? {}),
    disabled,
  }
}

/** `identity`: the provider that the user is bound to, by its issuer. */
function userFields({ email, role, groupRole, issuer, disabled }: User): JsonObject {
  return { email, role, group_role: groupRole ?? null, identity: issuer ?? null, disabled }
}

function memberFields({ role, groupRole, labels }: Member): JsonObject {
  const ofGroup = groupRole === undefined ? {} : { group_role: groupRole }
  return { role, ...ofGroup, labels: { ...labels } }
}

/** Only the fields that differ; of a new record, all that are set. */
function changeOf(before: JsonObject | null, after: JsonObject): AuditChange {
  const all = new Set([...Object.keys(before ?? {}), ...Object.keys(after)])
  const names = [...all].filter((name) => {
    const text = JSON.stringify(after[name] ?? null)
    return before === null ? !EMPTY.includes(text) : text !== JSON.stringify(before[name] ?? null)
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
