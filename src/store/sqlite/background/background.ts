/**
 * A thread with a connection of its own for what may take long: the roll-up of new entries, tasks about usage,
 * and checkpoints, which wait for the disk. The event loop never waits for it.
 */
import { Worker } from 'node:worker_threads'
import { unavailable } from '../../errors.js'
import type { Tasks } from './tasks.js'

/** How often the log is copied into the file if anything was written. */
const CHECKPOINT_MS = 2_000
/** How long new entries wait to be counted when nobody asks for usage. */
const COUNT_MS = 5_000

type Name = keyof Tasks

/** A question as it is posted: a name of `Tasks`, and its arguments. */
export interface Asked {
  readonly id: number
  readonly name: Name
  /** Of the question's own types, which `Background.ask` checks. */
  readonly args: readonly never[]
}

/** An answer as it is posted: a result, or what failed. */
export interface Answered {
  readonly id: number
  readonly result?: unknown
  readonly failure?: string
}

/** What waits for an answer. */
interface Waiting {
  /** With the type of the question's result: the thread runs the function that `Tasks` names. */
  readonly resolve: (result: never) => void
  readonly reject: (failure: string) => void
}

/** The thread of one store. */
export class Background {
  private readonly path: string
  private readonly committed: () => number
  private readonly pending = new Map<number, Waiting>()
  private readonly timer: NodeJS.Timeout
  private worker: Worker | null = null
  private counting: NodeJS.Timeout | null = null
  private lastId = 0
  private checkpointed = 0
  private isClosed = false

  /** `committed` counts the transactions of this process. */
  constructor(path: string, committed: () => number) {
    this.path = path
    this.committed = committed
    this.timer = setInterval(() => this.checkpoint(), CHECKPOINT_MS).unref()
  }

  /** An entry was written: it is counted within `COUNT_MS`, and hours that began before a time are added to days. */
  note(daysBeforeMs: () => number): void {
    if (this.counting !== null || this.isClosed) return
    this.counting = setTimeout(() => {
      this.counting = null
      // Entries that are not counted now are counted with the next entry, or with the next query.
      this.ask('counting usage', 'count', daysBeforeMs()).catch(() => undefined)
    }, COUNT_MS).unref()
  }

  /** Asks the thread. Rejects with `GatewayError(store_unavailable)`; `what` is for its message. */
  ask<Asks extends Name>(
    what: string,
    name: Asks,
    ...args: Parameters<Tasks[Asks]>
  ): Promise<ReturnType<Tasks[Asks]>> {
    if (this.isClosed) {
      return Promise.reject(unavailable(`${what} failed`, new Error('the store has been closed')))
    }
    const worker = (this.worker ??= this.started())
    const id = (this.lastId += 1)
    return new Promise((resolve, reject) => {
      this.pending.set(id, {
        resolve,
        reject: (failure) => reject(unavailable(`${what} failed`, new Error(failure))),
      })
      // Somebody waits: the process must not end meanwhile.
      worker.ref()
      worker.postMessage({ id, name, args })
    })
  }

  /** Waits for what runs, and ends the thread. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    if (this.counting !== null) clearTimeout(this.counting)
    const { worker } = this
    const closed = worker === null ? null : this.ask('closing', 'close')
    this.isClosed = true
    await closed?.catch(() => undefined)
    await worker?.terminate()
  }

  private checkpoint(): void {
    const committed = this.committed()
    if (committed === this.checkpointed) return
    this.checkpointed = committed
    // One that fails is tried again after the next commit; until then the log grows.
    this.ask('copying the log', 'checkpoint').catch(() => undefined)
  }

  private started(): Worker {
    const worker = new Worker(new URL('./background-worker.js', import.meta.url), {
      workerData: this.path,
    })
    worker.on('message', (answer: { id: number; result: never; failure?: string }) => {
      const waiting = this.pending.get(answer.id)
      this.pending.delete(answer.id)
      if (this.pending.size === 0) worker.unref()
      if (answer.failure === undefined) waiting?.resolve(answer.result)
      else waiting?.reject(answer.failure)
    })
    worker.on('error', (error) => this.ended(worker, error.message))
    worker.on('exit', () => this.ended(worker, 'its thread has ended'))
    return worker
  }

  /** The next question starts another thread. */
  private ended(worker: Worker, why: string): void {
    if (this.worker !== worker) return
    this.worker = null
    const waiting = [...this.pending.values()]
    this.pending.clear()
    for (const { reject } of waiting) reject(why)
  }
}
