/** Ledger entries as rows of the page and of the CSV file. */
import { causeOf } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { csvCell } from '../../base/csv.js'
import { csvHeader, csvLine } from '../../ledger/export-columns.js'
import type * as schema from './schema/schema.js'
import { PLAYGROUND, type Services } from '../services.js'

/** Names of keys and accounts by id that were looked up. */
interface RowNames {
  readonly keys: Map<string, string | null>
  readonly accounts: Map<string, string | null>
}

/** No names yet. */
export function newRowNames(): RowNames {
  return { keys: new Map([[PLAYGROUND, PLAYGROUND]]), accounts: new Map() }
}

/** One row per entry, with the current names of its key and account, and the cause of a failure. */
export async function rowViews(
  { store }: Services,
  rows: readonly LedgerEntry[],
  { keys, accounts } = newRowNames(),
): Promise<schema.RequestRow[]> {
  for (const { accountId, keyId } of rows) {
    if (!keys.has(keyId)) {
      keys.set(keyId, (await store.keyById(accountId, keyId))?.name ?? null)
    }
    if (!accounts.has(accountId)) {
      accounts.set(accountId, (await store.accountById(accountId))?.name ?? null)
    }
  }
  return rows.map(({ ingress, ...row }) => ({
    ...row,
    clientFormat: ingress,
    keyName: keys.get(row.keyId) ?? null,
    accountName: accounts.get(row.accountId) ?? null,
    cause: causeOf(row.outcome),
  }))
}

/** The header line of the CSV file: the columns of `sluice usage export`, and three of the page. */
export function requestsCsvHeader(): string {
  return `${csvHeader()},key_name,account_name,cause\r\n`
}

/** One line of the CSV file (RFC 4180). */
export function requestsCsvLine(row: schema.RequestRow): string {
  const own = [row.keyName, row.accountName, row.cause].map(csvCell)
  return `${[csvLine({ ...row, ingress: row.clientFormat }), ...own].join(',')}\r\n`
}
