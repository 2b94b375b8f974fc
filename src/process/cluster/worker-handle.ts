/**
 * One worker process from the primary's side: forks it, sends it messages, keeps its last state and metrics,
 * and kills it if it does not respond or outlives its drain. `primary.ts` decides which processes run.
 */
import cluster, { type Worker } from 'node:cluster'
import type { Logger } from '../../observe/log.js'
import type { Collected } from '../../observe/metrics/metric-types.js'
import type { Readiness } from '../ops/readiness.js'
import { isToPrimary, type ToPrimary, type ToWorker } from './messages.js'

interface WorkerEvents {
  /** The worker runs and waits for its configuration. */
  readonly hello: () => void
  /** The worker reported its state. */
  readonly reported: (state: Readiness) => void
  /** The worker sent the primary a request. */
  readonly requested: (request: unknown) => Promise<unknown>
  /** The worker exited; `reason` is its own error, or its exit status or signal. Called once. */
  readonly exited: (reason: string) => void
}

/** A state older than this means that the worker's event loop is blocked. */
const SILENT_MS = 5000
/** Without metrics within this time, the worker's previous ones are used. */
const COLLECT_MS = 1000
/** A configuration that a worker does not build within this time is applied untested. */
const TRIAL_MS = 5000
/** A worker that does not reply within this time is left out of the recent requests. */
const RECENT_MS = 2000
/**
 * Pings without any message from the worker before it is killed. Pings and not time are counted: after a
 * suspension the primary sends one, and receives the workers' messages before the next.
 */
const MAX_UNANSWERED = 10
/** The same for a worker that is not ready yet: opening a large store may block its event loop. */
const MAX_UNANSWERED_AT_START = 60

/**
 * Memory settings of a worker's C library (glibc), unless the operator sets these variables. By default it
 * keeps freed blocks of up to 32 MB, so that a worker's memory does not shrink after large bodies
 * (mallopt(3)).
 */
const WORKER_MEMORY = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' }

/** A running worker process. */
export class WorkerProcess {
  readonly startedAtMs = Date.now()
  /** Resolves when the process has exited and its last messages have arrived. */
  readonly ended: Promise<void>
  /** Whether the watchdog killed it. */
  isSilent = false
  /** Its last report; null before the first. */
  state: Readiness | null = null
  /** Its last metrics; kept so that sums do not fall while a worker is slow. */
  counted: Collected[] = []
  private readonly worker: Worker
  private readonly number: number
  private readonly log: Logger
  private readonly events: WorkerEvents
  private readonly recentRequests = new PendingReplies<readonly unknown[]>(RECENT_MS, [])
  private readonly trials = new PendingReplies<string | null>(TRIAL_MS, null)
  private failure: string | null = null
  private reportedAtMs = 0
  /** Pings since the last message from the worker. */
  private unanswered = 0
  private collected: (() => void) | null = null
  private killTimer: NodeJS.Timeout | null = null
  private hasExited = false
  private end: () => void = () => undefined

  /** Forks the process. `number` is for the log. */
  constructor(number: number, log: Logger, events: WorkerEvents) {
    this.number = number
    this.log = log
    this.events = events
    this.ended = new Promise((resolve) => (this.end = resolve))
    this.worker = cluster.fork({ ...WORKER_MEMORY, ...process.env })
    this.listen()
  }

  get pid(): number | undefined {
    return this.worker.process.pid
  }

  /** Why it cannot accept requests; null if it can. */
  get trouble(): string | null {
    if (this.state === null) return 'starting'
    if (Date.now() - this.reportedAtMs > SILENT_MS) return 'silent'
    return this.state.ready ? null : this.failing || 'not ready'
  }

  /** Its checks that are not `ok`, as one line; empty if all are. */
  get failing(): string {
    const checks = Object.entries(this.state?.checks ?? {}).filter(([, check]) => check !== 'ok')
    return checks.map(([name, check]) => `${name}: ${check}`).join('; ')
  }

  send(message: ToWorker): void {
    if (this.worker.isConnected()) this.worker.send(message)
  }

  /** Sends a ping; kills the process if too many have had no response. */
  ping(): void {
    if (this.isSilent) return
    const max = this.state?.ready === true ? MAX_UNANSWERED : MAX_UNANSWERED_AT_START
    if (this.unanswered < max) {
      this.unanswered += 1
      this.send({ type: 'ping' })
      return
    }
    this.isSilent = true
    this.failure = `no response to ${String(this.unanswered)} pings`
    const fields = { worker: this.number, worker_pid: this.pid, reason: this.failure }
    this.log.warn('worker does not respond and is killed', fields)
    this.kill()
  }

