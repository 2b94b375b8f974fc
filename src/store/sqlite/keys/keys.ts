/**
 * Keys in SQLite. The engine has the digest of a secret, never the secret.
 */
import type { ApiKey } from '../../../accounts/account.js'
import { damaged } from '../../errors.js'
import { editedKey, readKey, writeKey } from '../../records/account-records.js'
import type { KeyEdit, KeyLookup, KeyOutcome, Page, PageQuery, StoreCapacity } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import { recordIn, type SqliteAccounts } from './accounts.js'
import type { KeyChanges } from './key-changes.js'
import { numberIn, textIn, type Row, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, pageOf, type PageStatements } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'

/** Digits of a digest that an error message shows. */
const SHOWN_DIGITS = 12

/** The parts of the store that keys need. */
export interface KeysOptions {
  readonly engine: Engine
  readonly accounts: SqliteAccounts
  readonly auditTrail: SqliteAuditTrail
  readonly changes: KeyChanges
  readonly capacity: StoreCapacity
}

/** The part of `Store` that is about keys. */
export class SqliteKeys {
  private readonly options: KeysOptions
  private readonly lookup: Statement
  private readonly byDigest: Statement
  private readonly byIdRow: Statement
  private readonly insert: Statement
  private readonly update: Statement
  private readonly delete: Statement
  private readonly countOf: Statement
  private readonly pages: PageStatements

  constructor(options: KeysOptions) {
    this.options = options
    const { engine } = options
    this.lookup = engine.prepare(
      `SELECT keys.record AS key, accounts.id AS id, accounts.record AS record
       FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.digest = ?`,
    )
    this.byDigest = engine.prepare('SELECT 1 FROM keys WHERE digest = ?')
    this.byIdRow = engine.prepare('SELECT digest, account_id, record FROM keys WHERE id = ?')
    this.insert = engine.prepare(
      'INSERT INTO keys (digest, id, account_id, record) VALUES (?, ?, ?, ?)',
    )
    this.update = engine.prepare('UPDATE keys SET record = ? WHERE digest = ?')
    this.delete = engine.prepare('DELETE FROM keys WHERE digest = ?')
    this.countOf = engine.prepare('SELECT count(*) AS keys FROM keys WHERE account_id = ?')
    const select = 'SELECT place, digest, record FROM keys WHERE account_id = ?'
    this.pages = {
      oldest_first: engine.prepare(`${select} AND place > ? ORDER BY place LIMIT ?`),
      newest_first: engine.prepare(`${select} AND place < ? ORDER BY place DESC LIMIT ?`),
    }
  }

  async create(
    key: ApiKey,
    maxKeys: number | null,
    auditEntries: readonly AuditEntry[],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    const { engine, accounts, auditTrail, changes, capacity } = this.options
    return changes.announced(
      engine.writeDurably<KeyOutcome>('creating a key', () => {
        const owner = accounts.record(key.accountId)
        if (owner === null) return 'no_account'
        if (maxKeys !== null && owner.liveKeys >= maxKeys) return 'plan_limit'
        if (this.count(key.accountId) >= capacity.keysPerAccount) return 'account_full'
        // A digest is never used twice: that could make a revoked key valid again.
        const isTaken = this.byDigest.get(key.digest) ?? this.byIdRow.get(key.id)
        if (isTaken !== undefined) return 'id_taken'
        this.insert.run(key.digest, key.id, key.accountId, writeKey(key))
        const liveKeys = owner.liveKeys + (key.revokedAtMs === undefined ? 1 : 0)
        accounts.write({ ...owner, liveKeys })
        auditTrail.addAll(auditEntries)
        changes.note(key.digest)
        return 'created'
      }),
    )
  }

  /** By digest, at once. Throws `GatewayError(store_unavailable)`. */
  find(digest: string): KeyLookup | null {
    return this.options.engine.readNow('looking a key up', () => {
      if (!isName(digest)) return null
      const row = this.lookup.get(digest)
      if (row === undefined) return this.none(digest)
      const key = keyIn(textIn(row, 'key'), digest)
      const owner = recordIn(row, textIn(row, 'id')).account
      if (owner.id !== key.accountId) {
        throw damaged(`key '${key.id}'`, `its account is not '${key.accountId}'`)
      }
      return { key, account: owner }
    })
  }

