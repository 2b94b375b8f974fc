/**
 * Erases the entries of an account. It is recorded in the store first, so that reads leave the entries out at
 * once; then they are removed from the archive, and from the store when they leave it. Sums stay.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../store/store.js'
import { ArchiveFailure, type ArchiveEngine } from './archive-engine.js'
import { LEASE_MS } from './copier.js'
import { timeText } from './columns.js'

const TRY_MS = 500

interface Erasure {
  readonly store: Pick<Store, 'ledger'>
  readonly engine: ArchiveEngine
  readonly accountId: string
  readonly untilMs: number
}

/** `statement`: for an administrator of the database if the gateway may not delete rows; else null. */
export async function eraseEntries({ store, engine, accountId, untilMs }: Erasure): Promise<{
  readonly statement: string | null
}> {
  await record(store, accountId, untilMs)
  const table = engine.is.entries.split(' ')[0] ?? ''
  const text = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
  const time =
    engine.kind === 'clickhouse'
      ? `toDateTime64('${timeText(untilMs)}', 3, 'UTC')`
      : `'${timeText(untilMs)}Z'`
  const statement = `DELETE FROM ${table} WHERE account_id = ${text(accountId)} AND at < ${time}`
  try {
    await engine.run(statement)
    return { statement: null }
  } catch (error) {
    if (error instanceof ArchiveFailure && error.kind === 'denied') return { statement }
    throw error
  }
}

/** Adds the erasure to the progress, between two changes of the process that leads. */
async function record({ ledger }: Pick<Store, 'ledger'>, accountId: string, untilMs: number): Promise<void> {
  const feed = ledger.archive
  for (const endMs = performance.now() + 2 * LEASE_MS; performance.now() < endMs; await delay(TRY_MS)) {
    const progress = await feed.progress()
    if (progress === null) throw new ArchiveFailure('missing', 'nothing has moved to the archive yet')
    const own = { id: randomUUID(), gateway: 'sluice archive erase', pid: process.pid }
    const leader = (await feed.leader()) ?? (await feed.lead(own, LEASE_MS))
    const others = progress.erased.filter((each) => each.accountId !== accountId)
    const erased = [...others, { accountId, untilMs }]
    const isSaved = await feed.save(leader.id, { ...progress, version: progress.version + 1, erased })
    if (leader.id === own.id) await feed.resign(own.id)
    if (isSaved) return
  }
  throw new ArchiveFailure('away', 'the gateway that moves entries changes its progress all the time')
}
