/**
 * Writes of one turn of the event loop in one transaction: jobs wait for the end of the turn, run between
 * BEGIN IMMEDIATE and COMMIT, and resolve once the commit has succeeded.
 *
 * A job only runs statements and computes; it may run twice. If one fails, the transaction is rolled back
 * and each job runs again in a transaction of its own, so that only the failing one rejects. If another
 * process holds the lock, the jobs wait on a timer and not in SQLite: the event loop goes on.
 */
import { unavailable } from '../errors.js'
import { isBusy, type Connection, type Statement } from './driver.js'

/** Jobs of one transaction: about 5 ms of work. */
const MOST_JOBS = 128
/** How often a lock that another process holds is tried again. */
const RETRY_MS = 1
/** A job that waits longer for the lock is rejected. */
const PATIENCE_MS = 10_000

interface Job {
  readonly what: string
  readonly sinceMs: number
  /** Runs the statements and keeps the result. */
  run(): void
  resolve(): void
  reject(error: Error): void
}

/** What a cache of rows has to do around a transaction. */
export interface Hooks {
  /** A transaction has begun: forget what was read before. */
  begun(): void
  /** It is about to be committed: write what has changed in memory. */
  committing(): void
  /** It was undone: what was read or changed in it is not so. */
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

  /** Runs what waits, then takes no more. */
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
      this.runApart(jobs)
    }
    if (this.queue.length > 0) this.schedule()
  }

  /** Runs the jobs in one transaction; what went wrong, or null. Nothing is left open. */
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

  private runApart(jobs: readonly Job[]): void {
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
    const oldestMs = performance.now() - PATIENCE_MS
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
