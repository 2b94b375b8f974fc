/**
 * Pages of a list with a filter: the store is read a page at a time, up to a bound for each reply, so that a
 * search through a long list takes several replies and none of them takes long.
 */
import type { Page, PageQuery } from '../../store/store.js'

/** Pages of the store that are read for one reply. */
const MOST_READS = 20

/** What a reply is to have. */
export interface ListQuery<Item> {
  /** `next` of the reply before; null for the first. */
  readonly after: string | null
  readonly limit: number
  readonly keeps: (item: Item) => boolean
}

/**
 * At most `limit` of the items that the filter keeps, the newest first. A reply may have fewer, or none, and
 * still not be the last: that is the one whose `next` is null. Rejects as `read` does.
 */
export async function listPage<Item>(
  read: (query: PageQuery) => Promise<Page<Item>>,
  { after, limit, keeps }: ListQuery<Item>,
): Promise<Page<Item>> {
  const items: Item[] = []
  let next = after
  for (let reads = 0; reads < MOST_READS; reads += 1) {
    const page = await read({ order: 'newest_first', after: next, limit: limit - items.length })
    for (const item of page.items) if (keeps(item)) items.push(item)
    next = page.next
    // The last few would take a read each; they come with the next reply.
    if (next === null || items.length > limit / 2) break
  }
  return { items, next }
}