  list(accountId: string, query: PageQuery): Promise<Page<ApiKey>> {
    return this.options.engine.read('listing keys', () =>
      isName(accountId) ? pageOf(this.pages, [accountId], query, keyOf) : { items: [], next: null },
    )
  }

  byId(accountId: string, keyId: string): Promise<ApiKey | null> {
    return this.options.engine.read('reading a key', () => this.own(accountId, keyId))
  }

  /** Keys of the account that are not revoked. */
  countLive(accountId: string): Promise<number> {
    const { engine, accounts } = this.options
    return engine.read('counting keys', () => accounts.record(accountId)?.liveKeys ?? 0)
  }

  async change(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    entriesOf: AuditEntriesOf<ApiKey>,
  ): Promise<ApiKey | null> {
    const { engine, auditTrail, changes } = this.options
    return changes.announced(
      engine.writeDurably('changing a key', () => {
        const key = this.own(accountId, keyId)
        if (key === null || key.revokedAtMs !== undefined) return null
        const edited = editedKey(key, edit)
        this.update.run(writeKey(edited), key.digest)
        auditTrail.addAll(entriesOf(key, edited))
        changes.note(key.digest)
        return edited
      }),
    )
  }

  async revoke(
    accountId: string,
    keyId: string,
    atMs: number,
    auditEntries: readonly AuditEntry[],
  ): Promise<boolean> {
    const { engine, auditTrail, changes } = this.options
    return changes.announced(
      engine.writeDurably('revoking a key', () => {
        const key = this.own(accountId, keyId)
        if (key === null) return false
        if (key.revokedAtMs !== undefined) return true
        this.update.run(writeKey({ ...key, revokedAtMs: atMs }), key.digest)
        this.addLive(accountId, -1)
        auditTrail.addAll(auditEntries)
        changes.note(key.digest)
        return true
      }),
    )
  }

  /** See `Store.removeKeys`. */
  async remove(
    accountId: string,
    keyIds: readonly string[],
    endedBeforeMs: number,
  ): Promise<number> {
    const { engine, changes } = this.options
    return changes.announced(
      engine.writeDurably('removing keys', () => {
        let [removed, live] = [0, 0]
        for (const keyId of new Set(keyIds)) {
          const key = this.own(accountId, keyId)
          if (key === null || !hasEndedBefore(key, endedBeforeMs)) continue
          this.delete.run(key.digest)
          changes.note(key.digest)
          removed += 1
          if (key.revokedAtMs === undefined) live += 1
        }
        if (live > 0) this.addLive(accountId, -live)
        return removed
      }),
    )
  }

  private addLive(accountId: string, keys: number): void {
    const { accounts } = this.options
    const owner = accounts.record(accountId)
    if (owner === null) throw damaged(`account '${accountId}'`, 'it is missing, and has a key')
    accounts.write({ ...owner, liveKeys: Math.max(0, owner.liveKeys + keys) })
  }

  private own(accountId: string, keyId: string): ApiKey | null {
    const row = isName(keyId) ? this.byIdRow.get(keyId) : undefined
    if (row === undefined || textIn(row, 'account_id') !== accountId) return null
    return keyOf(row)
  }

  private count(accountId: string): number {
    const row = this.countOf.get(accountId)
    return row === undefined ? 0 : numberIn(row, 'keys')
  }

  /** Null for an unknown digest. A key without its account is damaged, and not unknown. */
  private none(digest: string): null {
    if (this.byDigest.get(digest) === undefined) return null
    throw damaged(shown(digest), 'its account is missing')
  }
}

function keyOf(row: Row): ApiKey {
  return keyIn(textIn(row, 'record'), textIn(row, 'digest'))
}

function keyIn(text: string, digest: string): ApiKey {
  const key = intact(shown(digest), () => readKey(text))
  // A look-up must never return another key, even if an index is damaged.
  if (key.digest !== digest) throw damaged(`key '${key.id}'`, 'it has another digest')
  return key
}

function shown(digest: string): string {
  return `the key with the digest ${digest.slice(0, SHOWN_DIGITS)}…`
}

function hasEndedBefore({ revokedAtMs, expiresAtMs }: ApiKey, ms: number): boolean {
  return (revokedAtMs ?? ms) < ms || (expiresAtMs ?? ms) < ms
}
