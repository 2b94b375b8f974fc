/** Places between the pages of a ledger that is partly in an archive. */
import { arrayOf } from '../../base/json.js'
import type { TimePlace } from './read-entries.js'

/** A place with the cursor of the store after it. */
export interface Place extends TimePlace {
  readonly store: string | null
}

/** The cursor of a page that ends at a place. */
export function cursorOf({ atMs, requestId, store }: Place): string {
  return Buffer.from(JSON.stringify([atMs, requestId, store])).toString('base64url')
}

/** The place in a cursor; null for none, and for a text that is none. */
export function placeIn(cursor: string | null): Place | null {
  if (cursor === null) return null
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    const [atMs, requestId, store] = arrayOf(value)
    if (typeof atMs !== 'number' || typeof requestId !== 'string') return null
    return { atMs, requestId, store: typeof store === 'string' ? store : null }
  } catch {
    return null
  }
}

/** The order of time, and of ids in one millisecond. */
export function compareTimes(a: TimePlace, b: TimePlace): number {
  if (a.atMs !== b.atMs) return a.atMs - b.atMs
  return a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : 0
}
