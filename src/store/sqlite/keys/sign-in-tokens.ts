/**
 * Sign-in tokens in SQLite: sessions, known devices and one-time links.
 */
import { accessDigest } from '../../../accounts/account.js'
import type {
  AddedToken,
  SignInTokenEdit,
  SignInToken,
  SignInTokens,
  SignInTokenKind,
} from '../../sign-in-tokens.js'
import type { AuditEntry } from '../../audit-trail.js'
import { readSignInToken, writeSignInToken } from '../../records/account-and-key-records.js'
import { textIn, type Row } from '../driver.js'
import { BATCH, inBatches, type Engine } from '../engine.js'
import { intact, isName } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'
import type { SqliteNotifications } from './notifications.js'
import { deleteSignInTokens, insertSignInToken } from './sign-in-rows.js'

const DELETE_EXPIRED = `DELETE FROM passes WHERE id IN
  (SELECT id FROM passes WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${BATCH})`

/** The sign-in tokens of a store. */
export class SqliteSignInTokens implements SignInTokens {
  private readonly engine: Engine
  private readonly notifications: SqliteNotifications
  private readonly auditTrail: SqliteAuditTrail

  constructor(engine: Engine, notifications: SqliteNotifications, auditTrail: SqliteAuditTrail) {
    this.engine = engine
    this.notifications = notifications
    this.auditTrail = auditTrail
  }

  add(token: SignInToken, { auditEntries = [], replaces = [] }: AddedToken = {}): Promise<boolean> {
    return this.engine.writeDurably('adding a sign-in token', () => {
      if (!insertSignInToken(this.engine, token, replaces)) return false
      this.auditTrail.addAll(auditEntries)
      return true
    })
  }

  find(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.engine.read('reading a sign-in token', () => this.valid(kind, id, nowMs))
  }

  change(
    kind: SignInTokenKind,
    id: string,
    edit: (token: SignInToken) => SignInTokenEdit | null,
    nowMs: number,
  ): Promise<SignInToken | null> {
    return this.engine.writeDurably('changing a sign-in token', () => {
      const token = this.valid(kind, id, nowMs)
      const edited = token === null ? null : edit(token)
      if (token === null || edited === null) return null
      const after = { ...token, ...edited }
      this.engine
        .prepare('UPDATE passes SET expires_at_ms = ?, record = ? WHERE id = ?')
        .run(after.expiresAtMs, writeSignInToken(after), id)
      return token
    })
  }

  take(kind: SignInTokenKind, id: string, nowMs: number): Promise<SignInToken | null> {
    return this.announced(
      this.engine.writeDurably('redeeming a sign-in token', () => {
        const token = this.valid(kind, id, nowMs)
        if (token === null) return null
        this.engine.prepare('DELETE FROM passes WHERE id = ?').run(id)
        this.noteEnd(kind, id)
        return token
      }),
      kind,
    )
  }

  tokensOf(kind: SignInTokenKind, accountId: string, nowMs: number): Promise<SignInToken[]> {
    const sql = 'SELECT record FROM passes WHERE account_id = ? AND kind = ? AND expires_at_ms > ?'
    return this.engine.read('listing sign-in tokens', () => {
      if (!isName(accountId)) return []
      return this.engine.prepare(sql).all(accountId, kind, nowMs).map(tokenIn)
    })
  }

  end(
    kinds: SignInTokenKind | readonly SignInTokenKind[],
    accountId: string,
    except: string | null,
    entriesOf: (ended: readonly SignInTokenKind[]) => readonly AuditEntry[] = () => [],
  ): Promise<number> {
    const all = [kinds].flat()
    const ending = { kinds: all, accountId, except: except === null ? [] : [except] }
    const written = this.engine.writeDurably('ending sign-in tokens', () => {
      const ended = deleteSignInTokens(this.engine, this.notifications, ending)
      this.auditTrail.addAll(entriesOf(ended))
      return ended.length
    })
    return all.includes('access') ? this.notifications.announced(written) : written
  }

  sweep(nowMs: number): Promise<number> {
    return inBatches(this.engine, 'removing expired sign-in tokens', () =>
      Number(this.engine.prepare(DELETE_EXPIRED).run(nowMs).changes),
    )
  }

  private noteEnd(kind: SignInTokenKind, id: string): void {
    if (kind === 'access') this.notifications.note(accessDigest(id))
  }

  private announced<T>(written: Promise<T>, kind: SignInTokenKind): Promise<T> {
    return kind === 'access' ? this.notifications.announced(written) : written
  }

  private valid(kind: SignInTokenKind, id: string, nowMs: number): SignInToken | null {
    const select = this.engine.prepare('SELECT record FROM passes WHERE id = ?')
    const row = isName(id) ? select.get(id) : undefined
    if (row === undefined) return null
    const token = tokenIn(row)
    return token.kind === kind && token.expiresAtMs > nowMs ? token : null
  }
}

function tokenIn(row: Row): SignInToken {
  return intact('a sign-in token', () => readSignInToken(textIn(row, 'record')))
}
