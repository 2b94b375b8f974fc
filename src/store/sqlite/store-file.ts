/** The file of a store: checks before it is opened, and a watch for its removal while it is open. */
import { chmodSync, realpathSync, statSync, type Stats } from 'node:fs'
import { LostStore } from '../errors.js'

/** The smallest page of SQLite. */
const LEAST_BYTES = 512
const OTHERS = 0o077
const WATCH_MS = 250

/**
 * Makes the file, its log and its index private to their user. SQLite creates the log with the mode of the
 * file. Files of another user are left unchanged.
 */
export function makeFilesPrivate(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const mode = statOf(file)?.mode ?? 0
    if ((mode & OTHERS) === 0) continue
    try {
      chmodSync(file, mode & 0o600)
    } catch {
      // `serve` warns of it (files/private-files.ts).
    }
  }
}

/**
 * Throws an Error for what is not a file, and for a file that is shorter than its header, which SQLite would
 * treat as empty. Opening the file to look at it, and closing it, would drop the locks of this process.
 */
export function assertFile(path: string): void {
  const stats = statSync(path)
  if (stats.isDirectory()) throw new Error('it is a folder: name a file in it')
  if (!stats.isFile()) throw new Error('it is not a regular file')
  if (stats.size > 0 && stats.size < LEAST_BYTES) throw new Error('it is not a database')
}

/**
 * Watches an open file. Once its name is gone or belongs to another file, writes to it would be lost, and
 * changes by other processes would not be noticed.
 */
export class StoreFile {
  /** Without symbolic links, so that the files beside it are found. */
  readonly path: string
  /** Set while the file is not at its path. */
  lost: LostStore | null = null
  private readonly opened: Stats
  private readonly timer: NodeJS.Timeout

  /** The file must be open. */
  constructor(path: string) {
    this.path = realpathSync(path)
    this.opened = statSync(this.path)
    this.timer = setInterval(() => this.check(), WATCH_MS).unref()
  }

  close(): void {
    clearInterval(this.timer)
  }

  private check(): void {
    const now = statOf(this.path)
    const isSame = now?.ino === this.opened.ino && now.dev === this.opened.dev
    this.lost = isSame
      ? null
      : new LostStore(`'${this.path}' ${now === undefined ? GONE : REPLACED}`)
  }
}

const RESTART = 'while the gateway runs: restore it if needed and restart the gateway'
const GONE = `was removed ${RESTART}`
const REPLACED = `was replaced ${RESTART}`

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}
