/**
 * Lists of keys and accounts in any order (`store/account-and-key-lists.ts`). They run in the background
 * thread.
 */
import type { Account, ApiKey } from '../../../accounts/account.js'
import {
  idsByAccount,
  NO_USE,
  pageOfAccounts,
  pageOfKeys,
  ParsedRecords,
  useByAccount,
  type AccountQuery,
  type KeyQuery,
  type KeyRow,
  type ListedAccount,
  type ListedKey,
  type SortedPage,
  type Use,
} from '../../account-and-key-lists.js'
import { readAccount, readKey, type AccountRecord } from '../../records/account-and-key-records.js'
import type { KeyUse } from '../../usage-queries.js'
import { textIn, type Connection, type Row } from '../driver.js'
import { lastUseOf, type GroupUses } from '../ledger/read-sums.js'

const KEYS = `SELECT keys.id AS id, keys.account_id AS account_id, keys.record AS record, accounts.name AS name
  FROM keys JOIN accounts ON accounts.id = keys.account_id`
const ACCOUNTS = 'SELECT id, record FROM accounts'

/** The lists over one connection. */
export class DirectoryTables {
  private readonly db: Connection
  private readonly parsedKeys = new ParsedRecords<ApiKey>()
  private readonly parsedAccounts = new ParsedRecords<AccountRecord>()

  constructor(db: Connection) {
    this.db = db
  }

  /** `uses` must include every entry. */
  keys(query: KeyQuery, uses: GroupUses): SortedPage<ListedKey> {
    const { accountId, column, sinceMs, nowMs } = query
    const span = { fromMs: sinceMs, toMs: nowMs }
    const isByUse = column === 'requests' || column === 'cost'
    const use = byKey(isByUse ? uses.ofKeys({ accountId, ...span }) : [])
    const last = column === 'lastUsedAt' ? uses.lastUses(accountId) : new Map<string, number>()
    const page = pageOfKeys(this.keyRows(accountId), query, {
      use: ({ id }) => use.get(id),
      lastUsedAtMs: ({ id }) => last.get(id),
    })
    const figures = this.figures(page.items, (owner, keyIds) =>
      uses.ofKeys({ accountId: owner, keyIds, ...span }),
    )
    const items = page.items.map(({ key, accountName }) => ({
      ...{ key, accountName, use: figures.use.get(key.id) ?? NO_USE },
      lastUsedAtMs: figures.last.get(key.id) ?? null,
    }))
    return { ...page, items }
  }

  /** Id, name and maker of each key. */
  keyNames(accountId: string | null): [id: string, name: string, createdBy?: string][] {
    const names: [id: string, name: string, createdBy?: string][] = []
    for (const { key } of this.keyRows(accountId)) {
      const { id, name, createdBy } = key
      names.push(createdBy === undefined ? [id, name] : [id, name, createdBy])
    }
    return names
  }

  /** `uses` must include every entry. */
  accounts(query: AccountQuery, uses: GroupUses): SortedPage<ListedAccount> {
    const records = this.db
      .prepare(ACCOUNTS)
      .all()
      .map((row) => this.account(row))
    const names = new Map(records.map(({ account: { id, name } }) => [id, name]))
    const rows = records.map(({ account, liveKeys }) => {
      return { account, liveKeys, parent: names.get(account.parentId ?? '') ?? null }
    })
    const use = useByAccount(uses.ofKeys({ accountId: null, fromMs: query.sinceMs, toMs: query.nowMs }))
    const useOf = ({ id }: Account): Use => use.get(id) ?? NO_USE
    const page = pageOfAccounts(rows, query, useOf)
    return { ...page, items: page.items.map((row) => ({ ...row, use: useOf(row.account) })) }
  }

  private *keyRows(accountId: string | null): Generator<KeyRow> {
    const rows =
      accountId === null
        ? this.db.prepare(KEYS).iterate()
        : this.db.prepare(`${KEYS} WHERE keys.account_id = ?`).iterate(accountId)
    for (const row of rows) {
      const id = textIn(row, 'id')
      const key = this.parsedKeys.get(id, textIn(row, 'record'), readKey)
      yield { key, accountName: textIn(row, 'name') }
    }
  }

  private account(row: Row): AccountRecord {
    const id = textIn(row, 'id')
    return this.parsedAccounts.get(id, textIn(row, 'record'), readAccount)
  }

  /** The figures of the keys of one page. */
  private figures(
    rows: readonly KeyRow[],
    usesOf: (accountId: string, keyIds: readonly string[]) => readonly KeyUse[],
  ): { readonly use: ReadonlyMap<string, Use>; readonly last: ReadonlyMap<string, number> } {
    const found = idsByAccount(rows)
    return {
      use: byKey(found.flatMap(([owner, keyIds]) => usesOf(owner, keyIds))),
      last: new Map(found.flatMap(([owner, keyIds]) => lastUseOf(this.db, owner, keyIds))),
    }
  }
}

function byKey(uses: readonly KeyUse[]): ReadonlyMap<string, Use> {
  return new Map(uses.map((use) => [use.keyId, use]))
}
