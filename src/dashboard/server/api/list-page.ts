/**
 * Pages of a filtered list. Each reply reads a limited number of pages from the store, so a search of a long
 * list takes several replies, and each of them is fast.
 */
import type { Page, PageQuery } from '../../../store/store.js'

/** Maximum number of store pages read per reply. */
const MAX_READS = 20

/** The requested part of a list. */
export interface ListQuery<Item> {
  /** `next` of the previous reply; null for the first. */
  readonly after: string | null
  readonly limit: number
  readonly keeps: (item: Item) => boolean
}

/**
 * At most `limit` of the items that match the filter, newest first. A reply can have fewer items, or none,
 * without being the last: the last has `next: null`. Rejects as `read` does.
 */
export async function listPage<Item>(
  read: (query: PageQuery) => Promise<Page<Item>>,
  { after, limit, keeps }: ListQuery<Item>,
): Promise<Page<Item>> {
  const items: Item[] = []
  let next = after
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    const page = await read({ order: 'newest_first', after: next, limit: limit - items.length })
    for (const item of page.items) if (keeps(item)) items.push(item)
    next = page.next
    // Reading on for the last few items would take one read each; the next reply has them.
    if (next === null || items.length > limit / 2) break
  }
  return { items, next }
}
