/**
 * Throttled attempts in SQLite, such as sign-ins: one row for each subject that has not recovered yet.
 */
import {
  throttleFullAtMs,
  throttleWaitMs,
  type ThrottleStore,
  type ThrottledSubject,
} from '../../throttle.js'
import { BATCH, inBatches } from '../delete-batches.js'
import { numberIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'

/** The throttle of a store. */
export class SqliteThrottle implements ThrottleStore {
  private readonly engine: Engine
  private readonly select: Statement
  private readonly put: Statement
  private readonly delete: Statement
  private readonly deleteFull: Statement

  constructor(engine: Engine) {
    this.engine = engine
    this.select = engine.prepare('SELECT full_at_ms FROM attempts WHERE name = ?')
    this.put = engine.prepare('INSERT OR REPLACE INTO attempts (name, full_at_ms) VALUES (?, ?)')
    this.delete = engine.prepare('DELETE FROM attempts WHERE name = ?')
    this.deleteFull = engine.prepare(
      `DELETE FROM attempts WHERE name IN
       (SELECT name FROM attempts WHERE full_at_ms <= ? ORDER BY full_at_ms LIMIT ${BATCH})`,
    )
  }

  take(subjects: readonly ThrottledSubject[], nowMs: number): Promise<number[]> {
    return this.engine.write('counting an attempt', () => {
      const full = subjects.map(({ name }) => this.fullAtMs(name))
      const waits = subjects.map((subject, at) => throttleWaitMs(subject, full[at] ?? 0, nowMs))
      if (waits.some((wait) => wait > 0)) return waits
      subjects.forEach((subject, at) => {
        this.put.run(subject.name, throttleFullAtMs(subject, full[at] ?? 0, nowMs))
      })
      return waits
    })
  }

  async forget(name: string): Promise<void> {
    await this.engine.write('resetting a throttle', () => this.delete.run(name))
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(() =>
      this.engine.write('removing full throttles', () =>
        Number(this.deleteFull.run(nowMs).changes),
      ),
    )
  }

  private fullAtMs(name: string): number {
    const row = this.select.get(name)
    return row === undefined ? 0 : numberIn(row, 'full_at_ms')
  }
}
