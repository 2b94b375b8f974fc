/**
 * A lock on a file that ends with its process, also after a crash. It is SQLite's lock on a database: the
 * kernel keeps it with the open file, so it is valid across PID namespaces, in contrast to process ids. The
 * file stays empty.
 */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { connect, isBusy, type Connection } from '../store/sqlite/driver.js'

/** A lock that this process holds. */
export class OwnerLock {
  private readonly path: string
  private readonly database: Connection

  private constructor(path: string, database: Connection) {
    this.path = path
    this.database = database
  }

  /**
   * Takes the lock, and creates its file (mode 0600) if it is missing. Null if another process holds it.
   * Throws if the file cannot be created or opened.
   */
  static take(path: string): OwnerLock | null {
    // SQLite would create the file with the mode of the umask. The file is closed before SQLite opens it,
    // because closing it later would release the lock.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    const database = connect(path)
    try {
      database.exec(
        'PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE',
      )
      return new OwnerLock(path, database)
    } catch (error) {
      database.close()
      if (isBusy(error)) return null
      throw error
    }
  }

  /** Releases the lock. `isOver`: no process needs the file any more, so it is removed. */
  release(isOver: boolean): void {
    // Removed while the lock is held, so that no other process can lock a file that does not exist any more.
    if (isOver) rmSync(this.path, { force: true })
    this.database.close()
  }
}
