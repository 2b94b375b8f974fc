/** The labels of a key over time, from the audit log. */
import type { ApiKey } from '../../../accounts/account.js'
import { NO_LABELS, type Labels } from '../../../accounts/labels.js'
import { isObject, stringOf, type JsonObject } from '../../../base/json.js'
import type { AuditEntry } from '../../../store/audit-trail.js'
import type { Store } from '../../../store/store.js'
import type { KeyDetailReply } from '../schema/schema.js'

/** Further changes are not read. */
const MAX_CHANGES = 200

type History = KeyDetailReply['labelHistory']

/**
 * The labels after each change, the newest first, and last those of the creation. The history ends where the
 * audit log no longer has an entry of the key. Ledger entries have the labels of their own time in any case.
 */
export async function labelHistory({ auditTrail }: Pick<Store, 'auditTrail'>, key: ApiKey): Promise<History> {
  const changes: { readonly entry: AuditEntry; readonly before: Labels; readonly after: Labels }[] = []
  for (let after: string | null = null; changes.length < MAX_CHANGES;) {
    const { accountId, id: target } = key
    const filter = { target, action: 'key' }
    const found = await auditTrail.find({
      ...{ accountId, filter, after, limit: MAX_CHANGES, order: 'newest_first' },
    })
    for (const entry of found.entries) {
      const [old, now] = [labelsIn(entry.before), labelsIn(entry.after)]
      const isChange = entry.action === 'key.change' && (old !== null || now !== null)
      if (isChange) changes.push({ entry, before: old ?? NO_LABELS, after: now ?? NO_LABELS })
    }
    if (found.next === null) break
    after = found.next
  }
  const first = changes.at(-1)?.before ?? key.labels ?? NO_LABELS
  return [
    ...changes.map(({ entry, after }) => {
      return { atMs: entry.atMs, by: entry.actor, labels: { ...after } }
    }),
    { atMs: key.createdAtMs, by: key.createdBy ?? null, labels: { ...first } },
  ]
}

/** The labels in the changed fields of an entry; null if they did not change. */
function labelsIn(fields: JsonObject | null | undefined): Labels | null {
  const labels = fields?.['labels']
  if (!isObject(labels)) return null
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(labels)) texts[name] = stringOf(value) ?? ''
  return texts
}
