/** The audit entry of a change that a command makes. */
import { newRequestId } from '../../http/request-id.js'
import type { AuditEntry } from '../../store/audit-trail.js'

/** As the dashboard writes them, without a person and an address. */
export function commandEntry(
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail'>,
): AuditEntry {
  const atMs = Date.now()
  return { id: newRequestId(atMs), atMs, actor: 'command line', address: null, ...what }
}
