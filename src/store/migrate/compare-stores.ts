/**
 * Checks that a migration overwrites nothing, and afterwards that the copy is complete. Writes nothing.
 */
import type { ApiKey } from '../../accounts/account.js'
import {
  budgetBatches,
  PARTS,
  sumsSince,
  auditPages,
  type PartStarts,
  type Part,
  type Progress,
} from './read-parts.js'
import { isRemovable } from '../remove-ended-keys.js'
import { everyAccount, everyKey } from '../list-all.js'
import { STORE_CAPACITY, type Store } from '../store.js'
import { Checksum } from './checksum.js'

/** The target has a record that the source does not have, or cannot store one; the message names it. */
export class MigrationRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationRefused'
  }
}

/** One part of both stores. */
export interface Compared {
  readonly part: Part
  readonly source: Checksum
  readonly target: Checksum
  readonly isSame: boolean
}

/** Reads both stores, from the source's oldest records on, and compares checksums. */
export async function compareStores(
  from: Store,
  to: Store,
  begin: PartStarts,
  tell: Progress,
): Promise<Compared[]> {
  const nowMs = Date.now()
  const sources = await talliesOf(from, begin, nowMs, tell)
  const targets = await talliesOf(to, begin, nowMs, tell)
  return PARTS.map((part) => {
    const [source, target] = [sources[part], targets[part]]
    const isSame = source.count === target.count && source.digest === target.digest
    return { part, source, target, isSame }
  })
}

/**
 * Rejects with `MigrationRefused` if the target has records that the source does not have: the target is in use, or
 * the newer of the two. Entries older than the source's oldest are ignored: the source has pruned them.
 */
export async function refuseForeign(from: Store, to: Store, rowsBeginMs: number): Promise<void> {
  const nowMs = Date.now()
  for await (const account of everyAccount(to)) {
    const { id, email, role, createdAtMs } = account
    const own = await from.accountById(id)
    const isSame = own?.email === email && own.role === role && own.createdAtMs === createdAtMs
    if (!isSame) throw foreign(`account '${id}'`)
    for await (const key of everyKey(to, id)) {
      if (isRemovable(key, nowMs)) continue
      if (!isKept(await from.keyById(id, key.id), key)) throw foreign(`key '${key.id}'`)
    }
  }
  await refuseForeignTrail(from, to)
  for await (const rows of to.ledger.export(rowsBeginMs)) {
    const own = await Promise.all(
      rows.map(({ accountId, requestId }) => from.ledger.entry(accountId, requestId)),
    )
    const at = own.indexOf(null)
    if (at >= 0) throw foreign(`the usage row of request '${rows[at]?.requestId ?? ''}'`)
  }
}

/** False if only the target has revoked the key: the copy would make it valid again. */
function isKept(own: ApiKey | null, key: ApiKey): boolean {
  if (own?.digest !== key.digest) return false
  return key.revokedAtMs === undefined || key.revokedAtMs === own.revokedAtMs
}

async function refuseForeignTrail(from: Store, to: Store): Promise<void> {
  const own = new Set<string>()
  let oldest = ''
  for await (const page of auditPages(from)) for (const { id } of page) own.add((oldest = id))
  // Below this number no entry was ever removed.
  if (own.size < STORE_CAPACITY.auditEntriesPerAccount) oldest = ''
  for await (const page of auditPages(to)) {
    const other = page.find(({ id }) => id >= oldest && !own.has(id))
    if (other !== undefined) throw foreign(`entry '${other.id}' of the audit trail`)
  }
}

function foreign(what: string): MigrationRefused {
  return new MigrationRefused(
    `the target has ${what}, which the source has not, or not so; nothing was written: name an empty target`,
  )
}

async function talliesOf(
  store: Store,
  begin: PartStarts,
  nowMs: number,
  tell: Progress,
): Promise<Record<Part, Checksum>> {
  const tallies: Record<Part, Checksum> = {
    accounts: new Checksum(),
    keys: new Checksum(),
    trail: new Checksum(),
    rows: new Checksum(),
    hours: new Checksum(),
    days: new Checksum(),
    budgets: new Checksum(),
  }
  let place = 0
  for await (const account of everyAccount(store)) {
    const { id } = account
    tallies.accounts.add([place, account])
    let at = 0
    for await (const key of everyKey(store, id)) tallies.keys.add([at++, key])
    for (const sum of await sumsSince(store, id, 'hour', begin.hours)) tallies.hours.add(sum)
    for (const sum of await sumsSince(store, id, 'day', begin.days)) tallies.days.add(sum)
    tell('accounts', (place += 1))
  }
  for await (const page of auditPages(store)) {
    for (const entry of page) if (entry.id >= begin.trail) tallies.trail.add(entry)
  }
  for await (const rows of store.ledger.export(begin.rows)) {
    for (const row of rows) tallies.rows.add(row)
    tell('rows', tallies.rows.count)
  }
  for await (const batch of budgetBatches(store, nowMs)) {
    for (const budget of batch) tallies.budgets.add(budget)
  }
  return tallies
}
