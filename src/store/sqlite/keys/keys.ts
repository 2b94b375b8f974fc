/**
 * Keys in SQLite. The engine has the digest of a secret, never the secret.
 */
import type { ApiKey, KeyReference } from '../../../accounts/account.js'
import type { KeyTable } from '../../build-store.js'
import { damaged } from '../../errors.js'
import { editedKey, readKey, writeKey } from '../../records/account-and-key-records.js'
import type { KeyEdit, KeyLookup, KeyOutcome, Page, PageQuery, StoreCapacity } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import { recordIn, type SqliteAccounts } from './accounts.js'
import type { SqliteNotifications } from './notifications.js'
import { textIn, type Row } from '../driver.js'
import type { Engine } from '../engine.js'
import { intact, isName, numberOf, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'

/** Digits of a digest that an error message shows. */
const SHOWN_DIGITS = 12

/** The parts of the store that keys need. */
export interface KeysOptions {
  readonly engine: Engine
  readonly accounts: SqliteAccounts
  readonly auditTrail: SqliteAuditTrail
  readonly notifications: SqliteNotifications
  readonly capacity: StoreCapacity
}

const LOOKUP = `SELECT keys.record AS key, accounts.id AS id, accounts.record AS record
  FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.digest = ?`

/** The part of `Store` that is about keys. */
export class SqliteKeys implements KeyTable {
  private readonly options: KeysOptions

  constructor(options: KeysOptions) {
    this.options = options
  }

  async create(
    key: ApiKey,
    maxKeys: number | null,
    auditEntries: readonly AuditEntry[],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    const { engine, accounts, auditTrail, notifications, capacity } = this.options
    return this.write<KeyOutcome>('creating a key', () => {
      const owner = accounts.record(key.accountId)
      if (owner === null) return 'no_account'
      if (maxKeys !== null && owner.liveKeys >= maxKeys) return 'plan_limit'
      const all = engine.prepare('SELECT count(*) AS n FROM keys WHERE account_id = ?')
      if (numberOf(all.get(key.accountId)) >= capacity.keysPerAccount) return 'account_full'
      // A digest is never used twice: that could make a revoked key valid again.
      if (this.exists(key.digest) || this.row(key.id) !== undefined) return 'id_taken'
      engine
        .prepare('INSERT INTO keys (digest, id, account_id, record) VALUES (?, ?, ?, ?)')
        .run(key.digest, key.id, key.accountId, writeKey(key))
      const liveKeys = owner.liveKeys + (key.revokedAtMs === undefined ? 1 : 0)
      accounts.write({ ...owner, liveKeys })
      auditTrail.addAll(auditEntries)
      notifications.note(key.digest)
      return 'created'
    })
  }

  /** By digest, at once. Throws `GatewayError(store_unavailable)`. */
  find(digest: string): KeyLookup | null {
    return this.options.engine.readNow('looking a key up', () => {
      if (!isName(digest)) return null
      const row = this.options.engine.prepare(LOOKUP).get(digest)
      if (row === undefined) {
        if (!this.exists(digest)) return null
        throw damaged(shown(digest), 'its account is missing')
      }
      const key = keyIn(textIn(row, 'key'), digest)
      const { account } = recordIn(row)
      if (account.id !== key.accountId) {
        throw damaged(`key '${key.id}'`, `its account is not '${key.accountId}'`)
      }
      return { key, account }
    })
  }

  list(accountId: string, query: PageQuery): Promise<Page<ApiKey>> {
    const { engine } = this.options
    const sql = 'SELECT place, digest, record FROM keys WHERE account_id = ?'
    return engine.read('listing keys', () =>
      isName(accountId)
        ? pageOf({ engine, sql, values: [accountId] }, query, keyOf)
        : { items: [], next: null },
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

  change(
    { accountId, id }: KeyReference,
    edit: KeyEdit | ((key: ApiKey) => KeyEdit),
    entriesOf: AuditEntriesOf<ApiKey>,
  ): Promise<ApiKey | null> {
    return this.write('changing a key', () => {
      const key = this.own(accountId, id)
      if (key === null || key.revokedAtMs !== undefined) return null
      const edited = editedKey(key, edit)
      this.update(edited, entriesOf(key, edited))
      return edited
    })
  }

  revoke(
    { accountId, id }: KeyReference,
    atMs: number,
    auditEntries: readonly AuditEntry[],
  ): Promise<boolean> {
    return this.write('revoking a key', () => {
      const key = this.own(accountId, id)
      if (key === null) return false
      if (key.revokedAtMs !== undefined) return true
      this.update({ ...key, revokedAtMs: atMs }, auditEntries)
      this.removeLive(accountId, 1)
      return true
    })
  }

  /** See `Store.removeKeys`. */
  remove(accountId: string, keyIds: readonly string[], endedBeforeMs: number): Promise<number> {
    return this.write('removing keys', () => {
      let [removed, live] = [0, 0]
      for (const keyId of new Set(keyIds)) {
        const key = this.own(accountId, keyId)
        if (key === null || !hasEndedBefore(key, endedBeforeMs)) continue
        this.options.engine.prepare('DELETE FROM keys WHERE digest = ?').run(key.digest)
        this.options.notifications.note(key.digest)
        removed += 1
        if (key.revokedAtMs === undefined) live += 1
      }
      if (live > 0) this.removeLive(accountId, live)
      return removed
    })
  }

  /** Notifies the listeners of this process after the write. */
  private write<T>(what: string, job: () => T): Promise<T> {
    const { engine, notifications } = this.options
    return notifications.announced(engine.writeDurably(what, job))
  }

  private update(key: ApiKey, auditEntries: readonly AuditEntry[]): void {
    const { engine, auditTrail, notifications } = this.options
    engine.prepare('UPDATE keys SET record = ? WHERE digest = ?').run(writeKey(key), key.digest)
    auditTrail.addAll(auditEntries)
    notifications.note(key.digest)
  }

  private removeLive(accountId: string, keys: number): void {
    const { accounts } = this.options
    const owner = accounts.record(accountId)
    if (owner === null) throw damaged(`account '${accountId}'`, 'it is missing, and has a key')
    accounts.write({ ...owner, liveKeys: Math.max(0, owner.liveKeys - keys) })
  }

  private own(accountId: string, keyId: string): ApiKey | null {
    const row = this.row(keyId)
    return row === undefined || textIn(row, 'account_id') !== accountId ? null : keyOf(row)
  }

  private row(keyId: string): Row | undefined {
    const byId = 'SELECT digest, account_id, record FROM keys WHERE id = ?'
    return isName(keyId) ? this.options.engine.prepare(byId).get(keyId) : undefined
  }

  private exists(digest: string): boolean {
    const byDigest = this.options.engine.prepare('SELECT 1 FROM keys WHERE digest = ?')
    return byDigest.get(digest) !== undefined
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
