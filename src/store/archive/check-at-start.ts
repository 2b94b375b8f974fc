/**
 * Whether a gateway may start with its archive. A store that has used its archive before starts in any case:
 * a rotated password must not stop a restart at night.
 */
import type { Config } from '../../config/config.js'
import { openExpectedStore } from '../store-identity.js'
import { openArchiveEngine } from './open-archive-engine.js'
import { inspectArchive } from './inspect-archive.js'

/** Why the gateway must not start; null: it may. Rejects if the store cannot be opened. */
export async function archiveRefusal({
  archive,
  store: url,
  ledger,
}: Pick<Config, 'archive' | 'store' | 'ledger'>): Promise<string | null> {
  if (archive === null) return null
  const store = await openExpectedStore({ url, folder: ledger.spool })
  try {
    if ((await store.ledger.archive.progress()) !== null) return null
    const engine = await openArchiveEngine(archive)
    try {
      const { findings } = await inspectArchive(engine, store.id)
      const finding = findings.find(({ kind }) => kind !== 'away' && kind !== 'columns')
      return finding === undefined ? null : `archive.url: ${finding.message}`
    } finally {
      await engine.close()
    }
  } finally {
    await store.close()
  }
}
