/** The audit entry of a change that a command makes. */
import { userInfo } from 'node:os'
import { newRequestId } from '../../http/request-id.js'
import type { AuditEntry } from '../../store/audit-trail.js'

/** As the dashboard writes them; the actor is the user of the operating system. */
export function commandEntry(
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail'>,
): AuditEntry {
  const atMs = Date.now()
  const actor = `command line (${systemUser()})`
  return { id: newRequestId(atMs), atMs, actor, address: null, ...what }
}

/** The name of the user, or the number if it has no name, as in a container with `--user 10001`. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`
  }
}
