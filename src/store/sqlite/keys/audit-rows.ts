/** The rows of the audit trail: adds entries, and finds those that match a filter. */
import {
  isPastFilter,
  matchesAudit,
  type AuditEntry,
  type AuditPage,
  type AuditSearch,
} from '../../audit-trail.js'
import { readAuditEntry, writeAuditEntry } from '../../records/account-and-key-records.js'
import type { StoreCapacity } from '../../store.js'
import { textIn, type Connection, type Statements } from '../driver.js'
import { numberOf } from '../read-records.js'

/** Sorts after every id. */
const LAST = '\uffff'
/** Entries that one search looks at: a fraction of a second. */
const MAX_SCANNED = 50_000
const SCANNED_AT_ONCE = 1_000

/** See `AuditTrail.find`. It runs in the background thread. */
export function auditPage(
  db: Connection,
  { accountId, after, limit, order, filter }: AuditSearch,
): AuditPage {
  const isNewest = order === 'newest_first'
  let place = after ?? (isNewest ? LAST : '')
  const [owned, owner] = accountId === null ? ['', []] : ['account_id = ? AND ', [accountId]]
  const inOrder = isNewest ? 'id < ? ORDER BY id DESC' : 'id > ? ORDER BY id'
  const statement = db.prepare(`SELECT id, record FROM trail WHERE ${owned}${inOrder} LIMIT ?`)
  const entries: AuditEntry[] = []
  for (let scanned = 0; scanned < MAX_SCANNED; scanned += SCANNED_AT_ONCE) {
    const rows = statement.all(...owner, place, SCANNED_AT_ONCE)
    for (const row of rows) {
      const entry = readAuditEntry(textIn(row, 'record'))
      if (matchesAudit(entry, filter)) {
        // One more entry shows that there is another page.
        if (entries.length === limit) return { entries, next: place }
        entries.push(entry)
      }
      place = textIn(row, 'id')
      if (isPastFilter(entry, { order, filter })) return { entries, next: null }
    }
    if (rows.length < SCANNED_AT_ONCE) return { entries, next: null }
  }
  return { entries, next: place }
}

/** Adds the entries of a change, in its transaction. */
export function addAuditEntries(
  statements: Statements,
  capacity: Pick<StoreCapacity, 'auditEntries' | 'auditEntriesPerAccount'>,
  entries: readonly AuditEntry[],
): void {
  if (entries.length === 0) return
  const insert = statements.prepare(
    `INSERT INTO trail (id, account_id, record) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, record = excluded.record`,
  )
  for (const entry of entries) insert.run(entry.id, entry.accountId, writeAuditEntry(entry))
  const countOf = statements.prepare('SELECT count(*) AS n FROM trail WHERE account_id = ?')
  const drop = `DELETE FROM trail WHERE id IN (SELECT id FROM trail`
  for (const accountId of new Set(entries.map((entry) => entry.accountId))) {
    const surplus = numberOf(countOf.get(accountId)) - capacity.auditEntriesPerAccount
    const dropOf = statements.prepare(`${drop} WHERE account_id = ? ORDER BY id LIMIT ?)`)
    if (surplus > 0) dropOf.run(accountId, surplus)
  }
  const size = statements.prepare("SELECT entries AS n FROM sizes WHERE name = 'trail'").get()
  const surplus = numberOf(size) - capacity.auditEntries
  if (surplus > 0) statements.prepare(`${drop} ORDER BY id LIMIT ?)`).run(surplus)
}
