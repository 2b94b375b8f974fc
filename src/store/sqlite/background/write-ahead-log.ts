/**
 * Keeps the write-ahead log short. Beside running writers a passive checkpoint never reaches the end of the
 * log, which would grow without limit: once it is long, writers wait while its last pages are copied, so that
 * it starts again and its file is cut. A reader that needs the log prevents that until it has ended.
 */
import { statSync } from 'node:fs'
import { numberIn, type Connection } from '../driver.js'

/** A log of this size starts again. */
export const LONG_LOG_BYTES = 64 * 1024 * 1024
/** Time between checkpoints while transactions are committed. */
export const CHECKPOINT_MS = 2_000
/** From this many long logs on, writes of the process wait for a checkpoint, for the next time at most. */
export const LONG_LOGS = 3
export const MOST_HOLD_MS = 1_000
const PAGE_BYTES = 4_096
/** Pages that are copied while writers wait. */
const LAST_PAGES = 2_048
/** Copies beside writers before they have to wait. */
const MOST_COPIES = 4
/** Time that writers may wait for readers. SQLite holds the lock of writers meanwhile. */
const RESTART_MS = 250
/** Time between two attempts between the transactions of a task. */
const RETRY_MS = 500

/** For each connection that writes: the file is cut to this size when the log starts again. */
export function cutsLog(longBytes: number): string {
  return `PRAGMA journal_size_limit = ${longBytes};`
}

/** The size of the log's file in bytes. */
export function logBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

/** The log of one file, for the background thread. */
export class WriteAheadLog {
  private readonly db: Connection
  private readonly path: string
  private readonly longBytes: number
  private readonly busyMs: number
  private lastMs = -Infinity

  /** `busyMs`: the `busy_timeout` of the connection. */
  constructor(db: Connection, path: string, { longBytes, busyMs }: { longBytes: number; busyMs: number }) {
    this.db = db
    this.path = path
    this.longBytes = longBytes
    this.busyMs = busyMs
  }

  /** Copies the log if it is long: for tasks of many transactions, which no other task interrupts. */
  betweenWrites(): void {
    const isDue = performance.now() - this.lastMs >= RETRY_MS
    if (isDue && logBytes(this.path) > this.longBytes) this.copy()
  }

  /** Copies the log into the file, which waits for the disk. */
  copy(): void {
    let before = -1
    for (let copies = 0; copies < MOST_COPIES; copies += 1) {
      const { log, copied } = this.checkpoint('PASSIVE')
      this.lastMs = performance.now()
      if (log * PAGE_BYTES < this.longBytes) return
      if (log - copied < LAST_PAGES) break
      // A reader needs the pages that follow: the wait of writers would not help.
      if (copied === before) return
      before = copied
    }
    this.db.exec(`PRAGMA busy_timeout = ${RESTART_MS}`)
    try {
      this.checkpoint('RESTART')
    } finally {
      this.db.exec(`PRAGMA busy_timeout = ${this.busyMs}`)
    }
  }

  private checkpoint(mode: 'PASSIVE' | 'RESTART'): { readonly log: number; readonly copied: number } {
    const row = this.db.prepare(`PRAGMA wal_checkpoint(${mode})`).get()
    if (row === undefined) return { log: 0, copied: 0 }
    return { log: numberIn(row, 'log'), copied: numberIn(row, 'checkpointed') }
  }
}
