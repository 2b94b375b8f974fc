/**
 * Checks that a migration overwrites nothing, and afterwards that the copy is complete. Writes nothing.
 */
import { createHash } from 'node:crypto'
import type { ApiKey } from '../../accounts/account.js'
import { isObject } from '../../base/json.js'
import { everyAccount, everyKey, userPages } from '../list-all.js'
import { isRemovable } from '../remove-ended-keys.js'
import { STORE_CAPACITY, type Store } from '../store.js'
import { auditPages, PARTS, recordsOf, tokenPages, type Part, type Progress } from './read-parts.js'

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

/**
 * Reads both stores and compares checksums. Older records than the source's oldest are ignored: it has pruned
 * them.
 */
export async function compareStores(from: Store, to: Store, progress: Progress): Promise<Compared[]> {
  const nowMs = Date.now()
  const compared: Compared[] = []
  for (const part of PARTS) {
    const source = new Checksum()
    const target = new Checksum()
    // A source without sums may have pruned them all.
    const isPruned = part === 'hours' || part === 'days'
    let oldest: string | number | undefined
    for await (const batch of recordsOf(from, part, nowMs)) {
      for (const { age, record } of batch) {
        source.add(record)
        if (oldest === undefined || age < oldest) oldest = age
      }
      progress('read back', part, source.count)
    }
    for await (const batch of recordsOf(to, part, nowMs)) {
      for (const { age, record } of batch) {
        if (oldest === undefined ? !isPruned : age >= oldest) target.add(record)
      }
      progress('read back', part, target.count)
    }
    const isSame = source.count === target.count && source.digest === target.digest
    compared.push({ part, source, target, isSame })
  }
  return compared
}

/**
 * Rejects with `MigrationRefused` if the target has records that the source does not have: the target is in
 * use, or the newer of the two. Entries older than the source's oldest are ignored: the source has pruned
 * them.
 */
export async function refuseForeign(from: Store, to: Store, progress: Progress): Promise<void> {
  const nowMs = Date.now()
  for await (const account of everyAccount(to)) {
    const { id, name, createdAtMs } = account
    const own = await from.accountById(id)
    const isSame = own?.name === name && own.createdAtMs === createdAtMs
    if (!isSame) throw foreign(`account '${id}'`)
    for await (const key of everyKey(to, id)) {
      if (isRemovable(key, nowMs)) continue
      if (!isKept(await from.keyById(id, key.id), key)) throw foreign(`key '${key.id}'`)
    }
  }
  for await (const page of userPages(to)) {
    for (const { id, email } of page) {
      if ((await from.users.byId(id))?.email !== email) throw foreign(`user '${id}'`)
    }
  }
  for await (const page of tokenPages(to)) {
    for (const { id, digest, revokedAtMs } of page) {
      const own = await from.adminTokens.byId(id)
      // The copy would make a token valid again that only the target has revoked.
      const isKept = revokedAtMs === undefined || own?.revokedAtMs !== undefined
      if (own?.digest !== digest || !isKept) throw foreign(`the admin token '${id}'`)
    }
  }
  await refuseForeignTrail(from, to)
  let checked = 0
  for await (const rows of to.ledger.export(await oldestRowMs(from))) {
    const own = await Promise.all(
      rows.map(({ accountId, requestId }) => from.ledger.entry(accountId, requestId)),
    )
    const at = own.indexOf(null)
    if (at >= 0) throw foreign(`the ledger entry of request '${rows[at]?.requestId ?? ''}'`)
    progress('checked', 'rows', (checked += rows.length))
  }
}

async function oldestRowMs(store: Store): Promise<number> {
  for await (const [first] of store.ledger.export(0)) if (first !== undefined) return first.atMs
  return 0
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
    `the target has ${what}, which the source does not have, or has with other values; nothing was written: name an empty target`,
  )
}

/** Characters of the checksum that are shown. */
const SHOWN = 16

/**
 * Adds up records that each occur once: engines that return them in different orders have the same checksum.
 * If the order matters, callers add the position to the record.
 */
class Checksum {
  count = 0
  private readonly mixed = Buffer.alloc(32)

  add(thing: unknown): void {
    this.count += 1
    const digest = createHash('sha256').update(canonical(thing)).digest()
    digest.forEach((byte, at) => (this.mixed[at] = (this.mixed[at] ?? 0) ^ byte))
  }

  /** A digest of the digests; reveals nothing about the records. */
  get digest(): string {
    return createHash('sha256').update(this.mixed).digest('hex').slice(0, SHOWN)
  }
}

/** JSON with sorted names, so that equal values have equal texts. */
export function canonical(thing: unknown): string {
  return JSON.stringify(thing, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
}
