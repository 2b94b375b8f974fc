/**
 * Copies one store into another; the engines may differ.
 *
 * The source is only read, except that expired reservations are settled and keys that ended long ago are removed, as a
 * gateway does. Records that the target has already are brought up to date, so a second run completes a copy that
 * was interrupted. A target with records that the source does not have is refused before anything is written.
 */
import type { Account, ApiKey } from '../../accounts/account.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { UsageSum } from '../ledger.js'
import { MigrationRefused, refuseForeign } from './compare-stores.js'
import {
  budgetBatches,
  sumsSince,
  auditPages,
  type PartStarts,
  type Progress,
} from './read-parts.js'
import { removeEndedKeys } from '../remove-ended-keys.js'
import { accountPages, everyAccount, everyKey } from '../list-all.js'
import type { KeyEdit, Store } from '../store.js'
import { canonical } from './checksum.js'

/** Concurrent writes. */
const AT_ONCE = 64
const SUMS = [
  ['hours', 'hour'],
  ['days', 'day'],
] as const

/**
 * Copies everything but the shared cache, sign-in tokens and throttle counters. Rejects with `MigrationRefused` if the
 * target has other records, and as the stores do. Resolves with the arguments of `compareStores`.
 */
export async function copyStore(from: Store, to: Store, tell: Progress): Promise<PartStarts> {
  await refuseForeign(from, to, await rowsBegin(from))
  await from.ledger.expire()
  const nowMs = Date.now()
  for (const store of [from, to]) await removeEndedKeys(store, nowMs, 0)
  let accounts = 0
  for await (const account of everyAccount(from)) {
    await copyAccount(to, account)
    tell('accounts', (accounts += 1))
  }
  let keys = 0
  for await (const page of accountPages(from)) {
    await inBatches(page, async ({ id }) => {
      for await (const key of everyKey(from, id)) {
        await copyKey(to, key)
        tell('keys', (keys += 1))
      }
    })
  }
  const trail = await copyTrail(from, to, tell)
  const rows = await copyRows(from, to, tell)
  const begin = { hours: Number.MAX_SAFE_INTEGER, days: Number.MAX_SAFE_INTEGER }
  for (const [part, by] of SUMS) {
    let done = 0
    for await (const { id } of everyAccount(from)) {
      const sums = await copySums(from, to, id, by)
      begin[part] = Math.min(begin[part], sums[0]?.startMs ?? begin[part])
      tell(part, (done += sums.length))
    }
  }
  let budgets = 0
  for await (const batch of budgetBatches(from, Date.now())) {
    await to.ledger.putBudgets(batch)
    tell('budgets', (budgets += batch.length))
  }
  return { trail, rows, ...begin }
}

async function rowsBegin(store: Store): Promise<number> {
  for await (const [first] of store.ledger.export(0)) if (first !== undefined) return first.atMs
  return 0
}

async function copyAccount(to: Store, account: Account): Promise<void> {
  const outcome = await to.createAccount(account)
  if (outcome === 'created') return
  const there = await to.accountById(account.id)
  if (outcome === 'bad_name' || there === null) {
    throw new MigrationRefused(`the target cannot take account '${account.id}' (${outcome})`)
  }
  const { plan, disabled, passwordHash } = account
  const isSame =
    there.plan === plan && there.disabled === disabled && there.passwordHash === passwordHash
  if (!isSame) await to.changeAccount(account.id, { plan, disabled, passwordHash })
}

async function copyKey(to: Store, key: ApiKey): Promise<void> {
  // The plan's number of keys was checked when the key was created.
  const outcome = await to.createKey(key, null)
  if (outcome === 'created') return
  const there = await to.keyById(key.accountId, key.id)
  if (there?.digest !== key.digest) {
    throw new MigrationRefused(`the target cannot take key '${key.id}' (${outcome})`)
  }
  const edit = editOf(key)
  const isEdited = canonical(edit) !== canonical(editOf(there))
  if (isEdited && there.revokedAtMs === undefined) await to.changeKey(key.accountId, key.id, edit)
  if (key.revokedAtMs !== undefined && there.revokedAtMs === undefined) {
    await to.revokeKey(key.accountId, key.id, key.revokedAtMs)
  }
}

/** The members of a key that can change. */
function editOf({ name, expiresAtMs, models, limits, replacedBy }: ApiKey): KeyEdit {
  return {
    name,
    expiresAtMs: expiresAtMs ?? null,
    models: models ?? null,
    limits: limits ?? null,
    ...(replacedBy === undefined ? {} : { replacedBy }),
  }
}

/** Returns the id of the source's oldest entry. */
async function copyTrail(from: Store, to: Store, tell: Progress): Promise<string> {
  const there = new Set<string>()
  for await (const page of auditPages(to)) for (const { id } of page) there.add(id)
  let oldest = ''
  let done = 0
  for await (const page of auditPages(from)) {
    oldest = page.at(-1)?.id ?? oldest
    const missing = page.filter(({ id }) => !there.has(id))
    await inBatches(missing, (entry) => to.auditTrail.add(entry))
    tell('trail', (done += page.length))
  }
  return oldest
}

/** Returns the time of the source's oldest entry. */
async function copyRows(from: Store, to: Store, tell: Progress): Promise<number> {
  let oldest: LedgerEntry | undefined
  let done = 0
  for await (const rows of from.ledger.export(0)) {
    oldest ??= rows[0]
    await inBatches(rows, (row) => to.ledger.settle(row))
    tell('rows', (done += rows.length))
  }
  return oldest?.atMs ?? 0
}

/** Copies the sums that settling the entries did not produce, because entries were pruned. Returns all sums. */
async function copySums(
  from: Store,
  to: Store,
  accountId: string,
  by: 'hour' | 'day',
): Promise<readonly UsageSum[]> {
  const sums = await sumsSince(from, accountId, by, 0)
  const there = new Set((await sumsSince(to, accountId, by, 0)).map(canonical))
  const missing = sums.filter((sum) => !there.has(canonical(sum)))
  if (missing.length > 0) {
    await to.ledger.putSums(by, missing, await from.ledger.lastUse(accountId))
  }
  return sums
}

async function inBatches<T>(
  items: readonly T[],
  write: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) {
    await Promise.all(items.slice(at, at + AT_ONCE).map(write))
  }
}
