/**
 * Looks keys up in the store and caches the results. Requests with the same key share one lookup, and at most
 * 32 lookups run at once, so that a store that recovers is not overloaded.
 */
import type { KnownKeys } from '../../store/known-keys.js'
import type { KeyLookup, Store } from '../../store/store.js'
import { accessTokenId } from '../account.js'
import { isTokenDigest, resultOfLookup, storeUnavailable, type KeyResult } from './authentication-result.js'
import type { AuthCache } from './key-cache.js'

/** Maximum concurrent lookups: 64,000 a second at 0.5 ms each. */
const MAX_LOOKUPS = 32
/** Maximum waiting lookups. If each times out after 100 ms, the last one waits 0.8 s. */
const MAX_WAITING = 256

/** The queue for lookups is full. This is not a failure of the store, which received no request. */
export class LookupQueueFull extends Error {}

/** A result that the store has returned. */
interface Found {
  readonly result: KeyResult
  /** Null for an unknown key, and for a token. */
  readonly lookup: KeyLookup | null
}

/** Looks a digest of one kind up; null while the configuration has none of this kind. */
type TokenLookup = ((digest: string) => Promise<KeyResult>) | null

/** Lookups of one process. */
export class KeyLookups {
  private readonly store: Pick<Store, 'findKey'>
  private readonly cache: AuthCache
  private readonly now: () => number
  private readonly known: Pick<KnownKeys, 'keep' | 'forget'> | null
  private readonly running = new Map<string, Promise<KeyResult>>()
  private readonly waiting: (() => void)[] = []
  private usedSlots = 0
  /** For digests of tokens of workloads: their account and denials. */
  tokenLookup: TokenLookup = null
  /** For digests of access tokens of programs. */
  loginLookup: TokenLookup = null

  /** `now`: monotonic, in ms. `known` gets the results, too; null: they are not shared. */
  constructor(
    store: Pick<Store, 'findKey'>,
    cache: AuthCache,
    now: () => number,
    known: Pick<KnownKeys, 'keep' | 'forget'> | null = null,
  ) {
    this.store = store
    this.cache = cache
    this.now = now
    this.known = known
  }

  isRunning(digest: string): boolean {
    return this.running.has(digest)
  }

  /**
   * The result for the key, which is also put into the cache; at once if the store returns it synchronously.
   * Throws or rejects with the store's error, or `store_unavailable` if too many lookups wait.
   */
  lookUp(digest: string): KeyResult | Promise<KeyResult> {
    const shared = this.running.get(digest)
    if (shared !== undefined) return shared
    const finding = this.find(digest)
    if (!(finding instanceof Promise)) {
      this.keep(digest, finding, this.now())
      return finding.result
    }
    const startedMs = this.now()
    const lookup = finding
      .then((found) => {
        // `discard` removes a lookup whose result may be older than a change of the key.
        if (this.running.get(digest) === lookup) this.keep(digest, found, startedMs)
        return found.result
      })
      .finally(() => {
        if (this.running.get(digest) === lookup) this.running.delete(digest)
      })
    this.running.set(digest, lookup)
    return lookup
  }

  /** Keeps the results of running lookups out of the cache; of all keys if the digest is null. */
  discard(digest: string | null): void {
    if (digest === null) this.running.clear()
    else this.running.delete(digest)
  }

  private keep(digest: string, { result, lookup }: Found, atMs: number): void {
    // A refused token is looked up each time: its account may be created in the meantime.
    if (!result.good && result.reason === 'refused') return this.cache.change(digest)
    this.cache.put(digest, result, atMs)
    if (lookup !== null && result.good) this.known?.keep(lookup)
    else if (lookup !== null) this.known?.forget(digest)
  }

  private find(digest: string): Found | Promise<Found> {
    if (this.usedSlots >= MAX_LOOKUPS) return this.findLater(digest)
    const finding = this.read(digest)
    if (!(finding instanceof Promise)) return finding
    this.usedSlots += 1
    return finding.finally(() => this.freeSlot())
  }

  private read(digest: string): Found | Promise<Found> {
    const { tokenLookup, loginLookup } = this
    const lookUp = isTokenDigest(digest) ? tokenLookup : accessTokenId(digest) === null ? null : loginLookup
    if (lookUp !== null) return lookUp(digest).then((result) => ({ result, lookup: null }))
    const finding = this.store.findKey(digest)
    if (!(finding instanceof Promise)) {
      return { result: resultOfLookup(digest, finding), lookup: finding }
    }
    return finding.then((lookup) => ({ result: resultOfLookup(digest, lookup), lookup }))
  }

  private async findLater(digest: string): Promise<Found> {
    if (this.waiting.length >= MAX_WAITING) {
      const counts = `${MAX_LOOKUPS} lookups run and ${MAX_WAITING} wait`
      throw storeUnavailable(new LookupQueueFull(counts))
    }
    // `freeSlot` passes its slot to the next in the queue, so no new lookup can overtake it.
    await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await this.read(digest)
    } finally {
      this.freeSlot()
    }
  }

  private freeSlot(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.usedSlots -= 1
    else next()
  }
}
