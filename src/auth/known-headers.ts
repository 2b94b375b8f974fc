/**
 * The headers that keys came in lately, with the keys' digests: a text and what it hashes to, which stays true
 * whatever becomes of the key. Knows no clock and no verdict (docs/decisions/0041).
 */
import { Lru } from './lru.js'

const HEADERS = 4_096
/** A longer header is looked at each time; ours are of 60 characters. */
const MAX_CHARS = 512
/** A header that does not come again is forgotten after one such time, or two. */
const KEPT_MS = 60_000

/** Headers by their text. */
export class Shown {
  private readonly digests = new Lru<string>(HEADERS)
  private turnedMs = Number.NEGATIVE_INFINITY

  /** The digest of the key in the header; undefined where it has not come lately. */
  get(header: string): string | undefined {
    return this.digests.get(header)
  }

  put(header: string, digest: string): void {
    if (header.length <= MAX_CHARS) this.digests.set(header, digest)
  }

  clear(): void {
    this.digests.clear()
  }

  /** Forgets what is due; to be called again and again. */
  age(nowMs: number): void {
    if (nowMs - this.turnedMs < KEPT_MS) return
    this.turnedMs = nowMs
    this.digests.turn()
  }
}
