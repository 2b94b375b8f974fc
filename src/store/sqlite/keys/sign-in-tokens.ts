/**
 * Sign-in tokens in SQLite: sessions, known devices and one-time links.
 */
import {
  SIGN_IN_TOKENS_PER_ACCOUNT,
  type SignInToken,
  type SignInTokens,
  type SignInTokenKind,
} from '../../sign-in-tokens.js'
import { readSignInToken, writeSignInToken } from '../../records/account-records.js'
import { textIn, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { BATCH, inBatches } from '../delete-batches.js'
import { intact, isName } from '../read-records.js'

/** The sign-in tokens of a store. */
export class SqliteSignInTokens implements SignInTokens {
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

  add(token: SignInToken): Promise<boolean> {
    const { id, kind, accountId, expiresAtMs } = token
    return this.engine.writeDurably('adding a sign-in token', () => {
      const { changes } = this.insert.run(id, kind, accountId, expiresAtMs, writeSignInToken(token))
      if (Number(changes) === 0) return false
      if (accountId !== '') this.trim.run(accountId, kind, id)
      return true
    })
  }

  find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.engine.read('reading a sign-in token', () => this.valid(kind, id, nowMs))
  }

  prolong(kind: SignInTokenKind, id: string, expiresAtMs: number, nowMs: number): Promise<boolean> {
    return this.engine.writeDurably('prolonging a sign-in token', () => {
      const token = this.valid(kind, id, nowMs)
      if (token === null) return false
      this.move.run(expiresAtMs, writeSignInToken({ ...token, expiresAtMs }), id)
      return true
    })
  }

  take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.engine.writeDurably('redeeming a sign-in token', () => {
      const token = this.valid(kind, id, nowMs)
      if (token !== null) this.delete.run(id)
      return token
    })
  }

  end(kind: SignInTokenKind, accountId: string, except: string | null): Promise<number> {
    return this.engine.writeDurably('ending sign-in tokens', () =>
      Number(this.deleteAll.run(accountId, kind, except).changes),
    )
  }

  async sweep(nowMs: number): Promise<number> {
    return inBatches(() =>
      this.engine.write('removing expired sign-in tokens', () =>
        Number(this.deleteExpired.run(nowMs).changes),
      ),
    )
  }

  private valid(kind: SignInTokenKind, id: string, nowMs: number): SignInToken | null {
    const row = isName(id) ? this.select.get(id) : undefined
    if (row === undefined) return null
    const token = intact('a sign-in token', () => readSignInToken(textIn(row, 'record')))
    return token.kind === kind && token.expiresAtMs > nowMs ? token : null
  }
}
