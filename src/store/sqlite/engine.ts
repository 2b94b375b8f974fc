/**
 * One SQLite file, which every process of a machine opens: opening, reads, writes and syncs.
 *
 * Commits are not synced (`synchronous=NORMAL`): they survive a kill of every process, and a crash of the machine loses
 * the last commits since the last checkpoint. `writeDurably` syncs the log before it resolves.
 */
import { open as openFile } from 'node:fs/promises'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFolder } from '../../files/create-folder.js'
import { CannotOpen, storeReplaced, unavailable } from '../errors.js'
import type { StoreOptions } from '../store.js'
import { Background } from './background/background.js'
import { connect, isBusy, numberIn, textIn, type Connection, type Statement } from './driver.js'
import { ADD_ACCOUNT_SUMS } from './ledger/roll-up.js'
import { Transactions, type Hooks } from './transactions.js'

/** The smallest page of SQLite. */
const LEAST_BYTES = 512
/** 'SLUI'; a file of another program has another id. */
const APPLICATION_ID = 0x53_4c_55_49
/** The version of schema.sql. Each version after the first has a file in migrations/. */
const SCHEMA_VERSION = 5
/** Maximum time that opening waits for another process that writes. */
const OPEN_TIMEOUT_MS = 10_000
/**
 * Maximum time that a statement waits for a lock and blocks the event loop: a read during the recovery of a crash. A
 * write waits on a timer (transactions.ts).
 */
