/**
 * The embedded engine's counts of attempts: when each subject's bucket is full again, by its name.
 */
import type { Database } from 'lmdb'
import { fullAfter, waitOf, type Attempts, type Tried } from './attempts.js'
import { put, remove, type LmdbEngine } from './lmdb-engine.js'

/** Looked at in one transaction; others may write in between. */
const BATCH = 500

/** Counts in an environment. */
export class LmdbAttempts implements Attempts {
  private readonly engine: LmdbEngine
  private readonly fullAt: Database<string>

  constructor(engine: LmdbEngine) {
    this.engine = engine
    this.fullAt = engine.table('attempts')
  }

  take(subjects: readonly Tried[], nowMs: number): Promise<number[]> {
    return this.engine.write('counting an attempt', () => {
      const before = subjects.map(({ name }) => Number(this.fullAt.get(name) ?? '0'))
      const waits = subjects.map((each, at) => waitOf(each, before[at] ?? 0, nowMs))
      if (waits.some((wait) => wait > 0)) return waits
      subjects.forEach((each, at) => {
        put(this.fullAt, each.name, String(fullAfter(each, before[at] ?? 0, nowMs)))
      })
      return waits
    })
  }

  forget(name: string): Promise<void> {
    return this.engine.write('forgetting attempts', () => remove(this.fullAt, name))
  }

  async sweep(nowMs: number): Promise<number> {
    let count = 0
    let from = ''
    let isMore = true
    while (isMore) {
      isMore = await this.engine.write('sweeping attempts', () => {
        const found = Array.from(this.fullAt.getRange({ start: from, limit: BATCH }))
        for (const { key, value } of found) {
          from = `${String(key)}\0`
          if (Number(value) > nowMs) continue
          remove(this.fullAt, String(key))
          count += 1
        }
        return found.length === BATCH
      })
    }
    return count
  }
}
