/**
 * What a process remembers of keys: good ones by digest, and for a moment the bad ones.
 * Knows no store and no clock; who asks says what time it is and decides what is too old.
 *
 * Entries stand under the full digest. A cache keyed by a part of the key gave one customer
 * another's identity elsewhere (CVE-2026-35030: `token[:20]`).
 */
import type { Identity } from '../accounts/account.js'
import { Lru } from './lru.js'

/** What a look-up found, reduced to what a request needs. */
export type Verdict =
  | { readonly good: true; readonly identity: Identity }
  | { readonly good: false; readonly why: 'unknown' | 'revoked' | 'disabled' }

/** A verdict and when the store gave it. */
export interface Remembered {
  readonly verdict: Verdict
  readonly checkedAtMs: number
  /** False once something changed that may concern it: to be asked again before use. */
  readonly trusted: boolean
}

/** What an entry without a model list takes. */
const ENTRY_BYTES = 300
/** Of `ENTRY_BYTES` each: 30 MB when full. At least half of these, those used last, are held. */
const GOOD_ENTRIES = 100_000
const BAD_ENTRIES = 50_000
/** A text of V8, besides its characters. */
const NAME_BYTES = 32
/** Short, since a key can be made at any time and the news of it can be lost. */
const BAD_MS = 5_000

interface Entry {
  readonly verdict: Verdict
  readonly checkedAtMs: number
  readonly epoch: number
}

/** Field by field: a spread of a known shape takes the slow way in V8. */
function remembered({ verdict, checkedAtMs }: Entry, trusted: boolean): Remembered {
  return { verdict, checkedAtMs, trusted }
}

/** In entries: a key with a hundred model names takes as much as several keys without. */
function weightOf({ verdict }: Entry): number {
  if (!verdict.good || verdict.identity.models === null) return 1
  let bytes = ENTRY_BYTES
  for (const model of verdict.identity.models) bytes += NAME_BYTES + model.length
  return bytes / ENTRY_BYTES
}

/** Two bounded maps, each forgetting what was not asked for longest. Never throws. */
export class AuthCache {
  private readonly good: Lru<Entry>
  private readonly bad: Lru<Entry>
  /** Grows when everything may have changed; entries of an earlier one are not trusted. */
  private epoch = 0

  /** The numbers of entries, for tests; the defaults are for production. */
  constructor(goodEntries = GOOD_ENTRIES, badEntries = BAD_ENTRIES) {
    this.good = new Lru(goodEntries, weightOf)
    this.bad = new Lru(badEntries)
  }

  /** Null where nothing is known; a bad verdict is forgotten after 5 s. */
  get(digest: string, nowMs: number): Remembered | null {
    const good = this.good.get(digest)
    if (good !== undefined) return remembered(good, good.epoch === this.epoch)
    const bad = this.bad.get(digest)
    if (bad === undefined || nowMs - bad.checkedAtMs >= BAD_MS) return null
    return remembered(bad, true)
  }

  /** Replaces whatever was known of the digest. */
  put(digest: string, verdict: Verdict, nowMs: number): void {
    const entry = { verdict, checkedAtMs: nowMs, epoch: this.epoch }
    const [into, outOf] = verdict.good ? [this.good, this.bad] : [this.bad, this.good]
    into.set(digest, entry)
    outOf.delete(digest)
  }

  /**
   * One digest changed: it is forgotten, so that not even a failing store makes us serve it. Null,
   * anything may have: good verdicts are no longer trusted, bad ones forgotten.
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
