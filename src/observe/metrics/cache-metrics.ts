/** The metrics of the exact cache. */
import type { Count } from './capped-registry.js'
import { cached, type Families } from './metric-families.js'

/** The cache metrics of a process. */
export class CacheMetrics {
  private readonly families: Families
  private readonly series: (route: string) => (result: string) => Count

  constructor(families: Families) {
    this.families = families
    this.series = cached((route) => cached((result) => families.cacheRequests.child(route, result)))
  }

  /** A request of a route with a cache; `result` is from a closed set. */
  request(route: string, result: string): void {
    this.series(route)(result).add()
  }

  /** What a stored reply would have cost. */
  saved(route: string, nanoUsd: number): void {
    this.families.cacheSaved.child(route).add(nanoUsd / 1e9)
  }

  /** Entries that were dropped; `reason` is from a closed set. */
  dropped(reason: string, entries: number): void {
    this.families.cacheEvictions.child(reason).add(entries)
  }

  /** The entries in the memory of this process, and their size. */
  size({ entries, bytes }: { readonly entries: number; readonly bytes: number }): void {
    this.families.cacheEntries.child().set(entries)
    this.families.cacheBytes.child().set(bytes)
  }
}
