/**
 * The rows of keys, read and written inside transactions: by the store's connection, or by that of its
 * background thread.
 */
import { hasName, type ApiKey } from '../../../accounts/account.js'
import { damaged } from '../../store-errors.js'
import { readKey, writeKey } from '../../records/account-and-key-records.js'
import { textIn, type Row, type Statements } from '../driver.js'
import { intact, isName, numberOf } from '../read-records.js'
import type { ChangeRows } from './change-rows.js'

/** Digits of a digest that an error message shows. */
const SHOWN_DIGITS = 12

/** The rows of a connection. */
export class KeyRows {
  protected readonly statements: Statements
  private readonly changes: ChangeRows

  constructor(statements: Statements, changes: ChangeRows) {
    this.statements = statements
    this.changes = changes
  }

  /** The key that has the name, in a transaction or not. */
  named(accountId: string, name: string): ApiKey | null {
    if (!isName(accountId)) return null
    const byName = 'SELECT digest, record FROM keys WHERE account_id = ? AND name = ?'
    const row = this.statements.prepare(byName).get(accountId, name)
    return row === undefined ? null : keyOf(row)
  }

  /**
   * The value of the column `name`. A key takes its name from one that has it, and that has expired; a key
   * that has expired itself leaves it.
   */
  private nameFor(key: ApiKey, nowMs: number): string | null {
    if (!hasName(key)) return null
    const other = this.named(key.accountId, key.name)
    if (other === null || other.id === key.id) return key.name
    if ((key.expiresAtMs ?? Infinity) <= nowMs) return null
    const without = 'UPDATE keys SET name = NULL WHERE digest = ?'
    this.statements.prepare(without).run(other.digest)
    return key.name
  }

  /** Whether its id or digest is in use. Only inside a transaction. */
  isTaken({ id, digest }: ApiKey): boolean {
    return this.exists(digest) || this.row(id) !== undefined
  }

  /** Only inside a transaction. */
  insert(key: ApiKey, nowMs: number): void {
    this.statements
      .prepare('INSERT INTO keys (digest, id, account_id, record, name) VALUES (?, ?, ?, ?, ?)')
      .run(key.digest, key.id, key.accountId, writeKey(key), this.nameFor(key, nowMs))
    this.changes.note(key.digest)
  }

  /** Only inside a transaction. */
  update(key: ApiKey, nowMs: number): void {
    this.statements
      .prepare('UPDATE keys SET record = ?, name = ? WHERE digest = ?')
      .run(writeKey(key), this.nameFor(key, nowMs), key.digest)
    this.changes.note(key.digest)
  }

  /** The number of keys of the account, revoked ones included. */
  countAll(accountId: string): number {
    const all = 'SELECT count(*) AS n FROM keys WHERE account_id = ?'
    return numberOf(this.statements.prepare(all).get(accountId))
  }

  /** Whether the key of the account is revoked; null if there is none. Reads no more of its record. */
  isRevoked(accountId: string, keyId: string): boolean | null {
    const sql = "SELECT record ->> 'revokedAtMs' AS at_ms FROM keys WHERE id = ? AND account_id = ?"
    const row = isName(keyId) ? this.statements.prepare(sql).get(keyId, accountId) : undefined
    return row === undefined ? null : row['at_ms'] !== null
  }

  /** The key of the account (null: of any), in a transaction or not. */
  own(accountId: string | null, keyId: string): ApiKey | null {
    const row = this.row(keyId)
    if (row === undefined) return null
    return accountId === null || textIn(row, 'account_id') === accountId ? keyOf(row) : null
  }

  protected row(keyId: string): Row | undefined {
    const byId = 'SELECT digest, account_id, record FROM keys WHERE id = ?'
    return isName(keyId) ? this.statements.prepare(byId).get(keyId) : undefined
  }

  protected exists(digest: string): boolean {
    const byDigest = this.statements.prepare('SELECT 1 FROM keys WHERE digest = ?')
    return byDigest.get(digest) !== undefined
  }
}

export function keyOf(row: Row): ApiKey {
  return keyIn(textIn(row, 'record'), textIn(row, 'digest'))
}

/** The key in its text. Throws an Error if it is damaged, or the record of another key. */
export function keyIn(text: string, digest: string): ApiKey {
  const key = intact(shown(digest), () => readKey(text))
  // A look-up must never return another key, even if an index is damaged.
  if (key.digest !== digest) throw damaged(`key '${key.id}'`, 'it has another digest')
  return key
}

/** A key in an error message. */
export function shown(digest: string): string {
  return `the key with the digest ${digest.slice(0, SHOWN_DIGITS)}…`
}
