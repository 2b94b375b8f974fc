/**
 * Caches the results of key lookups in one process: good keys by digest, and bad ones for 5 seconds. The
 * caller passes the time and decides which age is acceptable.
 *
 * Entries are stored under the full digest. In another gateway, a cache that used a part of the key gave one
 * customer the identity of another (CVE-2026-35030: `token[:20]`).
 */
import { Lru } from '../../base/lru.js'
import type { KeyResult } from './authentication-result.js'

/** A cached result, and when the store returned it (monotonic, in ms). */
export interface CachedResult {
  readonly result: KeyResult
  readonly checkedAtMs: number
  /** False after a change that may affect the result: look the key up again before use. */
  readonly trusted: boolean
}

/** Memory of an entry without lists. */
const ENTRY_BYTES = 300
/**
 * Maximum number of good entries of `ENTRY_BYTES` each: 30 MB. At least the most recently used half of them
 * is kept.
 */
const GOOD_ENTRIES = 100_000
const BAD_ENTRIES = 50_000
/** Overhead of a string in V8. */
const NAME_BYTES = 32
/** Bad results expire soon, because a key can be created at any time and the notification can be lost. */
const BAD_MS = 5_000

interface Entry {
  readonly result: KeyResult
  readonly checkedAtMs: number
  readonly epoch: number
}

/** Copies field by field: an object spread is slower in V8. */
function cachedResult({ result, checkedAtMs }: Entry, trusted: boolean): CachedResult {
  return { result, checkedAtMs, trusted }
}

/**
 * The weight of an entry, in entries without lists: a key with a hundred model names uses the memory of
 * several keys.
 */
function weightOf({ result }: Entry): number {
  if (!result.good) return 1
  const { models, allowTools } = result.identity
  let bytes = ENTRY_BYTES
  for (const name of models ?? []) bytes += NAME_BYTES + name.length
  for (const name of allowTools ?? []) bytes += NAME_BYTES + name.length
  return bytes / ENTRY_BYTES
}

/** Two bounded maps that drop the least recently used entries. Never throws. */
export class AuthCache {
  private readonly good: Lru<Entry>
  private readonly bad: Lru<Entry>
  /** Incremented when any key may have changed; entries of an earlier epoch are not trusted. */
  private epoch = 0

  /** Maximum numbers of entries; tests pass smaller ones. */
  constructor(goodEntries = GOOD_ENTRIES, badEntries = BAD_ENTRIES) {
    this.good = new Lru(goodEntries, weightOf)
    this.bad = new Lru(badEntries)
  }

  /** Null if the key is not cached; a bad result is cached for 5 s. */
  get(digest: string, nowMs: number): CachedResult | null {
    const good = this.good.get(digest)
    if (good !== undefined) return cachedResult(good, good.epoch === this.epoch)
    const bad = this.bad.get(digest)
    if (bad === undefined || nowMs - bad.checkedAtMs >= BAD_MS) return null
    return cachedResult(bad, true)
  }

  /** Replaces the entry of the digest. */
  put(digest: string, result: KeyResult, nowMs: number): void {
    const entry = { result, checkedAtMs: nowMs, epoch: this.epoch }
    const [into, outOf] = result.good ? [this.good, this.bad] : [this.bad, this.good]
    into.set(digest, entry)
    outOf.delete(digest)
  }

  /**
   * Drops a key that has changed, so that it is refused even while the store fails. Null means that any key
   * may have changed: good results are no longer trusted and bad ones are dropped.
   */
  change(digest: string | null): void {
    if (digest === null) {
      this.epoch += 1
      this.bad.clear()
      return
    }
    this.good.delete(digest)
    this.bad.delete(digest)
  }

  get size(): { good: number; bad: number } {
    return { good: this.good.size, bad: this.bad.size }
  }
}

const MAX_HEADERS = 4_096
/** Longer headers are not cached; a header with a Sluice key has 60 characters. */
const MAX_CHARS = 512
/** An unused header is dropped after one to two times this interval. */
const UNUSED_MS = 60_000

/**
 * Maps recent headers with good keys to the digests of the keys. The digest of a text never changes, so an
 * entry stays correct when its key is revoked; the caller checks the key's state
 * (docs/explanation/performance.md).
 */
export class KnownHeaders {
  private readonly digests = new Lru<string>(MAX_HEADERS)
  private droppedAtMs = Number.NEGATIVE_INFINITY

  /** The digest of the key in the header; undefined if the header is not cached. */
  get(header: string): string | undefined {
    return this.digests.get(header)
  }

  put(header: string, digest: string): void {
    if (header.length <= MAX_CHARS) this.digests.set(header, digest)
  }

  clear(): void {
    this.digests.clear()
  }

  /** Drops headers that have not been used for a minute; call it periodically. */
  dropOld(nowMs: number): void {
    if (nowMs - this.droppedAtMs < UNUSED_MS) return
    this.droppedAtMs = nowMs
    this.digests.dropUnused()
  }
}
