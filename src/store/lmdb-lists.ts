/**
 * Pages of the embedded engine's lists, whose keys end with places in an order.
 */
import type { Database } from 'lmdb'
import type { ApiKey } from '../accounts/account.js'
import type { Place } from './lmdb-engine.js'
import type { Page, PageQuery } from './store.js'

/** After the last place of an account's keys. */
export function endOf(accountId: string): [string, number] {
  return [accountId, Number.MAX_SAFE_INTEGER]
}

/** Whether the key was revoked, or expired, before a time. */
export function hasEndedBefore({ revokedAtMs, expiresAtMs }: ApiKey, ms: number): boolean {
  return (revokedAtMs ?? ms) < ms || (expiresAtMs ?? ms) < ms
}

/** A page of a table whose keys are, or end with, places in an order. */
export function pageOf<Item>(
  table: Database<string>,
  { order, after, limit }: PageQuery,
  [first, last]: [Place, Place],
  itemOf: (value: string) => Item,
): Page<Item> {
  if (after !== null && !/^\d{1,16}$/.test(after)) return { items: [], next: null }
  const cursor = after === null ? null : placeBehind(first, Number(after))
  const range =
    order === 'newest_first'
      ? { start: cursor ?? last, end: first, reverse: true }
      : { start: cursor ?? first, end: last }
  // The first may be the one that the cursor names, and one more shows whether there is another page.
  const found = Array.from(table.getRange({ ...range, limit: limit + 2 }))
    .map(({ key, value }) => ({ place: String(Array.isArray(key) ? key.at(-1) : key), value }))
    .filter(({ place }) => place !== after)
  const items = found.slice(0, limit).map(({ value }) => itemOf(value))
  return { items, next: found.length > limit ? (found[limit - 1]?.place ?? null) : null }
}

function placeBehind(first: Place, place: number): Place {
  return Array.isArray(first) ? [...first.slice(0, -1), place] : place
}
