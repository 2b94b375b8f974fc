/**
 * A lock on a file that ends with the process that holds it, however it ends. It is SQLite's lock on a database: the
 * kernel keeps it with the open file, so it is valid across PID namespaces, which process ids are not
 * (docs/decisions/0042). Nothing is ever written to the file.
 */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import type * as Sqlite from '@photostructure/sqlite'

type Database = InstanceType<typeof Sqlite.DatabaseSync>

const require = createRequire(import.meta.url)

/** A lock that this process holds. */
export class OwnerLock {
  private readonly path: string
  private readonly database: Database

  private constructor(path: string, database: Database) {
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
    const database = new (sqlite().DatabaseSync)(path)
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

/** Loaded when the first lock is needed: 10 ms and 4 MB that a gateway with a working store never pays. */
function sqlite(): typeof Sqlite {
  return require('@photostructure/sqlite') as typeof Sqlite
}

/** `SQLITE_BUSY`, alone or with an extended code. */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  return typeof error.errcode === 'number' && (error.errcode & 0xff) === 5
}
