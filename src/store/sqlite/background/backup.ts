/**
 * A consistent copy of the store's file, made while processes use it.
 */
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import { isObject } from '../../../chat/json.js'
import { CannotOpen, unavailable } from '../../errors.js'
import { connect, numberIn, type Connection } from '../driver.js'

/** Time between progress reports. */
const PROGRESS_MS = 2_000

/** The workerData of the thread. */
export interface CopyOrder {
  readonly path: string
  readonly file: string
}

/** Whether the value is the workerData of the thread. */
export function isCopyOrder(value: unknown): value is CopyOrder {
  return isObject(value) && typeof value['path'] === 'string' && typeof value['file'] === 'string'
}

/** The content of the copy, which shows an operator whether it is the right store. */
export interface Backup {
  readonly bytes: number
  readonly accounts: number
  readonly keys: number
  readonly entries: number
}

/** Called every two seconds with the bytes copied and the size of the store; the copy may be smaller. */
export type CopyProgress = (copiedBytes: number, storeBytes: number) => void

/**
 * Copies the store at `path` to `file`, which must not exist; its mode is 0600. The copy is checked and synced.
 * Rejects with `GatewayError(store_unavailable)` and removes the file then.
 */
export async function backupSqlite(
  path: string,
  file: string,
  progress: CopyProgress = () => undefined,
): Promise<Backup> {
  const what = `copying the store '${path}' failed`
  if (!existsSync(path)) throw unavailable(what, new CannotOpen(`'${path}' does not exist`))
  try {
    // Only its owner may read the copy. SQLite accepts an empty file as a new one.
    await (await open(file, 'wx', 0o600)).close()
  } catch (cause) {
    throw unavailable(what, cause)
  }
  try {
    await copy({ path, file }, progress)
    const made = check(file)
    await sync(file)
    return made
  } catch (cause) {
    await rm(file, { force: true })
    throw unavailable(what, cause)
  }
}

async function copy(order: CopyOrder, progress: CopyProgress): Promise<void> {
  const worker = new Worker(new URL('./backup-worker.js', import.meta.url), { workerData: order })
  const timer = setInterval(() => {
    progress(statSync(order.file).size, statSync(order.path).size)
  }, PROGRESS_MS)
  try {
    // Rejects with the error of the thread.
    await once(worker, 'message')
  } finally {
    clearInterval(timer)
    await worker.terminate()
  }
}

function check(file: string): Backup {
  const db = connect(file)
  try {
    const result = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (result !== 'ok') throw new Error(`the copy is damaged: ${String(result)}`)
    const [pages, pageBytes] = [pragma(db, 'page_count'), pragma(db, 'page_size')]
    return {
      bytes: pages * pageBytes,
      accounts: count(db, 'accounts'),
      keys: count(db, 'keys'),
      entries: count(db, 'ledger_entries'),
    }
  } finally {
    db.close()
  }
}

function pragma(db: Connection, name: 'page_count' | 'page_size'): number {
  const row = db.prepare(`PRAGMA ${name}`).get()
  return row === undefined ? 0 : numberIn(row, name)
}

function count(db: Connection, table: 'accounts' | 'keys' | 'ledger_entries'): number {
  const row = db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()
  return row === undefined ? 0 : numberIn(row, 'rows')
}

async function sync(file: string): Promise<void> {
  const copy = await open(file, 'r')
  try {
    await copy.sync()
  } finally {
    await copy.close()
  }
}