const BUSY_MS = 2
/** While they open a file after a crash, one of several processes recovers the log and the others wait in SQLite. */
const PRAGMAS = `
  PRAGMA busy_timeout = ${OPEN_TIMEOUT_MS};
  PRAGMA synchronous = NORMAL;
  PRAGMA foreign_keys = ON;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

/** The identity of a store. */
interface Identity {
  readonly id: string
  /** This call created the store. */
  readonly isNew: boolean
}

/** Open until `close`. */
export class Engine {
  readonly id: string
  readonly isNew: boolean
  readonly background: Background
  private readonly db: Connection
  private readonly path: string
  private readonly transactions: Transactions
  private readonly hooks: Hooks[] = []
  private syncing: Promise<void> | null = null
  private isClosed = false

  private constructor(db: Connection, path: string, { id, isNew }: Identity) {
    this.db = db
    this.path = path
    this.id = id
    this.isNew = isNew
    this.transactions = new Transactions(db, {
      begun: () => this.hooks.forEach((hook) => hook.begun()),
      committing: () => this.hooks.forEach((hook) => hook.committing()),
      rolledBack: () => this.hooks.forEach((hook) => hook.rolledBack()),
    })
    this.background = new Background(path, () => this.transactions.committed)
  }

  /** Opens the file, and creates it unless `mustExist`. Rejects with `GatewayError(store_unavailable)`. */
  static async open(path: string, options: StoreOptions): Promise<Engine> {
    const isThere = existsSync(path)
    if (options.expectedId !== undefined && !isThere) throw storeReplaced('none', path)
    if (options.mustExist === true && !isThere) {
      throw unavailable('opening the store failed', new CannotOpen(`'${path}' does not exist`))
    }
    let db: Connection | null = null
    try {
      if (isThere) assertSize(path)
      else await createFile(path)
      db = connect(path)
      db.exec(PRAGMAS)
      const identity = await migrate(db, options.expectedId)
      db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
      return new Engine(db, path, identity)
    } catch (cause) {
      db?.close()
      if (cause instanceof Error && cause.name === 'GatewayError') throw cause
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw unavailable(`opening '${path}' failed`, new CannotOpen(reason, { cause }))
    }
  }

  /** A statement of this connection. Throws the error of SQLite. */
  prepare(sql: string): Statement {
    return this.db.prepare(sql)
  }

  /** Adds callbacks around every transaction. */
  hook(hooks: Hooks): void {
    this.hooks.push(hooks)
  }

  /** Reads at once. Throws `GatewayError(store_unavailable)`. */
  readNow<T>(what: string, read: () => T): T {
    if (this.isClosed) throw unavailable(`${what} failed`, new Error('the store has been closed'))
    try {
      return read()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /** The same as a promise. */
  read<T>(what: string, read: () => T): Promise<T> {
    return new Promise((resolve) => resolve(this.readNow(what, read)))
  }

  /** See `Transactions.write`. A write that resolved survives a kill of the process. */
  write<T>(what: string, job: () => T): Promise<T> {
    return this.transactions.write(what, job)
  }

  /** The same, but a write that resolved survives a crash of the machine, too. */
  async writeDurably<T>(what: string, job: () => T): Promise<T> {
    const result = await this.transactions.write(what, job)
    try {
      await this.sync()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
    return result
  }

  /** Runs waiting writes and closes the file. */
  async close(): Promise<void> {
    if (this.isClosed) return
    await this.transactions.close()
    this.isClosed = true
    await this.background.close()
    try {
      // SQLite does this when a file is closed, but statements that are not garbage-collected yet keep it open. The
      // first statement copies most of the log while other processes write; they wait only for the second.
      this.db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      this.db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The disk is full, or another process writes: the next process that opens the file copies the log.
    }
    try {
      this.db.close()
    } catch (cause) {
      throw unavailable('closing the store failed', cause)
    }
  }

  /**
   * Syncs the log on a thread of libuv. Earlier commits are on the disk then: in the log, or in the file if a
   * checkpoint ran in between.
   */
  private async sync(): Promise<void> {
    // A running sync may have begun before the commit.
    if (this.syncing !== null) await this.syncing.catch(() => undefined)
    this.syncing ??= syncFile(`${this.path}-wal`).finally(() => (this.syncing = null))
    await this.syncing
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await openFile(path, 'r')
  try {
    await file.datasync()
  } finally {
    await file.close()
  }
}

/**
 * Throws an Error for a file that is shorter than its header, which SQLite would treat as empty. Opening the file to
 * look at it, and closing it, would drop the locks of this process.
 */
function assertSize(path: string): void {
  const { size } = statSync(path)
  if (size > 0 && size < LEAST_BYTES) throw new Error('it is not a database')
}

/** Creates an empty file that only its owner may read, for password hashes. SQLite gives the log the same mode. */
async function createFile(path: string): Promise<void> {
  try {
    createFolder(dirname(path))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const advice = 'set "store" to a file in a folder that the gateway\'s user can write to'
    throw new Error(`${reason}: ${advice}`, { cause: error })
  }
  try {
    await (await openFile(path, 'wx', 0o600)).close()
  } catch (error) {
    // Another process created it first.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Creates or migrates the tables in one transaction. Throws an Error if the file is not a store. */
async function migrate(db: Connection, expectedId: string | undefined): Promise<Identity> {
  await retryWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
  await retryWhileBusy(() => db.exec('BEGIN IMMEDIATE'))
  try {
    const version = pragma(db, 'user_version')
    if (version > SCHEMA_VERSION) {
      throw new Error(`it was written by a newer version of sluice (schema ${version})`)
    }
    const isNew = version === 0
    if (isNew && expectedId !== undefined) throw storeReplaced('none')
    if (isNew) createTables(db)
    else if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Error(FOREIGN)
    for (let from = version; from > 0 && from < SCHEMA_VERSION; from += 1) {
      db.exec(sqlOf(`migrations/to-version-${from + 1}.sql`))
    }
    if (version === 1) db.exec(ADD_ACCOUNT_SUMS)
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

const FOREIGN = 'it is a database of another program'

/** Only inside a transaction. */
function createTables(db: Connection): void {
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() ?? {}
  if (tables !== 0) throw new Error(FOREIGN)
  db.exec(sqlOf('schema.sql'))
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  const insert = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)')
  insert.run('store_id', randomBytes(9).toString('base64url'))
  insert.run('counted_seq', '0')
}

function sqlOf(file: 'schema.sql' | `migrations/to-version-${number}.sql`): string {
  return readFileSync(new URL(`./${file}`, import.meta.url), 'utf8')
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
