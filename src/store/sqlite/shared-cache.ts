/**
 * The shared cache in SQLite: values that may be lost, such as reasoning state.
 */
import type { CacheCapacity, CachedValue, NamedValue, SharedCache } from '../store.js'
import { numberIn, type Row } from './driver.js'
import { BATCH, inBatches } from './delete-batches.js'
import type { Engine } from './engine.js'

const DELETE = 'DELETE FROM shelf WHERE name = ?'

/** The shared cache of a store. */
export class SqliteSharedCache implements SharedCache {
  private readonly engine: Engine

  constructor(engine: Engine) {
    this.engine = engine
  }

  async put(
    { name, value, expiresAtMs }: NamedValue,
    capacity: CacheCapacity,
    nowMs: number,
  ): Promise<void> {
    await this.engine.write('storing a value', () => {
      this.engine.prepare(DELETE).run(name)
      this.engine
        .prepare('INSERT INTO shelf (name, expires_at_ms, bytes, value) VALUES (?, ?, ?, ?)')
        .run(name, expiresAtMs, name.length + value.length, value)
      this.trim(capacity, nowMs)
    })
  }

  get(names: readonly string[], nowMs: number): (CachedValue | null)[] {
    return this.engine.readNow('reading a value', () => {
      const select = this.engine.prepare('SELECT expires_at_ms, value FROM shelf WHERE name = ?')
      return names.map((name) => {
        const row = select.get(name)
        if (row === undefined) return null
        const item = { value: bytesIn(row), expiresAtMs: numberIn(row, 'expires_at_ms') }
        return item.expiresAtMs <= nowMs ? null : item
      })
    })
  }

  sweep(capacity: CacheCapacity, nowMs: number): Promise<number> {
    return inBatches(this.engine, 'removing expired values', () => this.trim(capacity, nowMs))
  }

  /**
   * Removes up to `BATCH` values: expired ones, then those that expire next while the capacity is exceeded.
   */
  private trim(capacity: CacheCapacity, nowMs: number): number {
    const { engine } = this
    const sizes = engine.prepare("SELECT entries, bytes FROM sizes WHERE name = 'shelf'")
    const next = engine.prepare(
      'SELECT name, expires_at_ms FROM shelf ORDER BY expires_at_ms LIMIT 1',
    )
    for (let removed = 0; removed < BATCH; removed += 1) {
      const first = next.get()
      const size = sizes.get()
      if (first === undefined || size === undefined) return removed
      const fits =
        numberIn(size, 'entries') <= capacity.entries && numberIn(size, 'bytes') <= capacity.bytes
      if (fits && numberIn(first, 'expires_at_ms') > nowMs) return removed
      engine.prepare(DELETE).run(first['name'] ?? null)
    }
    return BATCH
  }
}

function bytesIn(row: Row): Uint8Array {
  const { value } = row
  if (!(value instanceof Uint8Array)) throw new Error("column 'value' has no bytes")
  return value
}
