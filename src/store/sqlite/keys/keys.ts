/**
 * Keys in SQLite. The engine has the digest of a secret, never the secret.
 */
import type { ApiKey } from '../../../accounts/account.js'
import type { KeyTable } from '../../build-store.js'
import { damaged } from '../../store-errors.js'
import type { KeyLookup, Page, PageQuery } from '../../store.js'
import { recordIn } from './account-rows.js'
import type { SqliteAccounts } from './accounts.js'
import { keyIn, keyOf, KeyRows, shown } from './key-rows.js'
import type { SqliteNotifications } from './notifications.js'
import { textIn } from '../driver.js'
import type { Engine } from '../engine.js'
import { isName, pageOf } from '../read-records.js'

/** The parts of the store that keys need. */
interface KeysOptions {
  readonly engine: Engine
  readonly accounts: SqliteAccounts
  readonly notifications: SqliteNotifications
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
