/**
 * One transaction for all writes of a turn of the event loop: jobs wait for the end of the turn, run between
 * BEGIN IMMEDIATE and COMMIT, and resolve after the commit.
 *
 * A job runs statements and computes, nothing else: it may run twice. If one fails, the transaction is rolled
 * back and each job runs again in a transaction of its own, so that only the failing job rejects. If another
 * process holds the lock, jobs wait on a timer and not in SQLite, which would block the event loop.
 */
import { unavailable } from '../errors.js'
import { isBusy, type Connection, type Statement } from './driver.js'

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
export interface Hooks {
  /** A transaction has begun: rows read earlier may be stale. */
  begun(): void
  /** The transaction is about to commit: changed rows must be written now. */
  committing(): void
  /** The transaction was rolled back: rows read or changed in it are invalid. */
  rolledBack(): void
}

/** The writes of one connection. */
export class Transactions {
  private readonly hooks: Hooks
  private readonly begin: Statement
  private readonly commit: Statement
  private readonly rollback: Statement
  private queue: Job[] = []
  private isScheduled = false
  private isClosed = false
  /** Transactions committed so far. */
  committed = 0

  constructor(db: Connection, hooks: Hooks) {
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

  private schedule(): void {
    if (this.isScheduled) return
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
      return error
    }
    try {
      this.hooks.begun()
      for (const job of jobs) job.run()
      this.hooks.committing()
      this.commit.run()
      return null
    } catch (error) {
      this.undo()
      return error
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