  /** Requests its metrics and waits for them for a second; see `counted`. */
  collect(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, COLLECT_MS)
      this.collected = () => {
        clearTimeout(timer)
        this.collected = null
        resolve()
      }
      this.send({ type: 'collect' })
    })
  }

  /**
   * The worker builds the configuration without applying it. Resolves to the reason if that fails, else to
   * null, also if the worker is busy or exits.
   */
  tryOut(payload: unknown): Promise<string | null> {
    return this.trials.request((id) => this.send({ type: 'try', id, payload }))
  }

  /** Its last requests; empty if it does not reply in time. */
  recent(): Promise<readonly unknown[]> {
    return this.recentRequests.request((id) => this.send({ type: 'recent', id }))
  }

  /** Drains it, and kills it after `limitMs`. With `isReplaced` other workers listen on the same address. */
  drain(limitMs: number, isReplaced: boolean): void {
    if (this.killTimer !== null || this.hasExited) return
    this.send({ type: 'drain', isReplaced })
    this.killTimer = setTimeout(() => {
      const fields = { worker: this.number, worker_pid: this.pid }
      this.log.warn('worker outlived the drain and is killed', fields)
      this.kill()
    }, limitMs)
  }

  /** Kills it. */
  kill(): void {
    this.worker.process.kill('SIGKILL')
  }

  private listen(): void {
    const { worker } = this
    const exited = (code: number | null, signal: string | null): void => this.exited(code, signal)
    worker.on('message', (message: unknown) => {
      if (isToPrimary(message)) this.handle(message)
    })
    worker.on('error', (error) => {
      this.log.error('worker channel', error, { worker: this.number })
      if (this.pid === undefined) exited(null, null)
    })
    worker.once('exit', (code: number | null, signal: string | null) => {
      // Its last messages may still be in the channel.
      if (worker.isConnected()) worker.once('disconnect', () => exited(code, signal))
      else exited(code, signal)
    })
  }

  private handle(message: ToPrimary): void {
    this.unanswered = 0
    switch (message.type) {
      case 'hello':
        this.events.hello()
        return
      case 'state':
        this.state = message.state
        this.reportedAtMs = Date.now()
        this.events.reported(message.state)
        return
      case 'pong':
        return
      case 'failed':
        this.failure = message.message
        return
      case 'metrics':
        this.counted = message.metrics
        this.collected?.()
        return
      case 'recent':
        this.recentRequests.settle(message.id, message.requests)
        return
      case 'ask':
        void this.reply(message.id, message.question)
        return
      case 'tried':
        this.trials.settle(message.id, message.fault)
        return
      default:
        message satisfies never
    }
  }

  private async reply(id: number, request: unknown): Promise<void> {
    this.send({ type: 'reply', id, answer: await this.events.requested(request) })
  }

  private exited(code: number | null, signal: string | null): void {
    if (this.hasExited) return
    this.hasExited = true
    if (this.killTimer !== null) clearTimeout(this.killTimer)
    this.collected?.()
    this.trials.settleAll()
    this.recentRequests.settleAll()
    const exit = signal === null ? `exit ${String(code)}` : `killed by ${signal}`
    this.events.exited(this.failure ?? exit)
    this.end()
  }
}

/** A slot; `primary.ts` changes it. */
export interface Slot {
  readonly number: number
  process: WorkerProcess | null
  /** Consecutive exits with less than 30 s between them. */
  failures: number
  /** Why the previous process ended; null once its successor is ready. */
  lastError: string | null
  retry: NodeJS.Timeout | null
}

/**
 * An empty slot for one worker: its current process, and how the previous ones ended. A process that exits is
 * replaced in the same slot. Numbers start at 1.
 */
export function newSlot(number: number): Slot {
  return { number, process: null, failures: 0, lastError: null, retry: null }
}

/** Why the slot's worker cannot accept requests; null if it can. */
export function unreadyReason({ process, lastError }: Slot): string | null {
  const why = lastError === null ? '' : ` after: ${lastError}`
  if (process === null) return `restarting${why}`
  return process.state === null ? `starting${why}` : process.trouble
}

/**
 * Requests of one kind from the primary to one worker that wait for a reply. Replies are matched to requests
 * by their ids.
 */
class PendingReplies<Reply> {
  private readonly pending = new Map<number, (reply: Reply) => void>()
  private readonly timeoutMs: number
  private readonly missing: Reply
  private lastId = 0

  /** `missing`: the result if the worker does not reply within `timeoutMs`, or ends. */
  constructor(timeoutMs: number, missing: Reply) {
    this.timeoutMs = timeoutMs
    this.missing = missing
  }

  /** Sends a request through `send` and resolves with its reply. */
  request(send: (id: number) => void): Promise<Reply> {
    const id = (this.lastId += 1)
    return new Promise((resolve) => {
      const settle = (reply: Reply): void => {
        clearTimeout(timer)
        this.pending.delete(id)
        resolve(reply)
      }
      const timer = setTimeout(() => settle(this.missing), this.timeoutMs).unref()
      this.pending.set(id, settle)
      send(id)
    })
  }

  /** The reply to the request with that id; a late one is ignored. */
  settle(id: number, reply: Reply): void {
    this.pending.get(id)?.(reply)
  }

  /** The worker has ended: no more replies arrive. */
  settleAll(): void {
    for (const settle of [...this.pending.values()]) settle(this.missing)
  }
}
