/**
 * A consistent copy of the store's file, made beside the processes that use it.
 */
import { existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { CannotOpen, unavailable } from '../failure.js'
import { connect, numberIn, type Connection } from '../../sqlite-driver.js'

/** How long a lock of another process is waited for. */
const PATIENCE_MS = 10_000

/** What the copy has, so that an operator sees that it is the right store. */
export interface Backup {
  readonly bytes: number
  readonly accounts: number
  readonly keys: number
  readonly entries: number
}

/**
 * Copies the store at `path` to `file`, which must not exist; its mode is 0600. The copy is checked and synced.
 * Rejects with `GatewayError(store_unavailable)`, and leaves no file then.
 */
export async function backupSqlite(path: string, file: string): Promise<Backup> {
  const what = `copying the store '${path}' failed`
  if (!existsSync(path)) throw unavailable(what, new CannotOpen(`'${path}' does not exist`))
  try {
    // For its owner alone from the start; SQLite takes an empty file for one that is not there.
    await (await open(file, 'wx', 0o600)).close()
  } catch (cause) {
    throw unavailable(what, cause)
  }
  try {
    const db = connect(path)
    db.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`)
    db.prepare('VACUUM INTO ?').run(file)
    db.close()
    const made = checked(file)
    await synced(file)
    return made
  } catch (cause) {
    await rm(file, { force: true })
    throw unavailable(what, cause)
  }
}

function checked(file: string): Backup {
  const db = connect(file)
  try {
    const verdict = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (verdict !== 'ok') throw new Error(`the copy is damaged: ${String(verdict)}`)
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

async function synced(file: string): Promise<void> {
  const copy = await open(file, 'r')
  try {
    await copy.sync()
  } finally {
    await copy.close()
  }
}
