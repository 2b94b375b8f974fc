/**
 * What signing in needs, in SQLite: passes (sessions, known devices, one-time links) and counts of attempts.
 */
import {
  throttleFullAtMs,
  throttleWaitMs,
  type ThrottleStore,
  type ThrottledSubject,
} from '../throttle.js'
import {
  SIGN_IN_TOKENS_PER_ACCOUNT,
  type SignInToken,
  type SignInTokens,
  type SignInTokenKind,
} from '../sign-in-tokens.js'
import { readSignInToken, writeSignInToken } from '../records/account-records.js'
import { numberIn, textIn, type Statement } from './driver.js'
import type { Engine } from './engine.js'
import { intact, isName } from './records.js'

/** Removed in one step; other writes come in between. */
const BATCH = 256

/** Passes of a store. */
export class SqlitePasses implements SignInTokens {
  private readonly engine: Engine
  private readonly insert: Statement
  private readonly trim: Statement
  private readonly select: Statement
  private readonly move: Statement
  private readonly delete: Statement
  private readonly deleteAll: Statement
  private readonly deleteExpired: Statement

  constructor(engine: Engine) {
    this.engine = engine
    this.insert = engine.prepare(
      `INSERT INTO passes (id, kind, account_id, expires_at_ms, record) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
    )
    this.trim = engine.prepare(
      `DELETE FROM passes WHERE id IN (
         SELECT id FROM passes WHERE account_id = ?1 AND kind = ?2 AND id <> ?3 ORDER BY expires_at_ms
         LIMIT max(0, (SELECT count(*) FROM passes WHERE account_id = ?1 AND kind = ?2)
           - ${SIGN_IN_TOKENS_PER_ACCOUNT}))`,
    )
    this.select = engine.prepare('SELECT record FROM passes WHERE id = ?')
    this.move = engine.prepare('UPDATE passes SET expires_at_ms = ?, record = ? WHERE id = ?')
    this.delete = engine.prepare('DELETE FROM passes WHERE id = ?')
    this.deleteAll = engine.prepare(
      'DELETE FROM passes WHERE account_id = ? AND kind = ? AND id IS NOT ?',
    )
    this.deleteExpired = engine.prepare(
      `DELETE FROM passes WHERE id IN
       (SELECT id FROM passes WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${BATCH})`,
    )
  }

  add(pass: SignInToken): Promise<boolean> {
    const { id, kind, accountId, expiresAtMs } = pass
    return this.engine.writeDurably('adding a pass', () => {
      const { changes } = this.insert.run(id, kind, accountId, expiresAtMs, writeSignInToken(pass))
      if (Number(changes) === 0) return false
      if (accountId !== '') this.trim.run(accountId, kind, id)
      return true
    })
  }

  find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.engine.read('looking a pass up', () => this.good(kind, id, nowMs))
  }

  prolong(kind: SignInTokenKind, id: string, expiresAtMs: number, nowMs: number): Promise<boolean> {
    return this.engine.writeDurably('prolonging a pass', () => {
      const pass = this.good(kind, id, nowMs)
      if (pass === null) return false
      this.move.run(expiresAtMs, writeSignInToken({ ...pass, expiresAtMs }), id)
      return true
    })
  }

  take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.engine.writeDurably('taking a pass', () => {
      const pass = this.good(kind, id, nowMs)
      if (pass !== null) this.delete.run(id)
      return pass
    })
  }

  end(kind: SignInTokenKind, accountId: string, except: string | null): Promise<number> {
    return this.engine.writeDurably('ending passes', () =>
      Number(this.deleteAll.run(accountId, kind, except).changes),
    )
  }

  async sweep(nowMs: number): Promise<number> {
    return inBatches(() =>
      this.engine.write('sweeping passes', () => Number(this.deleteExpired.run(nowMs).changes)),
    )
  }

  private good(kind: SignInTokenKind, id: string, nowMs: number): SignInToken | null {
    const row = isName(id) ? this.select.get(id) : undefined
    if (row === undefined) return null
    const pass = intact('a pass', () => readSignInToken(textIn(row, 'record')))
    return pass.kind === kind && pass.expiresAtMs > nowMs ? pass : null
  }
}

/** Counts of attempts of a store. */
export class SqliteAttempts implements ThrottleStore {
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
    await this.engine.write('forgetting attempts', () => this.delete.run(name))
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(() =>
      this.engine.write('sweeping attempts', () => Number(this.deleteFull.run(nowMs).changes)),
    )
  }

  private fullAtMs(name: string): number {
    const row = this.select.get(name)
    return row === undefined ? 0 : numberIn(row, 'full_at_ms')
  }
}

async function inBatches(step: () => Promise<number>): Promise<number> {
  for (let count = 0; ;) {
    const gone = await step()
    count += gone
    if (gone < BATCH) return count
  }
}
