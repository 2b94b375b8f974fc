/**
 * Checkpoints: copies the write-ahead log into the database file. They wait for the disk, so they run in the background
 * thread.
 */
import { numberIn, type Connection } from '../driver.js'

/** Frames of the log (4 KiB each) from which on a checkpoint makes writers wait: 64 MiB. */
const LONG_LOG = 16_384

/**
 * Copies the log. Beside running writers a passive checkpoint never reaches the end of the log, which would grow
 * without limit: once the log is long, writers wait while its last pages are copied, so that it starts again.
 */
export function checkpoint(db: Connection): void {
  const row = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
  if (row === undefined || numberIn(row, 'log') < LONG_LOG) return
  db.prepare('PRAGMA wal_checkpoint(RESTART)').get()
}
