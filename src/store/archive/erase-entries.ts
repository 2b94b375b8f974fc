/**
 * Erases the entries of an account. It is recorded in the store first, so that reads leave the entries out at
 * once; then they are removed from the archive, and from the store when they leave it. Sums stay.
 */
import type { Store } from '../store.js'
import { ArchiveFailure, type ArchiveEngine } from './archive-engine.js'
import { changeProgress } from './change-progress.js'
import { timeText } from './columns.js'

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
  await changeProgress(store, 'sluice archive erase', (progress) => {
    const others = progress.erased.filter((each) => each.accountId !== accountId)
    return { ...progress, erased: [...others, { accountId, untilMs }] }
  })
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
