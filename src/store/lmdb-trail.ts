/**
 * The embedded engine's audit trail: entries by id, and an index by account.
 */
import type { Database } from 'lmdb'
import { intact, isName, put, remove, type LmdbEngine } from './lmdb-engine.js'
import { damaged } from './lmdb-failure.js'
import { readTrailEntry, writeTrailEntry } from './record.js'
import type { StoreBounds } from './store.js'
import type { Trail, TrailEntry, TrailQuery } from './trail.js'

/** After every id. */
const LAST = '\uffff'

/** The trail in an environment. */
export class LmdbTrail implements Trail {
  private readonly engine: LmdbEngine
  private readonly entries: Database<string>
  /** Account and id. */
  private readonly owners: Database<string>
  private readonly counts: Database<string>
  private readonly bounds: StoreBounds

  constructor(engine: LmdbEngine, bounds: StoreBounds) {
    this.engine = engine
    this.bounds = bounds
    this.entries = engine.table('trail')
    this.owners = engine.table('trail-owners')
    this.counts = engine.table('trail-counts')
  }

  async add(entry: TrailEntry): Promise<void> {
    await this.engine.write('adding to the audit trail', () => this.prepared([entry])())
  }

  /** For a change's own transaction: all that may fail is done now, and the puts by what comes back. */
  prepared(told: readonly TrailEntry[]): () => void {
    if (told.length === 0) return () => undefined
    const texts = told.map((entry) => [entry, writeTrailEntry(entry)] as const)
    const count = Number(this.counts.get('entries') ?? '0')
    const gone = new Map<string, TrailEntry>()
    for (const accountId of new Set(told.map((entry) => entry.accountId))) {
      const added = told.filter((entry) => entry.accountId === accountId).length
      for (const entry of this.surplusOf(accountId, added)) gone.set(entry.id, entry)
    }
    const surplus = count + told.length - gone.size - this.bounds.trailTotal
    for (const entry of this.oldest(Math.max(0, surplus))) gone.set(entry.id, entry)
    return () => {
      for (const { id, accountId } of gone.values()) {
        remove(this.entries, id)
        remove(this.owners, [accountId, id])
      }
      for (const [{ id, accountId }, text] of texts) {
        put(this.entries, id, text)
        put(this.owners, [accountId, id], '')
      }
      put(this.counts, 'entries', String(count + told.length - gone.size))
    }
  }

  page({ accountId, after, limit }: TrailQuery): Promise<TrailEntry[]> {
    return this.engine.read('reading the audit trail', () => {
      if (after !== null && !isName(after)) return []
      if (accountId === null) {
        // The start of a backward range is in it; the entry that a page ended with must not be.
        const start = after ?? LAST
        const found = this.entries.getRange({ start, reverse: true, limit: limit + 1 })
        const texts = Array.from(found).filter(({ key }) => key !== after)
        return texts.slice(0, limit).map(({ value }) => entryOf(value))
      }
      if (!isName(accountId)) return []
      const range = { start: [accountId, after ?? LAST], end: [accountId], reverse: true }
      const ids = Array.from(this.owners.getKeys({ ...range, limit: limit + 1 }), idIn)
      return ids
        .filter((id) => id !== after)
        .slice(0, limit)
        .map((id) => this.indexed(id))
    })
  }

  /** The account's oldest entries, which have to go when some are added. */
  private surplusOf(accountId: string, added: number): TrailEntry[] {
    const range = { start: [accountId], end: [accountId, LAST] }
    const limit = this.owners.getKeysCount({ ...range }) + added - this.bounds.trailPerAccount
    if (limit <= 0) return []
    const found = Array.from(this.owners.getRange({ ...range, limit }), ({ key }) => idIn(key))
    return found.map((id) => this.indexed(id))
  }

  private oldest(limit: number): TrailEntry[] {
    if (limit === 0) return []
    return Array.from(this.entries.getRange({ limit }), ({ value }) => entryOf(value))
  }

  private indexed(id: string): TrailEntry {
    const text = this.entries.get(id)
    if (text === undefined) throw damaged('an audit entry', 'an index names it; it is gone')
    return entryOf(text)
  }
}

function entryOf(text: string): TrailEntry {
  return intact('an audit entry', () => readTrailEntry(text))
}

function idIn(place: unknown): string {
  const id: unknown = Array.isArray(place) ? place.at(-1) : undefined
  if (typeof id !== 'string') throw damaged('an audit entry', 'an index has another form')
  return id
}
