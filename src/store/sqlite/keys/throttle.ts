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
import type { Engine } from '../engine.js'
import { numberOf } from '../read-records.js'

const DELETE_FULL = `DELETE FROM attempts WHERE name IN
  (SELECT name FROM attempts WHERE full_at_ms <= ? ORDER BY full_at_ms LIMIT ${BATCH})`

/** The throttle of a store. */
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
