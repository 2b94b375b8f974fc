/**
 * The sums of an hour or day of an account in Redis: a hash whose fields are cells.
 *
 * A cell has the counters of all entries with the same key, model and properties, so that every sum can be
 * made of cells: its field is `KEY\0MODEL\0UPSTREAM\0FORMAT\0LABELS\0PATH\0SHADOW`. A field of two parts,
 * `KEY\0MODEL` or `*PROPERTY=VALUE\0MODEL`, is what cells lack of the sum of that key or property: it was
 * copied from another store, or by a former version, whose fields are `KEY\0MODEL\0COUNTER`. The value of a
 * cell is a list of counts, as `countersOf` numbers them; zeroes at its end are left out, and counts from
 * 10^14 on are texts.
 */
import { nanoUsdOf, type NanoUsd } from '../../../base/nano-usd.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { countersOf, propertiesOf } from '../../records/count-usage.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { listOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'

/** Fields read by one command: some 64 KiB. */
const FIELDS = 500
const PARTS = 7
/** The scripts have larger counts as texts. */
const EXACT = 1e14
/** The last part: of copied requests, and of others. It is no number, unlike that of former versions. */
const [SHADOW, NO_SHADOW] = ['s', '-']

/** A number of a counter, as in `countersOf`, and its count. */
export type Count = readonly [counter: number, count: NanoUsd]

/** What a field of a bucket has, and of which sums it is a part. */
interface Cell {
  /** `entries`: it has entries with these properties; `former`: one counter of a former version. */
  readonly kind: 'entries' | 'sum' | 'former'
  /** `KEY\0MODEL` or `*PROPERTY=VALUE\0MODEL`. */
  readonly owner: string
  readonly model: string
  readonly counts: readonly Count[]
  /** The properties of entries, as `propertiesOf`; of other cells none. */
  properties(): readonly string[]
}

/** The cell to which an entry belongs. */
export function cellOf(entry: LedgerEntry): string {
  const { keyId, model, upstream, ingress, labels, accountPath, shadowOf } = entry
  const shadow = shadowOf === null ? NO_SHADOW : SHADOW
  const path = `${labels ?? ''}\0${accountPath ?? ''}\0${shadow}`
  return `${keyId}\0${model}\0${upstream ?? ''}\0${ingress ?? ''}\0${path}`
}

/** What an entry adds to its cell. */
export function countersText(entry: LedgerEntry): string {
  return cellText(countersOf(entry))
}

/** The value of a cell; empty if it has nothing. */
export function cellText(counts: readonly NanoUsd[]): string {
  const length = counts.findLastIndex((count) => count !== 0) + 1
  if (length === 0) return ''
  // A loop takes a third of the time of a `map`; every settlement makes one.
  let text = ''
  for (let at = 0; at < length; at += 1) {
    const count = counts[at] ?? 0
    text += `${at === 0 ? '[' : ','}${count < EXACT && count > -EXACT ? count : `"${count}"`}`
  }
  return `${text}]`
}

/** The counters in the value of a cell that are not zero. */
export function countsIn(text: string): Count[] {
  const values: unknown = text === '' ? [] : JSON.parse(text)
  const list: readonly unknown[] = Array.isArray(values) ? values : []
  return list.flatMap((value, counter): Count[] => (value === 0 ? [] : [[counter, nanoUsdOf(String(value))]]))
}

/** A field of a bucket of this account. */
export function parseCell(accountId: string, field: string, value: string): Cell {
  const parts = field.split('\0')
  const [keyId = '', model = ''] = parts
  const owner = `${keyId}\0${model}`
  const none = (): readonly string[] => []
  if (parts.length === PARTS) {
    const [upstream, ingress, labels, accountPath, shadow] = parts.slice(2).map((part) => part || null)
    const of = { upstream: upstream ?? null, ingress: ingress ?? null, labels: labels ?? null }
    const shadowOf = shadow === SHADOW ? SHADOW : null
    const properties = () => propertiesOf({ accountId, accountPath: accountPath ?? null, shadowOf, ...of })
    return { kind: 'entries', owner, model, counts: countsIn(value), properties }
  }
  const counter = Number(parts[2] ?? '')
  if (parts.length === 3) {
    return { kind: 'former', owner, model, counts: [[counter, nanoUsdOf(value || '0')]], properties: none }
  }
  return { kind: 'sum', owner, model, counts: countsIn(value), properties: none }
}

/** The fields of a bucket. One that is read twice, because the hash grows meanwhile, is there once. */
export async function readBucket(
  link: RedisConnection,
  what: string,
  name: string,
): Promise<ReadonlyMap<string, string>> {
  const fields = new Map<string, string>()
  for (let cursor = '0'; ;) {
    const [next, found] = listOf(await link.send(what, 'hscan', [name, cursor, 'COUNT', FIELDS]))
    const pairs = listOf(found)
    for (let at = 0; at < pairs.length; at += 2) fields.set(String(pairs[at]), String(pairs[at + 1]))
    cursor = String(next)
    if (cursor === '0') return fields
    await adminTurns.next()
  }
}
