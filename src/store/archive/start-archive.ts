/** Starts the thread that moves entries to the archive, and keeps its last report. */
import { randomUUID } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import type { ArchiveConfig, Config } from '../../config/config.js'
import { programFile } from '../../config/package-file.js'
import { isObject, stringOf } from '../../base/json.js'
import type { ArchiveLeader } from '../archive-feed.js'
import type { MemoryLimit } from '../ledger.js'
import type { CopyCounts } from './copier.js'
import type { ArchiveOperation } from './measure-engine.js'

/** What the thread opens. */
export interface ThreadData {
  readonly store: string
  /** The folder of this machine's data. */
  readonly spool: string
  readonly archive: ArchiveConfig
  readonly leader: ArchiveLeader
  /** What the store's entries may use. */
  readonly memory: MemoryLimit
}

/** What the thread reports. */
export interface ArchiveState {
  /** Whether this gateway moves the entries of the store. */
  readonly isLeader: boolean
  /** Why the last step failed; null: it did not. */
  readonly problem: string | null
  /** What an operator should know although entries move; null: nothing. */
  readonly notice: string | null
  /** When the first step in sequence failed, ms since 1970. */
  readonly awaySinceMs: number | null
  readonly rowsWaiting: number
  /** The age of the oldest entry that the archive has not confirmed. */
  readonly lagSeconds: number
  /** The size of what waits in the memory of the store and in files of this machine. */
  readonly bytesWaiting: { readonly store: number; readonly disk: number }
  readonly bytesMax: { readonly store: number; readonly disk: number }
  /** Since the thread started. */
  readonly counts: CopyCounts
  /** Requests to the database since the last report, with their seconds. */
  readonly requests: readonly (readonly [ArchiveOperation, number])[]
}

const RESTART_MS = 5_000
const CLOSE_MS = 5_000

interface RunnerParts {
  readonly warn: (reason: string) => void
  readonly onState: (state: ArchiveState | null) => void
}

/** The thread of a gateway, which follows its configuration. */
export class ArchiveRunner {
  private readonly parts: RunnerParts
  private thread: Worker | null = null
  private running = ''
  private restart: NodeJS.Timeout | null = null
  private isClosed = false
  /** The last report; null without an archive. */
  state: ArchiveState | null = null

  constructor(parts: RunnerParts) {
    this.parts = parts
  }

  /** Starts, restarts or ends the thread, if the configuration of the archive or of the store changed. */
  adopt({ store, ledger, archive, server }: Pick<Config, 'store' | 'ledger' | 'archive' | 'server'>): void {
    const wanted = archive === null ? '' : JSON.stringify([store, ledger.spool, archive])
    if (wanted === this.running || this.isClosed) return
    this.running = wanted
    const leader = { id: randomUUID(), gateway: server.name, pid: process.pid }
    const memory = { max: ledger.maxMemory, keepDays: ledger.keepDays }
    const data = archive === null ? null : { store, spool: ledger.spool, archive, leader, memory }
    void this.end().then(() => {
      if (data !== null && this.running === wanted) this.start(data)
    })
    if (archive === null) {
      this.state = null
      this.parts.onState(null)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.end()
  }

  private start(data: ThreadData): void {
    const thread = new Worker(programFile('store/archive/archive-thread.js'), {
      workerData: data,
      execArgv: [],
    })
    thread.unref()
    this.thread = thread
    thread.on('message', (message: unknown) => this.received(message))
    thread.on('error', (error) => this.parts.warn(`the thread of the archive failed: ${error.message}`))
    thread.on('exit', () => {
      if (this.thread !== thread) return
      this.thread = null
      const again = (): void => {
        if (!this.isClosed && this.thread === null) this.start(data)
      }
      this.restart = setTimeout(again, RESTART_MS).unref()
    })
  }

  private received(message: unknown): void {
    if (!isObject(message)) return
    const warning = stringOf(message['warning'])
    if (warning !== undefined) this.parts.warn(warning)
    if (!isObject(message['state'])) return
    const before = this.state
    // The thread is this program.
    const state = message['state'] as unknown as ArchiveState
    this.state = state
    this.parts.onState(state)
    if (state.notice !== null && state.notice !== before?.notice) this.parts.warn(state.notice)
    if (state.problem !== null && state.problem !== before?.problem) {
      this.parts.warn(`the archive does not take entries: ${state.problem}; ${state.rowsWaiting} wait`)
    }
    if (state.problem === null && (before?.problem ?? null) !== null)
      this.parts.warn('the archive takes entries again')
  }

  /** Ends the thread, by force if it does not reply. */
  private async end(): Promise<void> {
    if (this.restart !== null) clearTimeout(this.restart)
    const { thread } = this
    if (thread === null) return
    this.thread = null
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    thread.postMessage('end')
    const timer = setTimeout(() => void thread.terminate(), CLOSE_MS)
    await exited
    clearTimeout(timer)
  }
}

/** The health of the archive for `/readyz`: `ok`, or what is wrong; null without one. */
export function archiveHealth(state: ArchiveState | null): string | null {
  if (state === null) return null
  if (state.problem === null) return state.notice ?? 'ok'
  const since = new Date(state.awaySinceMs ?? Date.now()).toISOString().slice(11, 16)
  return `away since ${since} (${state.problem}), ${state.rowsWaiting.toLocaleString('en-US')} rows wait`
}
