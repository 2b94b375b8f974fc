/**
 * Copies one store into another; the engines may differ.
 *
 * The source is only read, except that expired reservations are settled and keys that ended long ago are
 * removed, as a gateway does. Records that the target has already are brought up to date, so a second run
 * completes a copy that was interrupted. A target with records that the source does not have is refused
 * before anything is written.
 */
import type { Account, ApiKey, User } from '../../accounts/account.js'
import type { AdminToken } from '../admin-tokens.js'
import type { StoredValue, ToolCalls } from '../dimension-values.js'
import { accountPages, everyAccount, keyPages, userPages } from '../list-all.js'
import { removeEndedKeys } from '../remove-ended-keys.js'
import type { Store } from '../store.js'
import { canonical, MigrationRefused, refuseForeign } from './compare-stores.js'
import {
  auditPages,
  budgetBatches,
  denialPages,
  LOGIN_KINDS,
  objectBatches,
  prunedUses,
  recordingBatches,
  sumsOf,
  tokenPages,
  valueBatches,
  type Part,
  type Progress,
} from './read-parts.js'

/** Concurrent writes. */
const AT_ONCE = 64

/**
 * Copies everything but the shared cache, sessions and links of the dashboard, and throttle counters. Rejects
 * with `MigrationRefused` if the target has other records, and as the stores do.
 */
export async function copyStore(from: Store, to: Store, progress: Progress): Promise<void> {
  await refuseForeign(from, to, progress)
  await from.ledger.expire()
  for (const store of [from, to]) await removeEndedKeys(store, Date.now(), 0)
  const counts: Partial<Record<Part, number>> = {}
  const copied = (part: Part, more: number) => {
    progress('copied', part, (counts[part] = (counts[part] ?? 0) + more))
  }
  for await (const page of userPages(from)) {
    await inBatches(page, (user) => copyUser(to, user))
    copied('users', page.length)
  }
  for await (const account of everyAccount(from)) {
    await copyAccount(to, account)
    copied('accounts', 1)
  }
  // A parent may be younger than its child.
  for await (const account of everyAccount(from)) {
    copied('members', await copyMembers(from, to, account))
  }
  for await (const page of accountPages(from)) {
    await inBatches(page, async ({ id }) => {
      for await (const keys of keyPages(from, id)) {
        await copyKeys(to, id, keys)
        copied('keys', keys.length)
      }
    })
  }
  const there = new Set<string>()
  for await (const page of auditPages(to)) for (const { id } of page) there.add(id)
  for await (const page of auditPages(from)) {
    const missing = page.filter(({ id }) => !there.has(id))
    await inBatches(missing, (entry) => to.auditTrail.add(entry))
    copied('trail', page.length)
  }
  for await (const rows of from.ledger.export(0)) {
    await inBatches(rows, (row) => to.ledger.settle(row))
    copied('rows', rows.length)
  }
  for (const by of ['hour', 'day'] as const) {
    for await (const { id } of everyAccount(from)) {
      copied(by === 'hour' ? 'hours' : 'days', await copySums(from, to, { accountId: id, by }))
    }
  }
  for await (const batch of budgetBatches(from, Date.now())) {
    await to.ledger.putBudgets(batch)
    copied('budgets', batch.length)
  }
  for await (const batch of valueBatches(from, Date.now())) {
    await inBatches(batch, (value) => copyValue(to, value))
    copied('values', batch.length)
  }
  for await (const page of userPages(from)) {
    for (const { id } of page) copied('logins', await copyLogins(from, to, id))
  }
  for await (const batch of objectBatches(from, Date.now())) {
    await to.providerObjects.put(batch, Date.now())
    copied('objects', batch.length)
  }
  for await (const batch of prunedUses(from)) {
    await to.ledger.putAccountUse(batch)
    copied('months', batch.length)
  }
  for await (const page of denialPages(from, Date.now())) {
    for (const denial of page) {
      if ((await to.denials.byId(denial.id)) === null) await to.denials.create(denial)
      copied('denials', 1)
    }
  }
  copied('tokens', await copyTokens(from, to))
  for await (const batch of recordingBatches(from, Date.now())) {
    for (const record of batch) {
      if ((await to.sealedRecords.find('recording', record.id, 0)) !== null) continue
      await to.sealedRecords.put(record, Number.MAX_SAFE_INTEGER, record.atMs)
    }
    copied('recordings', batch.length)
  }
}

/** Gives a value of a dimension its place, counts and end in the target. */
async function copyValue({ dimensionValues }: Store, value: StoredValue): Promise<void> {
  const nowMs = Date.now()
  const { accountId, dimension, untilMs, firstAtMs, lastAtMs, endedAtMs } = value
  const name = { accountId, dimension, value: value.value }
  const bounds = { maxValues: Number.MAX_SAFE_INTEGER, keepMs: Math.max(1, untilMs - nowMs) }
  await dimensionValues.claim(name, bounds, nowMs)
  const there = await dimensionValues.find(name, nowMs)
  const more = (count: 'requests' | 'inputTokens' | 'outputTokens' | 'costNanoUsd'): number => {
    return value[count] - (there?.[count] ?? 0)
  }
  const none = { requests: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 }
  const known = new Map(there?.tools.map(({ name, calls }) => [name, calls]))
  const tools = value.tools.flatMap(({ name, calls }): ToolCalls[] => {
    const further = calls - (known.get(name) ?? 0)
    return further > 0 ? [{ name, calls: further }] : []
  })
  const counts = {
    requests: more('requests'),
    inputTokens: more('inputTokens'),
    outputTokens: more('outputTokens'),
    costNanoUsd: more('costNanoUsd'),
    tools,
  }
  const times = [firstAtMs, lastAtMs].filter((ms) => ms !== null)
  const uses = times.map((atMs, at) => {
    return { ...name, keepMs: untilMs - atMs, atMs, ...(at === 0 ? counts : none) }
  })
  await dimensionValues.add(uses)
  if (endedAtMs !== null) await dimensionValues.end(name, untilMs - endedAtMs, endedAtMs)
}

