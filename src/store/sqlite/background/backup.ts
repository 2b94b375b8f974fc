/**
 * A consistent copy of the store's file, made while processes use it.
 */
import { existsSync, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { GatewayError } from '../../../errors.js'
import { CannotCopy, CannotOpen, missing, reasonOf, unavailable } from '../../store-errors.js'
import { connect, type Connection } from '../driver.js'
import { dropReservations } from '../limits/drop-reservations.js'
import { numberOf } from '../read-records.js'
import { isCurrent } from '../migrate.js'
import { Background } from './background.js'

/** Time between progress reports. */
const PROGRESS_MS = 2_000

/** The content of the copy, which shows an operator whether it is the right store. */
interface Backup {
  readonly bytes: number
  readonly accounts: number
  readonly keys: number
  readonly entries: number
}

/** Called every two seconds with the bytes copied and the size of the store; the copy may be smaller. */
type CopyProgress = (copiedBytes: number, storeBytes: number) => void

/**
 * Copies the store at `path` to `file`, which must not exist; its mode is 0600. The copy has no running
 * requests, and is checked and synced. Rejects with `GatewayError(store_unavailable)` and removes the file
 * then.
 */
export async function backupSqlite(
  path: string,
  file: string,
  progress: CopyProgress = () => undefined,
): Promise<Backup> {
  const what = `copying the store '${path}'`
  if (!existsSync(path)) throw unavailable(`${what} failed`, new CannotOpen(missing(path)))
  try {
    // Only its owner may read the copy. SQLite accepts an empty file as a new one.
    await (await open(file, 'wx', 0o600)).close()
  } catch (cause) {
    throw cannotCopy(file, cause)
  }
  const background = new Background(path, { committed: () => 0, hold: () => undefined })
  const timer = setInterval(() => progress(statSync(file).size, statSync(path).size), PROGRESS_MS)
  try {
    await background.run(what, 'copyTo', file)
    const made = check(file)
    await sync(file)
    return made
  } catch (cause) {
    await rm(file, { force: true })
    // Copying writes nothing into the store.
    if (/disk is full|ENOSPC/.test(reasonOf(cause))) throw cannotCopy(file, new Error('the disk is full'))
    throw cause instanceof GatewayError ? cause : unavailable(`${what} failed`, cause)
  } finally {
    clearInterval(timer)
    await background.close()
  }
}

function cannotCopy(file: string, cause: unknown): GatewayError {
  return unavailable(`writing '${file}' failed`, new CannotCopy(reasonOf(cause), { cause }))
}

function check(file: string): Backup {
  const db = connect(file)
  try {
    const result = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (result !== 'ok') throw new Error(`the copy is damaged: ${String(result)}`)
    // A store of an earlier version stays one, for the program of that version.
    if (isCurrent(db)) dropReservations(db, Date.now())
    return {
      bytes: statSync(file).size,
      accounts: count(db, 'accounts'),
      keys: count(db, 'keys'),
      entries: count(db, 'ledger_entries'),
    }
  } finally {
    db.close()
  }
}

function count(db: Connection, table: 'accounts' | 'keys' | 'ledger_entries'): number {
  return numberOf(db.prepare(`SELECT count(*) AS n FROM ${table}`).get())
}

async function sync(file: string): Promise<void> {
  const copy = await open(file, 'r')
  try {
    await copy.sync()
  } finally {
    await copy.close()
  }
}
