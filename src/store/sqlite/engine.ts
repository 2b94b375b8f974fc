/**
 * One SQLite file, which every process of a machine opens: opening, reads, writes and syncs.
 *
 * Commits are not synced (`synchronous=NORMAL`): they survive a kill of every process, and a crash of the
 * machine loses the last commits since the last checkpoint. `writeDurably` syncs the log before it resolves.
 */
import { existsSync, chmodSync, realpathSync, statSync, type Stats } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFolder } from '../../base/private-files.js'
import { accessProblem } from '../../base/file-access.js'
import { CannotOpen, missing, storeReplaced, unavailable, LostStore } from '../store-errors.js'
import type { StoreOptions } from '../store.js'
import { Background } from './background/background.js'
import { cutsLog, LONG_LOG_BYTES } from './background/write-ahead-log.js'
import { isBusy, isReadOnly, type Connection, type Statement, type Statements } from './driver.js'
import { migrate, OPEN_TIMEOUT_MS, type Identity } from './migrate.js'
import {
  CLOSED,
  freeStatements,
  isChanged,
  mayWriteFiles,
  openToRead,
  REOPEN_MS,
  ReplaceableStatement,
  writableConnection,
  type FileVersion,
  type Opened,
} from './reopen.js'

/**
 * Maximum time that a statement waits for a lock and blocks the event loop: a read during the recovery of a
 * crash. A write waits on a timer.
 */
const BUSY_MS = 2
/**
 * While they open a file after a crash, one of several processes recovers the log and the others wait in
 * SQLite.
 */
