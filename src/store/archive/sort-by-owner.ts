/**
 * Pages of entries in the order of the names of their keys or accounts, over the store and its archive: names
 * are in the store alone, so the entries of one owner after another are read, each newest first.
 */
import { cursorOfPlace, NEWEST_FIRST, placeOfCursor, valueOfOwner } from '../entry-order.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { EntryPage, EntryQuery } from '../usage-queries.js'

/** Owners whose names are read at once. */
const AT_ONCE = 200
/** Time after which a page is returned short. */
const WALK_MS = 500

/** Reads the entries of owners. */
interface OwnedEntries {
  readonly column: 'account' | 'key'
  /** The ids of those that have entries of the query. */
  readonly owners: readonly string[]
  /** Null for one that no longer exists. */
  nameOf(id: string): Promise<string | null>
  /** A page in the order of time. */
  page(query: EntryQuery): Promise<EntryPage>
}

/** The next entries of the query, whose order is by owner. The cursor has the owner and its next page. */
export async function pageByOwner(query: EntryQuery, source: OwnedEntries): Promise<EntryPage> {
  const place = query.after === null ? null : placeOfCursor(query.after)
  if (query.after !== null && place === null) return { entries: [], next: null }
  const isDescending = query.order?.isDescending ?? false
  const owners = await ownersByName(source)
  owners.sort((a, b) => (a.value < b.value === isDescending ? 1 : -1))
  const entries: LedgerEntry[] = []
  const began = performance.now()
  for (const { id, value } of owners) {
    const isBegun = place?.value === value
    if (place !== null && !isBegun && value < String(place.value) !== isDescending) continue
    const limit = query.limit - entries.length
    if (limit === 0 || performance.now() - began > WALK_MS) return { entries, next: cursorOf(value, '') }
    const own = source.column === 'key' ? { keyId: id } : { accountId: id }
    const after = isBegun && place.requestId !== '' ? place.requestId : null
    const page = await source.page({ ...query, ...own, order: NEWEST_FIRST, limit, after })
    entries.push(...page.entries)
    if (page.next !== null) return { entries, next: cursorOf(value, page.next) }
  }
  return { entries, next: null }
}

/** `next`: the cursor of the owner's next page; empty for its first one. */
function cursorOf(value: string, next: string): string {
  return cursorOfPlace({ value, atMs: 0, requestId: next })
}

async function ownersByName({ owners, nameOf }: Pick<OwnedEntries, 'owners' | 'nameOf'>) {
  const found: { readonly id: string; readonly value: string }[] = []
  for (let at = 0; at < owners.length; at += AT_ONCE) {
    const some = owners.slice(at, at + AT_ONCE)
    const names = await Promise.all(some.map(nameOf))
    found.push(...some.map((id, place) => ({ id, value: valueOfOwner(names[place] ?? null, id) })))
  }
  return found
}
