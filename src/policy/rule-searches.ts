/**
 * Searches of own rules that take long, in a thread. It starts with the first one, and other requests are
 * served meanwhile. An account whose searches run waits for those of others.
 */
import { Worker } from 'node:worker_threads'
import { programFile } from '../config/package-file.js'
import { GuardError, TextTooLarge, type Part, type Verdict } from './verdict.js'
import type { RuleUse } from './whole-texts.js'

/** A search for the thread. */
export interface RuleSearch extends RuleUse {
  /** The guardrail. */
  readonly name: string
  readonly patterns: readonly string[]
  readonly timeoutMs: number
  readonly parts: readonly Pick<Part, 'text' | 'isJson'>[]
}

/** A message to the thread; without a search, the one of that number has ended. */
export interface SearchMessage {
  readonly id: number
  readonly search: RuleSearch | null
}

/** The message of the thread. Only texts that were masked are sent back. */
export interface SearchResult {
  readonly id: number
  readonly verdict:
    Verdict | { readonly kind: 'failed'; readonly reason: string } | { readonly kind: 'too large' }
  /** Of a masked text, its index. */
  readonly indexes: readonly number[]
}

/** Whose search it is. */
interface Searcher {
  readonly accountId: string
  readonly signal: AbortSignal
}

interface Job {
  readonly id: number
  readonly search: RuleSearch
  readonly accountId: string
  readonly resolve: (verdict: Verdict) => void
  readonly reject: (error: Error) => void
}

/** Searches that take turns in the thread, each with a copy of its texts. */
const MAX_RUNNING = 4

class RuleSearches {
  private readonly waiting: Job[] = []
  private readonly running = new Map<number, Job>()
  private thread: Worker | null = null
  private lastId = 0

  /** The verdict on the parts. Rejects with `GuardError`. */
  async run(search: RuleSearch, { accountId, signal }: Searcher): Promise<Verdict> {
    const id = ++this.lastId
    const leave = (): void => this.end(id, new GuardError('the client has left'))
    signal.addEventListener('abort', leave, { once: true })
    try {
      return await new Promise((resolve, reject) => {
        this.waiting.push({ id, search, accountId, resolve, reject })
        if (signal.aborted) leave()
        this.next()
      })
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** Ends a search before its verdict. */
  private end(id: number, error: Error): void {
    const at = this.waiting.findIndex((job) => job.id === id)
    const [job = this.running.get(id)] = at < 0 ? [] : this.waiting.splice(at, 1)
    if (this.running.delete(id)) this.post({ id, search: null })
    job?.reject(error)
    this.next()
  }

  private next(): void {
    while (this.running.size < MAX_RUNNING && this.waiting.length > 0) {
      const counts = new Map<string, number>()
      for (const { accountId } of this.running.values()) {
        counts.set(accountId, (counts.get(accountId) ?? 0) + 1)
      }
      const countOf = ({ accountId }: Job): number => counts.get(accountId) ?? 0
      const least = Math.min(...this.waiting.map(countOf))
      const [job] = this.waiting.splice(
        this.waiting.findIndex((each) => countOf(each) === least),
        1,
      )
      if (job === undefined) break
      this.running.set(job.id, job)
      this.post({ id: job.id, search: job.search })
    }
    // An idle thread does not keep the process running.
    if (this.running.size === 0) this.thread?.unref()
  }

  private post(message: SearchMessage): void {
    this.thread ??= this.start()
    this.thread.ref()
    this.thread.postMessage(message)
  }

  private start(): Worker {
    const thread = new Worker(programFile('policy/rule-search-thread.js'), { execArgv: [] })
    thread.on('message', (result: SearchResult) => this.finished(result))
    let reason: unknown = null
    thread.once('error', (error) => (reason = error))
    thread.once('exit', () => {
      // The next search starts a new thread.
      this.thread = null
      const jobs = [...this.running.values()]
      this.running.clear()
      for (const { reject } of jobs)
        reject(new GuardError('the thread of its rules ended', { cause: reason }))
      this.next()
    })
    return thread
  }

  private finished({ id, verdict, indexes }: SearchResult): void {
    const job = this.running.get(id)
    this.running.delete(id)
    this.next()
    if (job === undefined) return
    const { parts } = job.search
    if (verdict.kind === 'failed') job.reject(new GuardError(verdict.reason))
    else if (verdict.kind === 'too large') job.reject(new TextTooLarge(null))
    else if (verdict.kind !== 'mask') job.resolve(verdict)
    else {
      const texts = parts.map(({ text }) => text)
      indexes.forEach((index, at) => (texts[index] = verdict.texts[at] ?? ''))
      job.resolve({ kind: 'mask', texts })
    }
  }
}

/** The searches of this process. */
export const ruleSearches = new RuleSearches()
