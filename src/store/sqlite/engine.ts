/**
 * One SQLite file that every process of a machine opens for itself: opening, reads, writes, and the sync that
 * makes a change survive a crash of the machine.
 *
 * Commits are not synced (`synchronous=NORMAL`): they survive the death of every process, and a crash of the
 * machine loses those since the last checkpoint, in order. `writeDurably` syncs the log before it resolves.
 */
import { open as openFile, mkdir } from 'node:fs/promises'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CannotOpen, storeReplaced, unavailable } from '../errors.js'
import type { StoreOptions } from '../store.js'
import { Background } from './background/background.js'
import { connect, isBusy, numberIn, textIn, type Connection, type Statement } from './driver.js'
import { ADD_ACCOUNT_SUMS } from './ledger/roll-up.js'
import { Transactions, type Hooks } from './transactions.js'

/** The smallest page of SQLite. */
const LEAST_BYTES = 512
/** 'SLUI', so that no other program's file is taken for ours. */
const APPLICATION_ID = 0x53_4c_55_49
/** The version of schema.sql. A newer program adds a step to `migrate` for each. */
const SCHEMA_VERSION = 5
/** How long opening waits for another process that writes. */
const OPEN_PATIENCE_MS = 10_000
/**
 * For reads that meet the recovery of a crash. A write that meets another process's lock waits on a timer
 * instead (transactions.ts), so that the event loop is held for no longer than this.
 */
const BUSY_MS = 2
/** While opening, the first of several processes recovers the log of a crash, and the others wait in SQLite. */
const PRAGMAS = `
  PRAGMA busy_timeout = ${OPEN_PATIENCE_MS};
  PRAGMA synchronous = NORMAL;
  PRAGMA foreign_keys = ON;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

/** Which store a file is. */
interface Identity {
  readonly id: string
  /** The file was made by this opening. */
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

  /** A statement of this connection. Throws what SQLite says of the text. */
  prepare(sql: string): Statement {
    return this.db.prepare(sql)
  }

  /** Called around every transaction. */
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

  /** See `Transactions.write`: what resolves survives the death of this process. */
  write<T>(what: string, job: () => T): Promise<T> {
    return this.transactions.write(what, job)
  }

  /** The same, and it survives a crash of the machine. */
  async writeDurably<T>(what: string, job: () => T): Promise<T> {
    const result = await this.transactions.write(what, job)
    try {
      await this.sync()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
    return result
  }

  /** Runs what waits, and lets go of the file. */
  async close(): Promise<void> {
    if (this.isClosed) return
    await this.transactions.close()
    this.isClosed = true
    await this.background.close()
    try {
      // Statements that are not collected yet keep the driver from closing the file, and so from doing this. Most is
      // copied while other processes write; only for the rest do they wait.
      this.db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      this.db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The disk is full, or another process writes: the log is copied by whoever opens the file next.
    }
    try {
      this.db.close()
    } catch (cause) {
      throw unavailable('closing the store failed', cause)
    }
  }

  /**
   * Syncs the log, on a thread of libuv. All that was committed before is on the disk then: in the log, or
   * in the file, if a checkpoint has come in between.
   */
  private async sync(): Promise<void> {
    // One that runs may have begun before the commit: the next one is needed.
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

/** SQLite takes a file that is shorter than its header for an empty one. It is not opened: that would drop locks. */
function assertSize(path: string): void {
  const { size } = statSync(path)
  if (size > 0 && size < LEAST_BYTES) throw new Error('it is not a database')
}

/** Makes an empty file for the owner alone: it will hold password hashes. SQLite gives its log the same mode. */
async function createFile(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    await (await openFile(path, 'wx', 0o600)).close()
  } catch (error) {
    // Another process was quicker.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Brings the tables to this version, in one transaction. Throws an Error that says what is wrong. */
async function migrate(db: Connection, expectedId: string | undefined): Promise<Identity> {
  await retried(() => db.exec('PRAGMA journal_mode = WAL'))
  await retried(() => db.exec('BEGIN IMMEDIATE'))
  try {
    const version = pragma(db, 'user_version')
    if (version > SCHEMA_VERSION) {
      throw new Error(`it was written by a newer version of sluice (schema ${version})`)
    }
    const isNew = version === 0
    if (isNew && expectedId !== undefined) throw storeReplaced('none')
    if (isNew) begin(db)
    else if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Error(FOREIGN)
    for (let from = version; from > 0 && from < SCHEMA_VERSION; from += 1) {
      db.exec(sqlOf(`migrations/to-version-${from + 1}.sql`))
    }
    if (version === 1) db.exec(ADD_ACCOUNT_SUMS)
    if (version !== SCHEMA_VERSION) db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    const row = db.prepare("SELECT value FROM meta WHERE name = 'store_id'").get()
    if (row === undefined) throw new Error('it has no id')
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
function begin(db: Connection): void {
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

/** Another process may be opening, or recovering, the same file. */
async function retried(step: () => void): Promise<void> {
  const endMs = performance.now() + OPEN_PATIENCE_MS
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
