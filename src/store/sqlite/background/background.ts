/**
 * The background thread of a store, with a connection of its own. It runs the tasks that may take long: the
 * roll-up of new entries, queries for usage, and checkpoints, which wait for the disk. The event loop never
 * waits for it.
 */
import { statSync, type Stats } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { programFile } from '../../../config/package-file.js'
import { unavailable } from '../../store-errors.js'
import type { Tasks } from './tasks.js'
import { CHECKPOINT_MS, logBytes, LONG_LOG_BYTES, LONG_LOGS, MOST_HOLD_MS } from './write-ahead-log.js'

/**
 * Time until new entries are added to the sums if no query comes before. A batch of many entries costs less
 * for each, because it changes the same pages.
 */
const ROLL_UP_MS = 5_000

/** The tasks by name. */
interface AllTasks extends Tasks {
  readonly checkpoint: () => void
  readonly close: () => void
}

type Name = keyof AllTasks

/** The writes of the process that has the thread. */
interface Writer {
  /** The number of transactions. */
  committed(): number
  /** Lets writes wait. */
  hold(until: Promise<unknown>): void
}

/** The file that the thread opens. */
export interface BackgroundFile {
  readonly path: string
  /** It is not opened if another one is at the path. */
  readonly opened: Pick<Stats, 'dev' | 'ino'>
  /** A log of this size starts again. */
  readonly longBytes: number
}

/** The message that starts a task. */
export interface TaskMessage {
  readonly id: number
  readonly name: Name
  /** With the types of the task, which `Background.run` checks. */
  readonly args: readonly never[]
}

/** The result of a task, or the reason why it failed. */
export interface TaskResult {
  readonly id: number
  readonly result?: unknown
  readonly failure?: string
}

/** The promise of a task that runs. */
interface Pending {
  /** Typed as the task's result: the thread runs the function of this name. */
  readonly resolve: (result: never) => void
  readonly reject: (failure: string) => void
}

/** The thread of one store. */
export class Background {
  private readonly file: BackgroundFile
  private readonly writer: Writer
  private readonly pending = new Map<number, Pending>()
  private readonly timer: NodeJS.Timeout
  private worker: Worker | null = null
  private rollUp: NodeJS.Timeout | null = null
  private lastId = 0
  private checkpointed = 0
  private isCopying = false
  /** Until the end of `pause`. */
  private paused: Promise<void> | null = null
  private isClosed = false

  /** The file must exist. */
  constructor(path: string, writer: Writer, longBytes = LONG_LOG_BYTES) {
    const { dev, ino } = statSync(path)
    this.file = { path, opened: { dev, ino }, longBytes }
    this.writer = writer
    this.timer = setInterval(() => this.checkpoint(), CHECKPOINT_MS).unref()
  }

  /** Starts the roll-up within five seconds; it adds hours that began before `daysBeforeMs` to their days. */
  scheduleRollUp(daysBeforeMs: () => number): void {
    if (this.rollUp !== null || this.isClosed) return
    this.rollUp = setTimeout(() => {
      this.rollUp = null
      // If it fails, the next entry or query adds these entries as well.
      this.run('adding up usage', 'rollUp', daysBeforeMs()).catch(() => undefined)
    }, ROLL_UP_MS).unref()
  }

  /** Runs a task. Rejects with `GatewayError(store_unavailable)`; `what` is for its message. */
  run<Task extends Name>(
    what: string,
    name: Task,
    ...args: Parameters<AllTasks[Task]>
  ): Promise<ReturnType<AllTasks[Task]>> {
    if (this.isClosed) {
      return Promise.reject(unavailable(`${what} failed`, new Error('the store has been closed')))
    }
    if (this.paused !== null) return this.paused.then(() => this.run(what, name, ...args))
    const worker = (this.worker ??= this.start())
    const id = (this.lastId += 1)
    return new Promise((resolve, reject) => {
      this.pending.set(id, {
        resolve,
        reject: (failure) => reject(unavailable(`${what} failed`, new Error(failure))),
      })
      // The process must not exit while a task is pending.
      worker.ref()
      worker.postMessage({ id, name, args })
    })
  }

  /** Does the work while the thread and its connection are closed; tasks wait until then. */
  pause(work: () => Promise<void>): Promise<void> {
    const { worker } = this
    const closed = worker === null ? null : this.run('closing the file', 'close')
    this.paused = (async () => {
      await closed?.catch(() => undefined)
      await worker?.terminate()
      await work().finally(() => (this.paused = null))
    })()
    return this.paused
  }

  /** Waits for running tasks and ends the thread. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    if (this.rollUp !== null) clearTimeout(this.rollUp)
    const { worker } = this
    const closed = worker === null ? null : this.run('closing the store', 'close')
    this.isClosed = true
    await closed?.catch(() => undefined)
    await worker?.terminate()
  }

  private checkpoint(): void {
    const committed = this.writer.committed()
    const { path, longBytes } = this.file
    if (this.isCopying || committed === this.checkpointed) return
    this.checkpointed = committed
    this.isCopying = true
    // The next commit starts another one if this fails; until then the log grows.
    const copying = this.run('copying the log', 'checkpoint')
      .catch(() => undefined)
      .finally(() => (this.isCopying = false))
    if (logBytes(path) < longBytes * LONG_LOGS) return
    // Else transactions that follow each other leave the lock to no checkpoint.
    this.writer.hold(Promise.race([copying, sleep(MOST_HOLD_MS, undefined, { ref: false })]))
  }

  private start(): Worker {
    const worker = new Worker(programFile('store/sqlite/background/background-worker.js'), {
      workerData: this.file,
      execArgv: [],
    })
    worker.on('message', (answer: { id: number; result: never; failure?: string }) => {
      const task = this.pending.get(answer.id)
      this.pending.delete(answer.id)
      if (this.pending.size === 0) worker.unref()
      if (answer.failure === undefined) task?.resolve(answer.result)
      else task?.reject(answer.failure)
    })
    worker.on('error', (error) => this.ended(worker, error.message))
    worker.on('exit', () => this.ended(worker, 'its background thread has ended'))
    return worker
  }

  /** Rejects pending tasks. The next task starts another thread. */
  private ended(worker: Worker, why: string): void {
    if (this.worker !== worker) return
    this.worker = null
    const tasks = [...this.pending.values()]
    this.pending.clear()
    for (const { reject } of tasks) reject(why)
  }
}