/**
 * Copies the sign-ins of a user's programs and their access tokens, and removes those that have ended;
 * returns their number.
 */
async function copyLogins(from: Store, to: Store, userId: string): Promise<number> {
  let count = 0
  for (const kind of LOGIN_KINDS) {
    const nowMs = Date.now()
    const tokens = await from.signInTokens.tokensOf(kind, userId, nowMs)
    const ids = new Set(tokens.map(({ id }) => id))
    for (const { id } of await to.signInTokens.tokensOf(kind, userId, nowMs)) {
      if (!ids.has(id)) await to.signInTokens.take(kind, id, nowMs)
    }
    for (const token of tokens) {
      const { id, expiresAtMs, text } = token
      if (!(await to.signInTokens.add(token))) {
        await to.signInTokens.change(kind, id, () => ({ expiresAtMs, text }), nowMs)
      }
    }
    count += tokens.length
  }
  return count
}

/** Copies the tokens of the admin API, in the order of creation; returns their number. */
async function copyTokens(from: Store, to: Store): Promise<number> {
  const tokens: AdminToken[] = []
  for await (const page of tokenPages(from)) tokens.push(...page)
  for (const token of tokens.toReversed()) {
    if (await to.adminTokens.add(token)) continue
    const there = await to.adminTokens.byId(token.id)
    if (there?.digest !== token.digest) {
      throw new MigrationRefused(`the target cannot take the admin token '${token.id}'`)
    }
    if (canonical(there) !== canonical(token)) await to.adminTokens.change(token.id, () => token)
  }
  return tokens.length
}

async function copyUser(to: Store, user: User): Promise<void> {
  const outcome = await to.users.create(user)
  if (outcome === 'created') return
  const there = await to.users.byId(user.id)
  if (there?.email !== user.email) {
    throw new MigrationRefused(`the target cannot take user '${user.id}' (${outcome})`)
  }
  if (canonical(there) === canonical(user)) return
  const { groupRole = null, unproven = null, issuer = null, subject = null, formerEmail, ...edit } = user
  // The stored user has the same addresses: a change of the address is finished by the next sign-in.
  const settled = formerEmail === undefined ? { formerEmail: null } : {}
  await to.users.change(user.id, { ...edit, ...settled, groupRole, unproven, issuer, subject })
}

/** The account without its parent, which may not be there yet. */
async function copyAccount(to: Store, whole: Account): Promise<void> {
  const account = { ...whole }
  delete account.parentId
  const result = await to.transact<null>({
    ...{ accountId: account.id, nowMs: 0 },
    decide: (there) => (there.account === null ? { write: { account, audit: [] } } : { refuse: null }),
  })
  if (result.kind === 'written' || (await to.accountById(account.id))?.name === account.name) return
  const reason = result.kind === 'conflict' ? result.conflict : 'id_taken'
  throw new MigrationRefused(`the target cannot take account '${account.id}' (${reason})`)
}

/** Writes the whole record and the members; returns their number. */
async function copyMembers(from: Store, to: Store, account: Account): Promise<number> {
  const members = await from.membersOf(account.id)
  const emails = new Set(members.map(({ email }) => email))
  const result = await to.transact({
    accountId: account.id,
    reads: { members: 'all' },
    nowMs: 0,
    decide: (there) => {
      const removedMembers = [...there.members.keys()].filter((email) => !emails.has(email))
      return { write: { account, members, removedMembers, audit: [] } }
    },
  })
  if (result.kind === 'conflict') {
    throw new MigrationRefused(`the target cannot take account '${account.id}' (${result.conflict})`)
  }
  return members.length
}

/** Copies keys of one account, in the order of creation. */
async function copyKeys(to: Store, accountId: string, keys: readonly ApiKey[]): Promise<void> {
  const result = await to.transact<string>({
    ...{ accountId, nowMs: Date.now(), reads: { keyIds: keys.map(({ id }) => id) } },
    decide({ account, keysById }) {
      if (account === null) return { refuse: 'its account is missing' }
      const foreign = keys.find(({ id, digest }) => (keysById.get(id)?.digest ?? digest) !== digest)
      if (foreign !== undefined) return { refuse: `key '${foreign.id}' has another secret` }
      const changed = keys.filter((key) => {
        const there = keysById.get(key.id)
        return there !== undefined && canonical(there) !== canonical(key)
      })
      return { write: { newKeys: keys.filter(({ id }) => !keysById.has(id)), keys: changed, audit: [] } }
    },
  })
  if (result.kind === 'written') return
  const reason = result.kind === 'conflict' ? result.conflict : result.reason
  throw new MigrationRefused(`the target cannot take keys of account '${accountId}' (${reason})`)
}

/**
 * Copies the sums that settling the entries did not produce, because entries were pruned. Returns the number
 * of sums.
 */
async function copySums(
  from: Store,
  to: Store,
  { accountId, by }: { readonly accountId: string; readonly by: 'hour' | 'day' },
): Promise<number> {
  const sums = await sumsOf(from, accountId, by)
  const there = new Set((await sumsOf(to, accountId, by)).map(canonical))
  const missing = sums.filter((sum) => !there.has(canonical(sum)))
  if (missing.length > 0) {
    await to.ledger.putSums(by, missing, await from.ledger.lastUse(accountId))
  }
  return sums.length
}

async function inBatches<T>(items: readonly T[], write: (item: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) {
    await Promise.all(items.slice(at, at + AT_ONCE).map(write))
  }
}
