/**
 * A lock on a file that ends with the process that holds it, however it ends. It is SQLite's lock on a database: the
 * kernel keeps it with the open file, so it is valid across PID namespaces, which process ids are not
 * (docs/decisions/0042). Nothing is ever written to the file.
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
   * Takes the lock, and creates its file (mode 0600) if it is missing. Null when another holder has it. Throws when
   * the file cannot be created or opened.
   */
  static take(path: string): OwnerLock | null {
    // SQLite would create it with the umask's mode. Closing it later than that would end the lock.
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

  /** Lets others take it; `isOver` removes the file, which then must have no further use. */
  release(isOver: boolean): void {
    // While the lock is held, so that nobody has it who believes that it is still there.
    if (isOver) rmSync(this.path, { force: true })
    this.database.close()
  }
}
