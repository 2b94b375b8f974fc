/**
 * One LMDB environment: its tables, reads of one snapshot, and writes that are synced before they resolve.
 * Knows no table's contents.
 *
 * A write is one LMDB transaction, and its promise resolves after the commit has been synced to the
 * disk (`overlappingSync` off). Transactions are begun and committed off the event loop, so a
 * process that waits for another's lock, or for the disk, goes on serving.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import { damaged, quietly, reasonOf, unavailable } from './lmdb-failure.js'
import { assertLmdbFile } from './lmdb-file.js'
import { noTransaction, transact } from './lmdb-transaction.js'

/**
 * Address space, not disk: room for about two million keys. Fixed, because growing a map that
 * other processes have open is the least trodden path of the engine.
 */
const MAP_BYTES = 4 * 1024 ** 3
/** Processes and threads that read at once; the engine's own default is 126. */
const MAX_READERS = 512
/** Longer names cannot be keys of the engine (1,978 bytes), and none of ours comes near. */
const NAME = /^[^\0-\x20\x7f]{1,400}$/

/** A key of a table. */
export type Place = string | number | (string | number)[]

/** Whether the engine can keep something under this name. */
export function isName(text: string): boolean {
  return NAME.test(text)
}

/** An open environment. Every failure is a `GatewayError(store_unavailable)`. */
export class LmdbEngine {
  private readonly root: RootDatabase<string>
  private isClosed = false
  /** Called after each write of this process. */
  onWritten: (() => void) | null = null

  private constructor(root: RootDatabase<string>) {
    this.root = root
  }

  /** Opens, and creates where it is not there, the environment in a folder (mode 0700: it holds hashes). */
  static async open(path: string): Promise<LmdbEngine> {
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      await assertLmdbFile(join(path, 'data.mdb'))
      await noTransaction()
      const root = open<string>({
        path,
        noSubdir: false,
        encoding: 'string',
        overlappingSync: false,
        // Batching makes promises of its own that nobody can catch: a full disk then ended the process.
        eventTurnBatching: false,
        mapSize: MAP_BYTES,
        maxReaders: MAX_READERS,
        maxDbs: 24,
      })
      return new LmdbEngine(root)
    } catch (cause) {
      throw unavailable(`opening the store in '${path}' failed`, cause)
    }
  }

  table(name: string): Database<string> {
    return this.root.openDB<string>(name, { encoding: 'string' })
  }

  read<T>(what: string, action: () => T): Promise<T> {
    // A promise in every case: a caller with `.catch` must not be surprised by a throw.
    return new Promise((resolve) => resolve(this.readNow(what, action)))
  }

  readNow<T>(what: string, action: () => T): T {
    try {
      this.assertOpen()
      // Otherwise a read may see the snapshot of an earlier one in the same turn of the loop.
      this.root.resetReadTxn()
      return action()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /**
   * One transaction, synced when this resolves. Every rule is checked and every text is made before
   * the first `put`, because an exception does not undo the puts before it.
   */
  async write<T>(what: string, action: () => T): Promise<T> {
    let result: T
    try {
      this.assertOpen()
      result = await transact(this.root, action)
    } catch (cause) {
      throw unavailable(`${what} failed`, await reasonOf(cause))
    }
    this.onWritten?.()
    return result
  }

  /** What was written and synced stays; every later question fails. */
  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    try {
      await this.root.close()
    } catch (cause) {
      throw unavailable('closing failed', cause)
    }
  }

  private assertOpen(): void {
    if (this.isClosed) throw new Error('the store has been closed')
  }
}

/** Inside a transaction a put has happened when it returns; its promise is that of the commit. */
export function put(table: Database<string>, key: Place, text: string): void {
  quietly(table.put(key, text))
}

/** The same for taking away. */
export function remove(table: Database<string>, key: Place): void {
  quietly(table.remove(key))
}

/** What `read` makes of a record; an Error that says which is damaged, and how. */
export function intact<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(what, cause instanceof Error ? cause.message : String(cause))
  }
}
