/**
 * Creates the tables of a new store and migrates those of an older version, from schema.sql and migrations/.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { programFile } from '../../config/package-file.js'
import { storeReplaced } from '../store-errors.js'
import { isBusy, isReadOnly, numberIn, textIn, type Connection } from './driver.js'
import { nameAccounts } from './keys/name-accounts.js'
import { createEntryViews } from './ledger/former-entries.js'
import { addPropertySums } from './ledger/roll-up.js'

/** 'SLUI'; a file of another program has another id. */
const APPLICATION_ID = 0x53_4c_55_49
/** The version of schema.sql. Each version after that of the first release has a file in migrations/. */
const SCHEMA_VERSION = 10
/** The version of the first release, 0.1.0. */
const FIRST_VERSION = 6
/** Maximum time that opening waits for another process that writes. */
export const OPEN_TIMEOUT_MS = 10_000

export interface Identity {
  readonly id: string
  /** This call created the store. */
  readonly isNew: boolean
}

/** Creates or migrates the tables in one transaction. Throws an Error if the file is not a store. */
export async function migrate(db: Connection, expectedId: string | undefined): Promise<Identity> {
  await retryWhileBusy(() => execUnlessReadOnly(db, 'PRAGMA journal_mode = WAL', 'PRAGMA journal_mode'))
  await retryWhileBusy(() => execUnlessReadOnly(db, 'BEGIN IMMEDIATE', 'BEGIN'))
  try {
    const version = pragma(db, 'user_version')
    if (version > SCHEMA_VERSION) {
      throw new Error(`it was written by a newer version of sluice (schema ${version})`)
    }
    const isNew = version === 0
    if (isNew && expectedId !== undefined) throw storeReplaced('none')
    if (isNew) createTables(db)
    else if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Error(FOREIGN)
    else if (version < FIRST_VERSION) throw new Error(`${UNRELEASED} (schema ${version})`)
    for (let from = version; from > 0 && from < SCHEMA_VERSION; from += 1) {
      db.exec(sqlOf(`migrations/to-version-${from + 1}.sql`))
    }
    if (version > 0 && version < 7) {
      nameAccounts(db)
      addPropertySums(db)
    }
    if (version !== SCHEMA_VERSION) db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    const row = db.prepare("SELECT value FROM meta WHERE name = 'store_id'").get()
    if (row === undefined) throw new Error('its id is missing')
    const id = textIn(row, 'value')
    if (expectedId !== undefined && id !== expectedId) throw storeReplaced('another')
    db.exec('COMMIT')
    return { id, isNew }
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

/** A store that cannot be written has to be current: its first change throws SQLite's error. */
function execUnlessReadOnly(db: Connection, sql: string, elseSql: string): void {
  try {
    db.exec(sql)
  } catch (error) {
    if (!isReadOnly(error)) throw error
    db.exec(elseSql)
  }
}

/** Whether the store has the current version. */
export function isCurrent(db: Connection): boolean {
  return pragma(db, 'user_version') === SCHEMA_VERSION
}

const FOREIGN = 'it is a database of another program'
const UNRELEASED = 'it was written before the first release of sluice, 0.1.0'

/** Only inside a transaction. */
function createTables(db: Connection): void {
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() ?? {}
  if (tables !== 0) throw new Error(FOREIGN)
  db.exec(sqlOf('schema.sql'))
  createEntryViews(db)
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  const insert = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)')
  insert.run('store_id', randomBytes(9).toString('base64url'))
  insert.run('counted_seq', '0')
}

function sqlOf(file: 'schema.sql' | `migrations/to-version-${number}.sql`): string {
  return readFileSync(programFile(`store/sqlite/${file}`), 'utf8')
}

function pragma(db: Connection, name: 'user_version' | 'application_id'): number {
  const row = db.prepare(`PRAGMA ${name}`).get()
  return row === undefined ? 0 : numberIn(row, name)
}

/** Repeats a step while another process opens or recovers the same file. */
async function retryWhileBusy(step: () => void): Promise<void> {
  const endMs = performance.now() + OPEN_TIMEOUT_MS
  for (;;) {
    try {
      step()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > endMs) throw error
      await sleep(5)
    }
  }
}
