/**
 * Maps recent headers with good keys to the digests of the keys. The digest of a text never changes, so an
 * entry stays correct when its key is revoked; the caller checks the key's state
 * (docs/explanation/performance.md).
 */
import { Lru } from './lru.js'

const MAX_HEADERS = 4_096
/** Longer headers are not cached; a header with a Sluice key has 60 characters. */
const MAX_CHARS = 512
/** An unused header is dropped after one to two times this interval. */
const UNUSED_MS = 60_000

/** Digests by the text of the header. */
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
