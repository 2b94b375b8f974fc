/**
 * Whether the archive was restored from an older backup: its own table then names an earlier batch or
 * transfer of sums than the store, which writes each one there after its commit.
 */
import type { ArchiveProgress } from '../archive-feed.js'
import { Sql, type ArchiveEngine } from './archive-engine.js'
import { numberIn } from './columns.js'

/**
 * The progress with what was lost; null if nothing was. A leader that ends may not have written its last step
 * to that table: then the rows of the step tell. Transfers of sums that are missing do not count any
 * more: the sums of their hours, which the store still has, move again.
 */
export async function progressAfterRestore(
  engine: ArchiveEngine,
  values: ReadonlyMap<string, string>,
  progress: ArchiveProgress,
  nowMs: number,
): Promise<ArchiveProgress | null> {
  const number = (name: string) => Number(values.get(name) ?? '0')
  const [confirmed, round] = [number('confirmed'), number('round')]
  // Batches in files were confirmed while the archive was away.
  const expected = Math.min(progress.confirmed, ...progress.onDisk.map(({ from }) => from - 1))
  if (!values.has('store')) return null
  const lacksBatch =
    confirmed < expected - 1 || (confirmed < expected && !(await hasRows(engine, 'entries', expected)))
  const lacksSums =
    round < progress.round - 1 ||
    (round < progress.round &&
      !progress.abandoned.includes(progress.round) &&
      !(await hasRows(engine, 'hours', progress.round)))
  if (!lacksBatch && !lacksSums) return null
  const lost = Array.from({ length: Math.max(0, progress.round - round) }, (_, at) => round + 1 + at)
  const sql = new Sql(engine.is)
  const [row] = await engine.query(
    `SELECT ${engine.is.millis('max(at)')} AS last FROM ${engine.is.entries} WHERE batch <= ${sql.number(confirmed)}`,
    sql.parameters,
  )
  return {
    ...progress,
    abandoned: [...new Set([...progress.abandoned, ...lost])],
    sumsToMs: lost.length === 0 ? progress.sumsToMs : Math.min(progress.sumsToMs, number('sums_to')),
    sealing: null,
    lostToMs: nowMs,
    restored: lacksBatch
      ? { from: confirmed + 1, to: expected, sinceMs: numberIn(row, 'last') }
      : progress.restored,
  }
}

/** Whether the archive has a row of a batch of entries, or of a transfer of sums. */
async function hasRows(engine: ArchiveEngine, table: 'entries' | 'hours', number: number): Promise<boolean> {
  const sql = new Sql(engine.is)
  const [name] = engine.is[table].split(' ')
  const column = table === 'entries' ? 'batch' : 'seal'
  const rows = await engine.query(
    `SELECT ${column} FROM ${name ?? ''} WHERE ${column} = ${sql.number(number)} LIMIT 1`,
    sql.parameters,
  )
  return rows.length > 0
}

/** What an operator reads about a restored archive; null if it was not. */
export function restoredNotice({ restored }: Pick<ArchiveProgress, 'restored'>): string | null {
  if (restored === null) return null
  const { from, to, sinceMs } = restored
  const since = new Date(sinceMs).toISOString()
  return (
    `the archive was restored from an older backup: it lacks batches ${from} to ${to}, with entries after ${since}; ` +
    `'sluice archive backfill' writes those again that the store still has`
  )
}
