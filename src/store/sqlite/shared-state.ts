/** State that need not survive: the cache and the counts of attempts. */
import type { CacheCapacity, CachedValue, NamedValue, SharedCache } from '../store.js'
import { throttleFullAtMs, throttleWaitMs, type ThrottleStore, type ThrottledSubject } from '../throttle.js'
import { numberIn, type Row } from './driver.js'
import { BATCH, inBatches, type Engine } from './engine.js'
import { numberOf } from './read-records.js'

const DELETE = 'DELETE FROM shelf WHERE name = ?'

export class SqliteSharedCache implements SharedCache {
  private readonly engine: Engine

  constructor(engine: Engine) {
    this.engine = engine
  }

  async put(
    { name, value, expiresAtMs }: NamedValue,
    capacity: CacheCapacity,
    nowMs: number,
    existing: 'replaced' | 'kept' = 'replaced',
  ): Promise<void> {
    await this.engine.write('storing a value', () => {
      if (existing === 'kept' && this.read(name, nowMs) !== null) return
      this.engine.prepare(DELETE).run(name)
      this.engine
        .prepare('INSERT INTO shelf (name, expires_at_ms, bytes, value) VALUES (?, ?, ?, ?)')
        .run(name, expiresAtMs, name.length + value.length, value)
      this.trim(capacity, nowMs)
    })
  }

  get(names: readonly string[], nowMs: number): (CachedValue | null)[] {
    return this.engine.readNow('reading a value', () => names.map((name) => this.read(name, nowMs)))
  }

  private read(name: string, nowMs: number): CachedValue | null {
    const select = this.engine.prepare('SELECT expires_at_ms, value FROM shelf WHERE name = ?')
    const row = select.get(name)
    if (row === undefined) return null
    const item = { value: bytesIn(row), expiresAtMs: numberIn(row, 'expires_at_ms') }
    return item.expiresAtMs <= nowMs ? null : item
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
    const next = engine.prepare('SELECT name, expires_at_ms FROM shelf ORDER BY expires_at_ms LIMIT 1')
    for (let removed = 0; removed < BATCH; removed += 1) {
      const first = next.get()
      const size = sizes.get()
      if (first === undefined || size === undefined) return removed
      const fits = numberIn(size, 'entries') <= capacity.entries && numberIn(size, 'bytes') <= capacity.bytes
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

const DELETE_FULL = `DELETE FROM attempts WHERE name IN
  (SELECT name FROM attempts WHERE full_at_ms <= ? ORDER BY full_at_ms LIMIT ${BATCH})`

export class SqliteThrottle implements ThrottleStore {
  private readonly engine: Engine

  constructor(engine: Engine) {
    this.engine = engine
  }

  take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]> {
    const { engine } = this
    return engine.write('counting an attempt', () => {
      const select = engine.prepare('SELECT full_at_ms AS n FROM attempts WHERE name = ?')
      const put = engine.prepare('INSERT OR REPLACE INTO attempts (name, full_at_ms) VALUES (?, ?)')
      const full = subjects.map(({ name }) => numberOf(select.get(name)))
      const waits = subjects.map((subject, at) => throttleWaitMs(subject, full[at] ?? 0, nowMs))
      if (waits.some((wait) => wait > 0)) return waits
      subjects.forEach((subject, at) => {
        put.run(subject.name, throttleFullAtMs(subject, full[at] ?? 0, nowMs))
      })
      return waits
    })
  }

  async forget(name: string): Promise<void> {
    const { engine } = this
    await engine.write('resetting a throttle', () =>
      engine.prepare('DELETE FROM attempts WHERE name = ?').run(name),
    )
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(this.engine, 'removing full throttles', () =>
      Number(this.engine.prepare(DELETE_FULL).run(nowMs).changes),
    )
  }
}
