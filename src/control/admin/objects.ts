/** Accounts, members and keys as replies of the admin API, with their entity tags. Pure. */
import { accountValues, keyState, keyValues, memberValues } from '../../accounts/changes/fields.js'
import type { Account, ApiKey, Member } from '../../accounts/account.js'
import type { MemberState } from '../../accounts/address-proof.js'
import { timeOfMs } from '../../accounts/changes/fields.js'
import { shownAmounts } from '../../config/schema/limits-schema.js'
import type { JsonObject } from '../../base/json.js'
import { etagOf } from './conditional-requests.js'

export function accountObject(account: Account, parent: string | null): JsonObject {
  const { id, name, createdAtMs, updatedAtMs = createdAtMs } = account
  return {
    id,
    name,
    ...accountValues(account, parent),
    created_at: timeOfMs(createdAtMs),
    updated_at: timeOfMs(updatedAtMs),
    etag: accountTag(account, parent),
  }
}

/** The entity tag of an account. */
export function accountTag(account: Account, parent: string | null): string {
  const { id, createdAtMs, updatedAtMs = createdAtMs } = account
  return etagOf('account', id, updatedAtMs, accountValues(account, parent))
}

/** The object of an account's limits. */
export function limitsObject({ id, name, limits = {} }: Account): JsonObject {
  const values = shownAmounts(limits)
  return { account: name, ...values, etag: etagOf('limits', id, values) }
}

/** The entity tag of a member. */
export function memberTag(member: Member): string {
  const { accountId, userId, createdAtMs, updatedAtMs = createdAtMs } = member
  return etagOf('member', accountId, userId, updatedAtMs, memberValues(member))
}

export function memberObject(
  member: Member,
  { account, state }: { readonly account: string; readonly state: MemberState },
): JsonObject {
  const { email, createdAtMs, updatedAtMs = createdAtMs } = member
  return {
    account,
    email,
    ...memberValues(member),
    state,
    created_at: timeOfMs(createdAtMs),
    updated_at: timeOfMs(updatedAtMs),
    etag: memberTag(member),
  }
}

/** The entity tag of a key. */
export function keyTag(key: ApiKey): string {
  const { id, digest, revokedAtMs = null, createdAtMs, updatedAtMs = createdAtMs } = key
  return etagOf('key', id, digest, updatedAtMs, revokedAtMs, keyValues(key))
}

export function keyObject(
  key: ApiKey,
  of: { readonly account: string; readonly lastUsedAtMs: number | null; readonly nowMs: number },
): JsonObject {
  const { id, name, prefix, lastFour, createdBy, createdAtMs } = key
  const { account, lastUsedAtMs, nowMs } = of
  return {
    ...{ id, account, name },
    ...keyValues(key),
    state: keyState(key, nowMs),
    prefix: prefix === '' ? null : prefix,
    last_four: lastFour === '' ? null : lastFour,
    imported: key.imported === true,
    created_by: createdBy ?? null,
    created_at: timeOfMs(createdAtMs),
    updated_at: timeOfMs(key.updatedAtMs ?? createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : timeOfMs(lastUsedAtMs),
    etag: keyTag(key),
  }
}
