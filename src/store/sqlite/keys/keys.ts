/**
 * Keys in SQLite. The engine has the digest of a secret, never the secret.
 */
import type { ApiKey, KeyReference } from '../../../accounts/account.js'
import type { KeyTable } from '../../build-store.js'
import { damaged } from '../../store-errors.js'
import { editedKey } from '../../records/account-and-key-records.js'
import type { KeyEdit, KeyLookup, KeyOutcome, Page, PageQuery, StoreCapacity } from '../../store.js'
import type { AuditEntriesOf, AuditEntry } from '../../audit-trail.js'
import { recordIn } from './account-rows.js'
import type { SqliteAccounts } from './accounts.js'
import { keyIn, keyOf, KeyRows, shown } from './key-rows.js'
import type { SqliteNotifications } from './notifications.js'
import { textIn } from '../driver.js'
import type { Engine } from '../engine.js'
import { isName, pageOf } from '../read-records.js'
import type { SqliteAuditTrail } from './audit-trail.js'

/** The parts of the store that keys need. */
interface KeysOptions {
  readonly engine: Engine
  readonly accounts: SqliteAccounts
  readonly auditTrail: SqliteAuditTrail
  readonly notifications: SqliteNotifications
  readonly capacity: StoreCapacity
}

const LOOKUP = `SELECT keys.record AS key, accounts.id AS id, accounts.record AS record
  FROM keys JOIN accounts ON accounts.id = keys.account_id WHERE keys.digest = ?`

/** The part of `Store` that is about keys. */
export class SqliteKeys extends KeyRows implements KeyTable {
  private readonly options: KeysOptions

  constructor(options: KeysOptions) {
    super(options.engine, options.notifications)
    this.options = options
  }

  async create(
    key: ApiKey,
    maxKeys: number | null,
    auditEntries: readonly AuditEntry[],
  ): Promise<KeyOutcome> {
    if (!isName(key.id) || !isName(key.digest)) return 'bad_name'
    const { accounts, auditTrail, capacity } = this.options
    return this.write<KeyOutcome>('creating a key', () => {
      const owner = accounts.record(key.accountId)
      if (owner === null) return 'no_account'
      if (maxKeys !== null && owner.liveKeys >= maxKeys) return 'plan_limit'
      if (this.countAll(key.accountId) >= capacity.keysPerAccount) return 'account_full'
      // A digest is never used twice: that could make a revoked key valid again.
      if (this.isTaken(key)) return 'id_taken'
      if (!this.takeName(key, key.createdAtMs)) return 'name_taken'
      this.insert(key)
      const liveKeys = owner.liveKeys + (key.revokedAtMs === undefined ? 1 : 0)
      accounts.write({ ...owner, liveKeys })
      auditTrail.addAll(auditEntries)
      return 'created'
    })
  }

  /** By digest, at once. Throws `GatewayError(store_unavailable)`. */
  find(digest: string): KeyLookup | null {
    const { accounts } = this.options
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
      const ancestors = account.parentId === undefined ? null : accounts.ancestors(account)
      return ancestors === null ? { key, account } : { key, account, ancestors }
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

  byId(accountId: string | null, keyId: string): Promise<ApiKey | null> {
    return this.options.engine.read('reading a key', () => this.own(accountId, keyId))
  }

  byName(accountId: string, name: string): Promise<ApiKey | null> {
    return this.options.engine.read('reading a key', () => this.named(accountId, name))
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
      const isFree = edited.name === key.name || this.takeName(edited, Date.now())
      if (!isFree) return null
      this.update(edited)
      this.options.auditTrail.addAll(entriesOf(key, edited))
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
      this.update({ ...key, revokedAtMs: atMs })
      this.options.auditTrail.addAll(auditEntries)
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

  private removeLive(accountId: string, keys: number): void {
    const { accounts } = this.options
    const owner = accounts.record(accountId)
    if (owner === null) throw damaged(`account '${accountId}'`, 'it is missing, and has a key')
    accounts.write({ ...owner, liveKeys: Math.max(0, owner.liveKeys - keys) })
  }
}

function hasEndedBefore({ revokedAtMs, expiresAtMs }: ApiKey, ms: number): boolean {
  return (revokedAtMs ?? ms) < ms || (expiresAtMs ?? ms) < ms
}
