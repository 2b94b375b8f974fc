/**
 * The stored replies of one process, within a limit of bytes: the least recently used are dropped first. The
 * store, if it keeps replies too, is in `cache-in-store.ts`.
 */
import { storedReplyIn, type StoredReply } from './cache-rules.js'

/** Bytes that an entry needs beside its text and names. */
const ENTRY_BYTES = 256

/** Whose reply an entry has. */
export interface EntryOwner {
  readonly accountId: string
  readonly keyId: string
  /** The model that the client requested. */
  readonly model: string
  /** The route and the prices, as in the key: an entry of another generation's route is dropped. */
  readonly route: string
}

interface EntryTimes {
  readonly storedAtMs: number
  readonly expiresAtMs: number
}

/** A stored reply, which is parsed at its first use. */
export class CacheEntry implements EntryTimes {
  readonly owner: EntryOwner
  readonly storedAtMs: number
  readonly expiresAtMs: number
  /** The size of its text. */
  readonly bytes: number
  private text: Buffer | null
  private parsed: StoredReply | null = null

  /** `text` is as `storedText` wrote it. */
  constructor(owner: EntryOwner, text: Buffer, { storedAtMs, expiresAtMs }: EntryTimes) {
    this.owner = owner
    this.storedAtMs = storedAtMs
    this.expiresAtMs = expiresAtMs
    this.bytes = text.length
    this.text = text
  }

  /** The reply, which several requests read; null if it is damaged. */
  get reply(): StoredReply | null {
    if (this.text !== null) {
      this.parsed = storedReplyIn(this.text.toString('utf8'))
      this.text = null
    }
    return this.parsed
  }
}

/** Which entries to drop; an absent member matches all. */
export interface EntryFilter {
  readonly accountId?: string
  readonly keyId?: string
  readonly model?: string
}

/** Why entries are dropped, as in `sluice_cache_evictions_total`. */
type DropReason = 'expired' | 'memory' | 'cleared' | 'revoked' | 'route'

/** Whether the entry is one that the filter names. */
export function matches({ accountId, keyId, model }: EntryOwner, filter: EntryFilter): boolean {
  if (filter.accountId !== undefined && filter.accountId !== accountId) return false
  if (filter.keyId !== undefined && filter.keyId !== keyId) return false
  return filter.model === undefined || filter.model === model
}

/** Entries by key, the least recently used first. */
export class ReplyMemory {
  private readonly entries = new Map<string, CacheEntry>()
  private used = 0
  private readonly onDrop: (reason: DropReason, count: number) => void

  constructor(onDrop: (reason: DropReason, count: number) => void) {
    this.onDrop = onDrop
  }

  get size(): number {
    return this.entries.size
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.used
  }

  /** The entry, which becomes the most recently used; null if there is none, or it has expired. */
  get(key: string, nowMs: number): CacheEntry | null {
    const entry = this.entries.get(key)
    if (entry === undefined) return null
    if (entry.expiresAtMs <= nowMs) {
      this.remove(key, entry)
      this.onDrop('expired', 1)
      return null
    }
    this.entries.delete(key)
    this.entries.set(key, entry)
    return entry
  }

  /** Replaces an entry of the same key. An entry that is larger than the limit is not kept. */
  put(key: string, entry: CacheEntry, maxBytes: number): void {
    const before = this.entries.get(key)
    if (before !== undefined) this.remove(key, before)
    if (bytesOf(key, entry) > maxBytes) return
    this.entries.set(key, entry)
    this.used += bytesOf(key, entry)
    let dropped = 0
    for (const [oldest, each] of this.entries) {
      if (this.used <= maxBytes) break
      this.remove(oldest, each)
      dropped += 1
    }
    if (dropped > 0) this.onDrop('memory', dropped)
  }

  /** Drops the entries for which `isDropped` returns true; returns their number. */
  drop(isDropped: (entry: CacheEntry) => boolean, reason: DropReason): number {
    let dropped = 0
    for (const [key, entry] of this.entries) {
      if (!isDropped(entry)) continue
      this.remove(key, entry)
      dropped += 1
    }
    if (dropped > 0) this.onDrop(reason, dropped)
    return dropped
  }

  /** Every entry, the least recently used first. */
  all(): Iterable<CacheEntry> {
    return this.entries.values()
  }

  private remove(key: string, entry: CacheEntry): void {
    this.entries.delete(key)
    this.used -= bytesOf(key, entry)
  }
}

function bytesOf(key: string, { owner, bytes }: CacheEntry): number {
  const { accountId, keyId, model, route } = owner
  return ENTRY_BYTES + key.length + bytes + accountId.length + keyId.length + model.length + route.length
}
