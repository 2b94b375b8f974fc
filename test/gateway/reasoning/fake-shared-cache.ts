/** A shared cache in memory that can be slow or fail, and whose content tests can read. */
import type { CachedValue, NamedValue, SharedCache } from '../../../src/store/store.js'

export class FakeSharedCache implements SharedCache {
  /**
   * `now`: returns values. `later`: returns promises. `throws`, `rejects`: fails. `hangs`: `put` never
   * settles.
   */
  mode: 'now' | 'later' | 'throws' | 'rejects' | 'hangs' = 'now'
  readonly items = new Map<string, CachedValue>()
  puts = 0
  gets = 0
  sweeps = 0

  put({ name, ...item }: NamedValue): Promise<void> {
    this.puts += 1
    if (this.mode === 'throws') throw new Error('down')
    if (this.mode === 'rejects') return Promise.reject(new Error('down'))
    if (this.mode === 'hangs') return new Promise(() => undefined)
    this.items.set(name, item)
    return Promise.resolve()
  }

  get(names: readonly string[], nowMs: number): (CachedValue | null)[] | Promise<(CachedValue | null)[]> {
    this.gets += names.length
    if (this.mode === 'throws') throw new Error('down')
    if (this.mode === 'rejects') return Promise.reject(new Error('down'))
    const found = names.map((name) => {
      const item = this.items.get(name)
      return item === undefined || item.expiresAtMs <= nowMs ? null : item
    })
    return this.mode === 'later' ? Promise.resolve(found) : found
  }

  sweep(): Promise<number> {
    this.sweeps += 1
    return Promise.resolve(0)
  }
}
