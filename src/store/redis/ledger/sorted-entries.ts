/**
 * Pages of entries in an order other than that of time. Redis has no index of these orders, which would cost
 * every request and as much memory as the entries: up to `MOST` entries of the range are read and sorted
 * here, in batches. Accounts are read in the order of their names.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import {
  comparePlaces,
  cursorOfPlace,
  NEWEST_FIRST,
  placeOfCursor,
  valueOfEntry,
  valueOfOwner,
  type EntryOrder,
  type EntryPlace,
} from '../../entry-order.js'
import { matchesEntry, type EntryPage, type EntryQuery } from '../../usage-queries.js'

/** Entries that one page may read. */
const MOST = 20_000
/** Accounts whose names are read at once. */
const AT_ONCE = 200
/** Time after which a page of accounts is returned short. */
const WALK_MS = 150
/** Sorts before every entry of an account. */
const NEWEST = Number.MAX_SAFE_INTEGER

/** Reads entries and names. */
export interface EntrySource {
  /** Accounts with entries. */
  accounts(): Promise<string[]>
  /** The number of entries of an account, or of all, in the range of the query. */
  count(query: EntryQuery): Promise<number>
  /** All of them, in batches; filters are not checked. */
  range(query: EntryQuery): AsyncIterable<readonly LedgerEntry[]>
  /** A page in the order of time. */
  page(query: EntryQuery): Promise<EntryPage>
  /** The cursor of `page` that begins after an entry. */
  cursorOf(place: Pick<EntryPlace, 'atMs' | 'requestId'>): string
  /** The place of such a cursor. */
  placeOf(cursor: string): Pick<EntryPlace, 'atMs' | 'requestId'>
  readonly names: EntryNames
}

/** Names of keys and accounts; null for those that no longer exist. */
export interface EntryNames {
  keyName(accountId: string, keyId: string): Promise<string | null>
  accountName(accountId: string): Promise<string | null>
}

interface PlacedEntry extends EntryPlace {
  readonly entry: LedgerEntry
}

/** A page in the order of the query, which is not that of time. */
export async function sortedPage(
  source: EntrySource,
  query: EntryQuery,
  order: EntryOrder,
): Promise<EntryPage> {
  const { column, isDescending } = order
  const after = query.after === null ? null : placeOfCursor(query.after)
  if (query.after !== null && after === null) return { entries: [], next: null }
  if (column === 'account') return pageByAccount(source, query, { isDescending, after })
  if ((await source.count(query)) > MOST) return { entries: [], next: null, mostSorted: MOST }
  const { accountId, limit, ...conditions } = query
  const filter = accountId === null ? conditions : { ...conditions, accountId }
  const keys = new Map<string, string>()
  const valueOf = async (entry: LedgerEntry): Promise<EntryPlace['value']> => {
    if (column !== 'key') return column === 'atMs' ? entry.atMs : valueOfEntry(entry, column)
    const id = `${entry.accountId} ${entry.keyId}`
    const known = keys.get(id)
    if (known !== undefined) return known
    const name = await source.names.keyName(entry.accountId, entry.keyId)
    const value = valueOfOwner(name, entry.keyId)
    keys.set(id, value)
    return value
  }
  let first: PlacedEntry[] = []
  for await (const entries of source.range(query)) {
    for (const entry of entries) {
      if (!matchesEntry(entry, filter)) continue
      const { atMs, requestId } = entry
      const placed = { value: await valueOf(entry), atMs, requestId, entry }
      if (after !== null && comparePlaces(placed, after, isDescending) <= 0) continue
      first.push(placed)
    }
    first.sort((a, b) => comparePlaces(a, b, isDescending))
    // One more shows whether there is another page.
    first = first.slice(0, limit + 1)
  }
  const page = first.slice(0, limit)
  const last = first.length > limit ? page.at(-1) : undefined
  return {
    entries: page.map(({ entry }) => entry),
    next: last === undefined ? null : cursorOfPlace(last),
  }
}

async function pageByAccount(
  source: EntrySource,
  query: EntryQuery,
  { isDescending, after }: { readonly isDescending: boolean; readonly after: EntryPlace | null },
): Promise<EntryPage> {
  const sign = isDescending ? -1 : 1
  const owners = await accountsByName(source, query)
  owners.sort((a, b) => (a.value < b.value ? -sign : sign))
  const entries: LedgerEntry[] = []
  const began = performance.now()
  for (const { id, value } of owners) {
    const isBegun = after?.value === value
    if (after !== null && !isBegun && value < String(after.value) !== isDescending) continue
    const left = query.limit - entries.length
    if (left === 0 || performance.now() - began > WALK_MS) {
      return { entries, next: cursorOfPlace({ value, atMs: NEWEST, requestId: '' }) }
    }
    const start = isBegun && after.atMs !== NEWEST ? source.cursorOf(after) : null
    const own = { accountId: id, order: NEWEST_FIRST, limit: left, after: start }
    const page = await source.page({ ...query, ...own })
    entries.push(...page.entries)
    if (page.next !== null) {
      return { entries, next: cursorOfPlace({ value, ...source.placeOf(page.next) }) }
    }
  }
  return { entries, next: null }
}

async function accountsByName(
  source: EntrySource,
  { accountId }: EntryQuery,
): Promise<{ readonly id: string; readonly value: string }[]> {
  const ids = accountId === null ? await source.accounts() : [accountId]
  const found: { readonly id: string; readonly value: string }[] = []
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE)
    const named = await Promise.all(some.map((id) => source.names.accountName(id)))
    found.push(...some.map((id, place) => ({ id, value: valueOfOwner(named[place] ?? null, id) })))
  }
  return found
}
