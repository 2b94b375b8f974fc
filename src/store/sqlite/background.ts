/**
 * A thread with a connection of its own for what may take long: the roll-up of new entries, questions about usage,
 * and checkpoints, which wait for the disk. The event loop never waits for it.
 */
import { Worker } from 'node:worker_threads'
import type { KeyUse, KeyUseQuery, RowPage, RowQuery, SumQuery, UsageSum } from '../ledger.js'
import { unavailable } from '../failure.js'
import type { Pruned } from './ledger/roll-up.js'
import type { Bucket } from './ledger/sums.js'
import type { BudgetBatch, ExportBatch, ExportPlace } from './ledger/usage.js'

/** How often the log is copied into the file if anything was written. */
const CHECKPOINT_MS = 2_000
/** How long new entries wait to be counted when nobody asks for usage. */
const COUNT_MS = 1_000

/** What the thread is asked. */
export type Question =
  | { readonly ask: 'checkpoint' }
  | { readonly ask: 'count'; readonly daysBeforeMs: number }
  | { readonly ask: 'prune'; readonly what: Pruned; readonly beforeMs: number }
  | {
      readonly ask: 'put'
      readonly by: Bucket
      readonly sums: readonly UsageSum[]
      readonly lastUse: ReadonlyMap<string, number>
    }
  | { readonly ask: 'rows'; readonly query: RowQuery }
  | { readonly ask: 'sums'; readonly query: SumQuery }
  | { readonly ask: 'keyUse'; readonly query: KeyUseQuery }
  | {
      readonly ask: 'lastUse'
      readonly accountId: string
      readonly keyIds: readonly string[] | null
    }
  | { readonly ask: 'exported'; readonly after: ExportPlace }
  | { readonly ask: 'budgets'; readonly after: readonly [account: string, subject: string] }
  | { readonly ask: 'close' }

/** What it answers, one kind for each question. */
export type Answer =
  | { readonly is: 'done'; readonly count: number }
  | { readonly is: 'rows'; readonly page: RowPage }
  | { readonly is: 'sums'; readonly sums: UsageSum[] }
  | { readonly is: 'keyUse'; readonly uses: KeyUse[] }
  | { readonly is: 'lastUse'; readonly uses: [keyId: string, atMs: number][] }
  | { readonly is: 'exported'; readonly batch: ExportBatch }
  | { readonly is: 'budgets'; readonly batch: BudgetBatch }
  | { readonly is: 'failed'; readonly why: string }

/** A question as it is posted, and its answer. */
export interface Asked {
  readonly id: number
  readonly question: Question
}

/** An answer as it is posted. */
export interface Answered {
  readonly id: number
  readonly answer: Answer
}

/** The thread of one store. */
export class Background {
  private readonly path: string
  private readonly committed: () => number
  private readonly pending = new Map<number, (answer: Answer) => void>()
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
      this.count(daysBeforeMs()).catch(() => undefined)
    }, COUNT_MS).unref()
  }

  /** Counts all entries written before, and adds hours to their days. Rejects with `GatewayError(store_unavailable)`. */
  async count(daysBeforeMs: number): Promise<void> {
    await this.ask('counting usage', { ask: 'count', daysBeforeMs })
  }

  /** See `RollUp.prune`. */
  async prune(what: Pruned, beforeMs: number): Promise<number> {
    const answer = await this.ask('pruning', { ask: 'prune', what, beforeMs })
    return answer.is === 'done' ? answer.count : refuse(answer)
  }

  /** See `RollUp.put`. */
  async put(
    by: Bucket,
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    await this.ask('putting sums', { ask: 'put', by, sums, lastUse })
  }

  /** The methods of `ledger/usage.ts`. Reject with `GatewayError(store_unavailable)`. */
  async rows(query: RowQuery): Promise<RowPage> {
    const answer = await this.ask('reading rows', { ask: 'rows', query })
    return answer.is === 'rows' ? answer.page : refuse(answer)
  }

  async sums(query: SumQuery): Promise<UsageSum[]> {
    const answer = await this.ask('reading sums', { ask: 'sums', query })
    return answer.is === 'sums' ? answer.sums : refuse(answer)
  }

  async keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    const answer = await this.ask('reading what keys used', { ask: 'keyUse', query })
    return answer.is === 'keyUse' ? answer.uses : refuse(answer)
  }

  async lastUse(
    accountId: string,
    keyIds: readonly string[] | null,
  ): Promise<[keyId: string, atMs: number][]> {
    const answer = await this.ask('reading last uses', { ask: 'lastUse', accountId, keyIds })
    return answer.is === 'lastUse' ? answer.uses : refuse(answer)
  }

  async exported(after: ExportPlace): Promise<ExportBatch> {
    const answer = await this.ask('exporting rows', { ask: 'exported', after })
    return answer.is === 'exported' ? answer.batch : refuse(answer)
  }

  async budgets(after: readonly [account: string, subject: string]): Promise<BudgetBatch> {
    const answer = await this.ask('reading budgets', { ask: 'budgets', after })
    return answer.is === 'budgets' ? answer.batch : refuse(answer)
  }

  /** Waits for what runs, and ends the thread. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    if (this.counting !== null) clearTimeout(this.counting)
    const { worker } = this
    const closed = worker === null ? null : this.ask('closing', { ask: 'close' })
    this.isClosed = true
    await closed?.catch(() => undefined)
    await worker?.terminate()
  }

  private checkpoint(): void {
    const committed = this.committed()
    if (committed === this.checkpointed) return
    this.checkpointed = committed
    // One that fails is tried again after the next commit; until then the log grows.
    this.ask('copying the log', { ask: 'checkpoint' }).catch(() => undefined)
  }

  private ask(what: string, question: Question): Promise<Answer> {
    if (this.isClosed) {
      return Promise.reject(unavailable(`${what} failed`, new Error('the store has been closed')))
    }
    const worker = (this.worker ??= this.started())
    const id = (this.lastId += 1)
    return new Promise<Answer>((resolve, reject) => {
      this.pending.set(id, (answer) => {
        if (answer.is === 'failed') reject(unavailable(`${what} failed`, new Error(answer.why)))
        else resolve(answer)
      })
      // Somebody waits: the process must not end meanwhile.
      worker.ref()
      worker.postMessage({ id, question } satisfies Asked)
    })
  }

  private started(): Worker {
    const worker = new Worker(new URL('./background-worker.js', import.meta.url), {
      workerData: this.path,
    })
    worker.on('message', ({ id, answer }: Answered) => this.answered(worker, id, answer))
    worker.on('error', (error) => this.ended(worker, error.message))
    worker.on('exit', () => this.ended(worker, 'its thread has ended'))
    return worker
  }

  private answered(worker: Worker, id: number, answer: Answer): void {
    const answered = this.pending.get(id)
    this.pending.delete(id)
    if (this.pending.size === 0) worker.unref()
    answered?.(answer)
  }

  /** The next question starts another thread. */
  private ended(worker: Worker, why: string): void {
    if (this.worker !== worker) return
    this.worker = null
    const waiting = [...this.pending.values()]
    this.pending.clear()
    for (const answered of waiting) answered({ is: 'failed', why })
  }
}

function refuse(answer: Answer): never {
  throw new Error(`the thread answered '${answer.is}' to another question`)
}
