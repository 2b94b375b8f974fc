/** Changes of the configuration in the audit trail: of its files, and rollbacks that no door records. */
import { configurationChange } from '../accounts/changes/audit-text.js'
import { entryOf } from '../accounts/changes/decide.js'
import { generationFields, type Snapshot } from '../config/config.js'
import type { Logger } from '../observe/log.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'

/** A generation is recorded once by all processes of its gateway, and not by those that start later. */
const ONCE_MS = 600_000

interface RecordOptions {
  readonly log: Logger
  /** The same for all processes of the gateway. */
  readonly gatewayId: string
}

/** Adds the change that made the generation to the audit trail. Never rejects. */
export async function recordGeneration(
  store: Pick<Store, 'auditTrail' | 'throttle'>,
  snapshot: Snapshot,
  { log, gatewayId }: RecordOptions,
): Promise<void> {
  const { generation, loadedAtMs, toRecord } = snapshot
  const nowMs = Date.now()
  if (toRecord === null || nowMs - loadedAtMs > ONCE_MS / 2) return
  try {
    const turn = { name: `generation:${gatewayId}:${generation}`, burst: 1, everyMs: ONCE_MS }
    const [waitMs = 0] = await store.throttle.take([turn], nowMs)
    if (waitMs === 0) await store.auditTrail.add(generationEntry(snapshot, toRecord))
  } catch (error) {
    log.error('a change of the configuration is not in the audit trail', error)
  }
}

/** The actor is the author whom the file, the deployment or the command names. */
function generationEntry(
  snapshot: Snapshot,
  { author: actor, reason, contentOf }: NonNullable<Snapshot['toRecord']>,
): AuditEntry {
  const { generation, gateway } = generationFields(snapshot)
  const detail = `generation ${generation} of ${gateway}`
  return entryOf(
    snapshot.loadedAtMs,
    { actor, address: null, reason },
    {
      ...{ accountId: '', detail },
      ...(contentOf === null
        ? { action: 'configuration.load', target: String(generation) }
        : { action: 'configuration.rollback', target: String(contentOf) }),
      ...configurationChange(snapshot.changes),
    },
  )
}
