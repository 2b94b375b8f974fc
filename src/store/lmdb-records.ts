/**
 * Reads accounts and keys from the embedded engine's tables; a record that does not fit is a failure.
 */
import type { Database } from 'lmdb'
import type { ApiKey } from '../accounts/account.js'
import { intact, isName } from './lmdb-engine.js'
import { damaged } from './lmdb-failure.js'
import { readAccount, readKey, type AccountRecord } from './record.js'

/** The tables that are read. */
type Tables = Readonly<Record<'accounts' | 'keys' | 'keyIds', Database<string>>>

/** Records by id or digest; null where there is none. Throws an Error where one is damaged. */
export class LmdbRecords {
  private readonly tables: Tables

  constructor(tables: Tables) {
    this.tables = tables
  }

  account(id: string): AccountRecord | null {
    const text = isName(id) ? this.tables.accounts.get(id) : undefined
    if (text === undefined) return null
    const record = intact(`account '${id}'`, () => readAccount(text))
    if (record.account.id !== id) throw damaged(`account '${id}'`, 'it is another account')
    return record
  }

  key(digest: string): ApiKey | null {
    const text = isName(digest) ? this.tables.keys.get(digest) : undefined
    if (text === undefined) return null
    const name = `the key with digest ${digest.slice(0, 12)}…`
    const key = intact(name, () => readKey(text))
    // The answer must be to this question and no other, whatever went wrong below.
    if (key.digest !== digest) throw damaged(`key '${key.id}'`, 'its digest is not the one asked')
    return key
  }

  keyOf(accountId: string, keyId: string): ApiKey | null {
    const digest = isName(keyId) ? this.tables.keyIds.get(keyId) : undefined
    if (digest === undefined) return null
    const key = this.indexedKey(digest)
    return key.accountId === accountId ? key : null
  }

  indexedAccount(id: string): AccountRecord {
    const record = this.account(id)
    if (record === null) throw damaged(`account '${id}'`, 'an index or a key names it; it is gone')
    return record
  }

  indexedKey(digest: string): ApiKey {
    const key = this.key(digest)
    if (key === null) throw damaged('a key', 'an index names it; it is gone')
    return key
  }
}
