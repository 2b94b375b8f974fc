/** Changes the progress of the archive from outside of the process that leads, between two of its changes. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ArchiveProgress } from '../archive-feed.js'
import type { Store } from '../store.js'
import { ArchiveFailure } from './archive-engine.js'
import { LEASE_MS } from './copier.js'

const TRY_MS = 500

/** `by` is the command. Rejects with `ArchiveFailure` if the leader changes it all the time. */
export async function changeProgress(
  { ledger }: Pick<Store, 'ledger'>,
  by: string,
  change: (progress: ArchiveProgress) => ArchiveProgress,
): Promise<void> {
  const feed = ledger.archive
  for (const endMs = performance.now() + 2 * LEASE_MS; performance.now() < endMs; await delay(TRY_MS)) {
    const progress = await feed.progress()
    if (progress === null) throw new ArchiveFailure('missing', 'nothing has moved to the archive yet')
    const own = { id: randomUUID(), gateway: by, pid: process.pid }
    const leader = (await feed.leader()) ?? (await feed.lead(own, LEASE_MS))
    const isSaved = await feed.save(leader.id, { ...change(progress), version: progress.version + 1 })
    if (leader.id === own.id) await feed.resign(own.id)
    if (isSaved) return
  }
  throw new ArchiveFailure('away', 'the gateway that moves entries changes its progress all the time')
}