const PRAGMAS = `
  PRAGMA busy_timeout = ${OPEN_TIMEOUT_MS};
  PRAGMA synchronous = NORMAL;
  PRAGMA foreign_keys = ON;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const ENDS_OPENING = `PRAGMA busy_timeout = ${BUSY_MS};`

/** Open until `close`. */
export class Engine implements Statements {
  readonly id: string
  readonly isNew: boolean
  readonly background: Background
  private db: Connection
  private unchanging: FileVersion | null
  private readonly file: StoreFile
  private readonly transactions: Transactions
  private readonly hooks: Hooks[] = []
  private readonly statements = new Map<string, ReplaceableStatement>()
  private readonly pragmas: string
  private reopenedAtMs = Number.NEGATIVE_INFINITY
  private syncing: Promise<void> | null = null
  /** Until all connections were replaced. */
  private reopening: Promise<void> | null = null
  /** While there is no connection; at most a second. */
  private gap: Promise<void> | null = null
  private isClosed = false

  private constructor(opened: Opened, path: string, { id, isNew }: Identity, longBytes: number) {
    this.db = opened.db
    this.unchanging = opened.unchanging
    this.file = new StoreFile(path)
    this.id = id
    this.isNew = isNew
    this.pragmas = PRAGMAS + cutsLog(longBytes) + ENDS_OPENING
    this.transactions = new Transactions(this, {
      begun: () => this.hooks.forEach((hook) => hook.begun()),
      committing: () => this.hooks.forEach((hook) => hook.committing()),
      rolledBack: () => this.hooks.forEach((hook) => hook.rolledBack()),
      reopen: () => this.reopen(),
    })
    const writer = {
      committed: () => this.transactions.committed,
      hold: (until: Promise<unknown>) => this.transactions.hold(until),
    }
    this.background = new Background(this.file.path, writer, longBytes)
  }

  /** Opens the file, and creates it unless `mustExist`. Rejects with `GatewayError(store_unavailable)`. */
  static async open(path: string, options: StoreOptions, longBytes = LONG_LOG_BYTES): Promise<Engine> {
    const isThere = existsSync(path)
    const hidden = isThere ? null : accessProblem(dirname(path), 'read')
    if (hidden !== null) throw unavailable('opening the store failed', new CannotOpen(hidden))
    if (options.expectedId !== undefined && !isThere) throw storeReplaced('none', path)
    if (options.mustExist === true && !isThere) {
      throw unavailable('opening the store failed', new CannotOpen(missing(path)))
    }
    let opened: Opened | null = null
    try {
      if (isThere) assertFile(path)
      else await createFile(path)
      makeFilesPrivate(path)
      opened = openToRead(path, PRAGMAS + cutsLog(longBytes))
      const identity = await migrate(opened.db, options.expectedId)
      opened.db.exec(ENDS_OPENING)
      return new Engine(opened, path, identity, longBytes)
    } catch (cause) {
      opened?.db.close()
      if (cause instanceof Error && cause.name === 'GatewayError') throw cause
      const problem = accessProblem(path, 'write')
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw unavailable(
        `opening '${path}' failed`,
        new CannotOpen(problem === null ? reason : `${reason}: ${problem}`, { cause }),
      )
    }
  }

  /** The statement of this connection, prepared once for each SQL text. Throws the error of SQLite. */
  prepare(sql: string): Statement {
    const prepared = this.statements.get(sql)
    if (prepared !== undefined) return prepared
    const statement = new ReplaceableStatement(this.db.prepare(sql))
    this.statements.set(sql, statement)
    return statement
  }

  /** Replaces a connection that is read-only, if the file can be written now. */
  private reopen(): boolean {
    const nowMs = performance.now()
    const isLost = this.isClosed || this.file.lost !== null || this.reopening !== null
    if (isLost || nowMs - this.reopenedAtMs < REOPEN_MS) return false
    this.reopenedAtMs = nowMs
    const { db: former, unchanging } = this
    if (unchanging !== null) {
      if (isChanged(this.file.path, unchanging)) this.reopening = this.reopenAlone()
      return false
    }
    const db = writableConnection(this.file.path, this.pragmas)
    if (db === null) {
      if (mayWriteFiles(this.file.path)) this.reopening = this.reopenAlone()
      return false
    }
    this.use(db)
    former.close()
    return true
  }

  /** Closes all connections and opens another: while there is one, the index of the log is read-only. */
  private async reopenAlone(): Promise<void> {
    const reopened = this.background.pause(async () => {
      for (const statement of this.statements.values()) statement.replace(CLOSED)
      this.db.close()
      this.gap = Promise.race([reopened, sleep(REOPEN_MS)]).finally(() => (this.gap = null))
      await freeStatements()
      while (!this.isOpened()) await sleep(REOPEN_MS)
    })
    this.transactions.hold(Promise.race([reopened, sleep(REOPEN_MS)]))
    await reopened
    this.reopening = null
  }

  /** Opens the file after all connections were closed; false if it cannot be opened at the moment. */
  private isOpened(): boolean {
    if (this.isClosed || this.file.lost !== null) return true
    try {
      const { db, unchanging } = openToRead(this.file.path, this.pragmas)
      this.unchanging = unchanging
      this.use(db)
      return true
    } catch {
      return false
    }
  }

  private use(db: Connection): void {
    this.db = db
    for (const [sql, statement] of this.statements) statement.replace(db.prepare(sql))
    // Rows that are kept were compared with the version of the former connection.
    this.hooks.forEach((hook) => hook.rolledBack())
  }

  /** Adds callbacks around every transaction. */
  hook(hooks: Hooks): void {
    this.hooks.push(hooks)
  }

  /** Reads at once. Throws `GatewayError(store_unavailable)`. */
  readNow<T>(what: string, read: () => T): T {
    if (this.isClosed) throw unavailable(`${what} failed`, new Error('the store has been closed'))
    if (this.file.lost !== null) throw unavailable(`${what} failed`, this.file.lost)
    try {
      return read()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /** The same as a promise. */
  read<T>(what: string, read: () => T): Promise<T> {
    if (this.gap !== null) return this.gap.then(() => this.read(what, read))
    return new Promise((resolve) => resolve(this.readNow(what, read)))
  }

  /** See `Transactions.write`. A write that resolved survives a kill of the process. */
  write<T>(what: string, job: () => T): Promise<T> {
    if (this.file.lost !== null) return Promise.reject(unavailable(`${what} failed`, this.file.lost))
    return this.transactions.write(what, job)
  }

  /** The same, but a write that resolved survives a crash of the machine, too. */
  async writeDurably<T>(what: string, job: () => T): Promise<T> {
    const result = await this.write(what, job)
    await this.synced(what)
    return result
  }

  /** The same for a task of the background thread that writes. */
  async writeInBackground<T>(what: string, task: () => Promise<T>): Promise<T> {
    if (this.file.lost !== null) throw unavailable(`${what} failed`, this.file.lost)
    const result = await task()
    await this.synced(what)
    return result
  }

  /** Runs waiting writes and closes the file. */
  async close(): Promise<void> {
    if (this.isClosed) return
    await this.transactions.close()
    this.isClosed = true
    await this.reopening
    this.file.close()
    await this.background.close()
    try {
      // SQLite does this when a file is closed, but statements that are not garbage-collected yet keep it
      // open. The first statement copies most of the log while other processes write; they wait only for the
      // second.
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

  private async synced(what: string): Promise<void> {
    try {
      await this.sync()
    } catch (cause) {
      throw unavailable(`${what} failed`, cause)
    }
  }

  /**
   * Syncs the log on a thread of libuv. Earlier commits are on the disk then: in the log, or in the file if a
   * checkpoint ran in between.
   */
  private async sync(): Promise<void> {
    // A running sync may have begun before the commit.
    if (this.syncing !== null) await this.syncing.catch(() => undefined)
    this.syncing ??= syncFile(`${this.file.path}-wal`).finally(() => (this.syncing = null))
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
 * Creates an empty file that only its owner may read, for password hashes. SQLite gives the log the same
 * mode.
 */
async function createFile(path: string): Promise<void> {
  createFolder(dirname(path))
  try {
    await (await openFile(path, 'wx', 0o600)).close()
  } catch (error) {
    // Another process created it first.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Rows deleted in one transaction. */
export const BATCH = 256

/** Repeats `deleteBatch`, which returns the number of rows deleted, until a batch is not full; the total. */
export async function inBatches(engine: Engine, what: string, deleteBatch: () => number): Promise<number> {
  for (let count = 0; ;) {
    const deleted = await engine.write(what, deleteBatch)
    count += deleted
    if (deleted < BATCH) return count
  }
}

/** The smallest page of SQLite. */
const LEAST_BYTES = 512
const OTHERS = 0o077
const WATCH_MS = 250

/**
 * Makes the file, its log and its index private to their user. SQLite creates the log with the mode of the
 * file. Files of another user are left unchanged.
 */
function makeFilesPrivate(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const mode = statOf(file)?.mode ?? 0
    if ((mode & OTHERS) === 0) continue
    try {
      chmodSync(file, mode & 0o600)
    } catch {
      // `serve` warns of it (base/private-files.ts).
    }
  }
}

/**
 * Throws an Error for what is not a file, and for a file that is shorter than its header, which SQLite would
 * treat as empty. Opening the file to look at it, and closing it, would drop the locks of this process.
 */
function assertFile(path: string): void {
  const stats = statSync(path)
  if (stats.isDirectory()) throw new Error('it is a folder: name a file in it')
  if (!stats.isFile()) throw new Error('it is not a regular file')
  if (stats.size > 0 && stats.size < LEAST_BYTES) throw new Error('it is not a database')
}

/**
 * Watches an open file. Once its name is gone or belongs to another file, writes to it would be lost, and
 * changes by other processes would not be noticed.
 */
class StoreFile {
  /** Without symbolic links, so that the files beside it are found. */
  readonly path: string
  /** Set while the file is not at its path. */
  lost: LostStore | null = null
  private readonly opened: Stats
  private readonly timer: NodeJS.Timeout

  /** The file must be open. */
  constructor(path: string) {
    this.path = realpathSync(path)
    this.opened = statSync(this.path)
    this.timer = setInterval(() => this.check(), WATCH_MS).unref()
  }

  close(): void {
    clearInterval(this.timer)
  }

  private check(): void {
    const now = statOf(this.path)
    const isSame = now?.ino === this.opened.ino && now.dev === this.opened.dev
    this.lost = isSame ? null : new LostStore(`'${this.path}' ${now === undefined ? GONE : REPLACED}`)
  }
}

const RESTART = 'while the gateway runs: restore it if needed and restart the gateway'
const GONE = `was removed ${RESTART}`
const REPLACED = `was replaced ${RESTART}`

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

// One transaction for all writes of a turn of the event loop: jobs wait for the end of the turn, run between
// BEGIN IMMEDIATE and COMMIT, and resolve after the commit.
//
// A job runs statements and computes, nothing else: it may run twice. If one fails, the transaction is rolled
// back and each job runs again in a transaction of its own, so that only the failing job rejects. If another
// process holds the lock, jobs wait on a timer and not in SQLite, which would block the event loop.

/** Jobs of one transaction: about 5 ms of work. */
const MOST_JOBS = 128
/** Time between attempts to get a lock that another process holds. */
const RETRY_MS = 1
/** Maximum time that a job waits for the lock. */
const LOCK_TIMEOUT_MS = 10_000

interface Job {
  readonly what: string
  readonly sinceMs: number
  /** Runs the statements and stores the result. */
  run(): void
  resolve(): void
  reject(error: Error): void
}

/** Callbacks around each transaction, for a cache of rows. */
interface Hooks {
  /** A transaction has begun: rows read earlier may be stale. */
  begun(): void
  /** The transaction is about to commit: changed rows must be written now. */
  committing(): void
  /** The transaction was rolled back: rows read or changed in it are invalid. */
  rolledBack(): void
}

/** The same, with what makes a read-only file writable; false if that failed. */
interface ConnectionHooks extends Hooks {
  reopen(): boolean
}

/** The writes of one connection. */
class Transactions {
  private readonly hooks: ConnectionHooks
  private readonly begin: Statement
  private readonly commit: Statement
  private readonly rollback: Statement
  private queue: Job[] = []
  private isScheduled = false
  private isHeld = false
  private isClosed = false
  /** Transactions committed so far. */
  committed = 0

  constructor(db: Statements, hooks: ConnectionHooks) {
    this.hooks = hooks
    this.begin = db.prepare('BEGIN IMMEDIATE')
    this.commit = db.prepare('COMMIT')
    this.rollback = db.prepare('ROLLBACK')
  }

  /** Runs the job in this turn's transaction. Rejects with `GatewayError(store_unavailable)`. */
  write<T>(what: string, job: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.isClosed) {
        reject(unavailable(`${what} failed`, new Error('the store has been closed')))
        return
      }
      let done: { readonly result: T } | null = null
      this.queue.push({
        what,
        sinceMs: performance.now(),
        run: () => void (done = { result: job() }),
        resolve: () => {
          if (done !== null) resolve(done.result)
        },
        reject,
      })
      this.schedule()
    })
  }

  /** Runs waiting jobs, then rejects new ones. */
  async close(): Promise<void> {
    const last = this.queue.length === 0 ? null : this.write('closing', () => undefined)
    this.isClosed = true
    await last?.catch(() => undefined)
  }

  /** Lets waiting jobs wait until then. */
  hold(until: Promise<unknown>): void {
    this.isHeld = true
    void until.finally(() => {
      this.isHeld = false
      if (this.queue.length > 0) this.schedule()
    })
  }

  private schedule(): void {
    if (this.isScheduled || this.isHeld) return
    this.isScheduled = true
    setImmediate(() => this.flush())
  }

  private flush(): void {
    this.isScheduled = false
    const jobs = this.queue.splice(0, MOST_JOBS)
    const failure = this.transact(jobs)
    if (failure === null) {
      this.committed += 1
      for (const job of jobs) job.resolve()
    } else if (isBusy(failure)) {
      this.wait(jobs, failure)
      return
    } else if (jobs.length === 1) {
      for (const job of jobs) job.reject(unavailable(`${job.what} failed`, failure))
    } else {
      this.runSeparately(jobs)
    }
    if (this.queue.length > 0) this.schedule()
  }

  /** Runs the jobs in one transaction, which is committed or rolled back; the error, or null. */
  private transact(jobs: readonly Job[]): unknown {
    try {
      this.begin.run()
    } catch (error) {
      return isReadOnly(error) && this.hooks.reopen() ? this.transact(jobs) : error
    }
    try {
      this.hooks.begun()
      for (const job of jobs) job.run()
      this.hooks.committing()
      this.commit.run()
      return null
    } catch (error) {
      this.undo()
      return isReadOnly(error) && this.hooks.reopen() ? this.transact(jobs) : error
    }
  }

  private undo(): void {
    this.hooks.rolledBack()
    try {
      this.rollback.run()
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
  }

  private runSeparately(jobs: readonly Job[]): void {
    for (const job of jobs) {
      const failure = this.transact([job])
      if (failure === null) {
        this.committed += 1
        job.resolve()
      } else if (isBusy(failure)) {
        this.wait([job], failure)
      } else {
        job.reject(unavailable(`${job.what} failed`, failure))
      }
    }
  }

  private wait(jobs: readonly Job[], why: unknown): void {
    const oldestMs = performance.now() - LOCK_TIMEOUT_MS
    const waiting = jobs.filter((job) => {
      const isLate = job.sinceMs <= oldestMs
      if (isLate) job.reject(unavailable(`${job.what} failed`, why))
      return !isLate
    })
    this.queue = [...waiting, ...this.queue]
    if (this.queue.length === 0 || this.isScheduled) return
    this.isScheduled = true
    setTimeout(() => this.flush(), RETRY_MS)
  }
}
