/** Finds entries of the audit trail that match a filter. */
import {
  isPastFilter,
  matchesAudit,
  type AuditEntry,
  type AuditPage,
  type AuditSearch,
} from '../../audit-trail.js'
import { readAuditEntry } from '../../records/account-and-key-records.js'
import { textIn, type Connection } from '../driver.js'

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
