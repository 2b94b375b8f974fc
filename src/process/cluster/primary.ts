/**
 * The primary process of a cluster: starts, configures, monitors, replaces and ends the workers. The caller
 * passes their configuration and their code. The primary handles no traffic: the workers accept connections
 * from a shared listening socket.
 *
 * A worker sends `hello`, receives the configuration, starts, and then reports its state every second. The
 * primary pings each worker every second, and kills and replaces one that sends nothing for ten pings.
 */
import cluster from 'node:cluster'
import type { Logger } from '../../observe/log.js'
import {
  aggregateText,
  aggregate,
  type Collected,
  type TextFormat,
} from '../../observe/metrics/metric-types.js'
import type { Readiness } from '../ops/readiness.js'
import { onSignals } from '../signals.js'
import type { ToWorker } from './messages.js'
import { WorkerProcess, newSlot, unreadyReason, type Slot } from './worker-handle.js'

/** Time after the drain's own deadline until the remaining workers are killed. */
const KILL_AFTER_MS = 5000
/** A restart fails if a new worker is not ready within this time. */
const SUCCESSOR_MS = 60_000

/** Starts the workers and the handling of signals. */
export function runPrimary<Payload>(options: PrimaryOptions<Payload>): Primary<Payload> {
  const fleet = new Fleet(options)
  onSignals({
    log: options.log,
    drain: async () => {
      options.onDrain?.()
      await fleet.drain()
      await options.closed?.()
    },
    abandon: () => fleet.kill(),
    // Not as a signal: a worker that has just started would open Node's inspector.
    reopened: () => fleet.reopenLogs(),
    ...(options.onRestartSignal === undefined ? {} : { restart: options.onRestartSignal }),
  })
  fleet.start()
  return fleet
}

class Fleet<Payload> implements Primary<Payload> {
  private readonly options: PrimaryOptions<Payload>
  private slots: Slot[]
  /** The slots that a running restart fills; empty if none runs. */
  private successors: Slot[] = []
  /**
   * The successor that a restart waits for; `settle` receives null when it is ready, or why a successor is
   * not.
   */
  private awaited: { slot: Slot; settle: (failure: string | null) => void } | null = null
  /** All running processes, in a slot or draining. */
  private readonly processes = new Map<WorkerProcess, Slot>()
  private former: Promise<unknown> = Promise.resolve()
  private readonly retired = new RetiredMetrics()
  private payload: Payload
  private lastOrder: ToWorker | null = null
  private draining: Promise<void> | null = null
  private hasStarted = false
  private scrape: Promise<Collected[][]> | null = null

  constructor(options: PrimaryOptions<Payload>) {
    this.options = options
    this.payload = options.payload
    this.slots = newSlots(options.workers)
  }

  start(): void {
    // Workers accept from the listening socket themselves, so the primary does not distribute connections.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ execArgv: [...process.execArgv, ...(this.options.execArgv ?? [])] })
    for (const slot of this.slots) this.fill(slot)
    const pingAll = (): void => {
      for (const each of this.processes.keys()) each.ping()
    }
    setInterval(pingAll, this.options.pingMs ?? 1000).unref()
  }

  publish(payload: Payload): void {
    this.payload = payload
    for (const each of this.processes.keys()) each.send({ type: 'config', payload })
  }

  order(order: unknown): void {
    this.lastOrder = { type: 'order', order }
    for (const each of this.processes.keys()) each.send(this.lastOrder)
  }

  tryOut(payload: Payload): Promise<string | null> {
    const ready = this.slots.find((slot) => unreadyReason(slot) === null)
    // A worker that starts later builds it first.
    return ready?.process?.tryOut(payload) ?? Promise.resolve(null)
  }

  /** Concurrent scrapes share one collection. */
  async metrics(format?: TextFormat): Promise<string> {
    this.scrape ??= this.collectAll().finally(() => {
      this.scrape = null
    })
    return aggregateText(await this.scrape, format)
  }

  private async collectAll(): Promise<Collected[][]> {
    const running = [...this.processes.keys()]
    const [own] = await Promise.all([this.options.collect(), ...running.map((each) => each.collect())])
    const counted = [...this.processes.keys()].map((each) => each.counted)
    return [own, ...this.retired.all, ...counted]
  }

  async recent(): Promise<unknown[]> {
    const lists = await Promise.all([...this.processes.keys()].map((each) => each.recent()))
    return lists.flat()
  }

  ready(): Readiness {
    const checks: Record<string, string> = {}
    const degraded = new Set<string>()
    let isServed = false
    let isTroubled = this.draining !== null
    for (const slot of this.slots) {
      const trouble = unreadyReason(slot)
      isServed ||= trouble === null
      // A started worker receives connections; a starting one does not, and the others receive them.
      isTroubled ||= trouble !== null && (slot.process?.state ?? null) !== null
      for (const name of slot.process?.state?.degraded ?? []) degraded.add(name)
      // A ready worker may still have checks that are not `ok`.
      checks[`worker_${String(slot.number)}`] = trouble ?? (slot.process?.failing || 'ok')
    }
    if (this.draining !== null) checks['drain'] = 'draining'
    return { ready: isServed && !isTroubled, degraded: [...degraded], checks }
  }

  workers(): WorkerStatus[] {
    const current = [...this.slots, ...this.successors]
    const statusOf = (slot: Slot, each: WorkerProcess | null, state: string): WorkerStatus => {
      return { worker: slot.number, pid: each?.pid ?? null, state }
    }
    const leaving = [...this.processes].filter(([, slot]) => !current.includes(slot))
    return [
      ...current.map((slot) => statusOf(slot, slot.process, unreadyReason(slot) ?? 'ready')),
      ...leaving.map(([each, slot]) => statusOf(slot, each, 'draining')),
    ]
  }

  async restart({ payload, workers, isSameAddress }: RestartOptions<Payload>): Promise<void> {
    const before = this.payload
    this.payload = payload
    this.successors = newSlots(workers)
    try {
      // In sequence: the workers that serve need the processor too.
      for (const slot of this.successors) await this.startSuccessor(slot)
    } catch (error) {
      this.payload = before
      for (const { process: each } of this.successors) each?.kill()
      this.successors = []
      throw error
    }
    const former = this.slots.flatMap((slot) => this.vacate(slot))
    this.slots = this.successors
    this.successors = []
    this.former = Promise.all(former.map((each) => each.ended))
    for (const each of former) each.drain(this.limitMs, isSameAddress)
  }

  async previousExited(): Promise<void> {
    await this.former
  }

  drain(): Promise<void> {
    this.draining ??= this.endAll()
    return this.draining
  }

  /** Reopens the logs of all workers. */
  reopenLogs(): void {
    for (const each of this.processes.keys()) each.send({ type: 'reopenLog' })
  }

  /** Ends all workers now. */
  kill(): void {
    for (const each of this.processes.keys()) each.kill()
  }

  private get limitMs(): number {
    return this.options.drainMs() + KILL_AFTER_MS
  }

  private async endAll(): Promise<void> {
    for (const { retry } of this.slots) if (retry !== null) clearTimeout(retry)
    const running = [...this.processes.keys()]
    for (const each of running) each.drain(this.limitMs, false)
    await Promise.all(running.map((each) => each.ended))
  }

  private startSuccessor(slot: Slot): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (failure: string | null): void => {
        clearTimeout(timer)
        this.awaited = null
        if (failure === null) resolve()
        else reject(new Error(failure))
      }
      const timeoutReason = `worker not ready within ${String(SUCCESSOR_MS / 1000)} s`
      const timer = setTimeout(() => settle(timeoutReason), SUCCESSOR_MS)
      this.awaited = { slot, settle }
      if (this.draining === null) this.fork(slot)
      else settle('the gateway is shutting down')
    })
  }

  /** Removes the process from its slot, which is not filled again. */
  private vacate(slot: Slot): WorkerProcess[] {
    const { process: running, retry } = slot
    if (retry !== null) clearTimeout(retry)
    slot.process = null
    return running === null ? [] : [running]
  }

  private fill(slot: Slot): void {
    // A restart that succeeds replaces the slot, and one that fails restores the previous configuration.
    if (this.successors.length > 0) slot.retry = setTimeout(() => this.fill(slot), 1000)
    else this.fork(slot)
  }

  private fork(slot: Slot): void {
    slot.retry = null
    const started = new WorkerProcess(slot.number, this.options.log, {
      hello: () => {
        // A drain may have started in the meantime; the worker then never opens a listener.
        if (this.draining !== null) return started.send({ type: 'drain', isReplaced: false })
        started.send({ type: 'config', payload: this.payload })
        if (this.lastOrder !== null) started.send(this.lastOrder)
      },
      reported: ({ ready }) => {
        if (ready) this.isReady(slot)
      },
      requested: (request) => this.options.answer?.(request) ?? Promise.resolve(null),
      exited: (reason) => this.processExited(slot, started, reason),
    })
    slot.process = started
    this.processes.set(started, slot)
  }

  private isReady(slot: Slot): void {
    slot.lastError = null
    if (this.awaited?.slot === slot) this.awaited.settle(null)
    if (this.hasStarted) return
    this.hasStarted = true
    this.options.started?.(null)
  }

  /** Ends the start; the reason is reported when the last worker has exited. */
  private abortStart(reason: string): void {
    this.kill()
    this.draining = this.endAll()
    void this.draining.then(() => this.options.started?.(reason))
  }

  private processExited(slot: Slot, ended: WorkerProcess, reason: string): void {
    this.processes.delete(ended)
    this.retired.add(ended.counted)
    if (slot.process === ended) slot.process = null
    if (this.successors.includes(slot)) this.awaited?.settle(reason)
    else if (this.draining === null && this.slots.includes(slot)) this.refill(slot, ended, reason)
  }

  private refill(slot: Slot, ended: WorkerProcess, reason: string): void {
    const uptimeMs = Date.now() - ended.startedAtMs
    slot.failures = failuresAfter(slot.failures, uptimeMs)
    slot.lastError = reason
    if (!this.hasStarted && this.options.started !== undefined) {
      this.abortStart(reason)
      return
    }
    const delayMs = respawnDelayMs(slot.failures, this.options.respawn)
    this.options.log.warn('worker exited; restarting it', {
      worker: slot.number,
      reason,
      delay_ms: delayMs,
      elapsed_ms: uptimeMs,
    })
    this.options.onReplaced?.(ended.isSilent ? 'silent' : 'ended')
    slot.retry = setTimeout(() => this.fill(slot), delayMs)
  }
}

function newSlots(count: number): Slot[] {
  return Array.from({ length: count }, (_, index) => newSlot(index + 1))
}

interface PrimaryOptions<Payload> {
  workers: number
  /** The configuration in force, for new workers, as JSON. */
  payload: Payload
  log: Logger
  /** Options for each worker's Node, in addition to the primary's. */
  execArgv?: readonly string[]
  /** The primary's own metrics, added to the workers'. */
  collect: () => Promise<Collected[]>
  /** Time for workers to finish their requests; then they are killed. */
  drainMs: () => number
  /**
   * Called once with the outcome of the start: null when the first worker is ready, or the reason if a worker
   * ended before any was ready; then no worker is left and none is restarted. Without this function such a
   * worker is replaced.
   */
  started?: (failure: string | null) => void
  /** The reply to a worker's request, both as JSON. */
  answer?: (request: unknown) => Promise<unknown>
  /** Runs on SIGUSR2; without it the signal is ignored. */
  onRestartSignal?: () => void
  /** Runs when the drain begins. */
  onDrain?: () => void
  /** Runs after the last worker has exited, before the process ends. */
  closed?: () => Promise<void>
  /** The back-off's base and cap; 250 ms and 30 s by default. */
  respawn?: RespawnLimits
  /** Time between pings of a worker; 1 s by default. */
  pingMs?: number
  /** Called for each worker that is replaced: it exited, or was killed because it sent nothing. */
  onReplaced?: (reason: 'ended' | 'silent') => void
}

/** Options of a rolling restart. */
interface RestartOptions<Payload> {
  /** The configuration of the new workers. */
  readonly payload: Payload
  readonly workers: number
  /** Whether the new workers listen on the address of the previous ones. */
  readonly isSameAddress: boolean
}

/** One worker process, for the operator. */
interface WorkerStatus {
  readonly worker: number
  readonly pid: number | null
  /** `ready`, `draining`, or the problem. */
  readonly state: string
}

/** The running primary. */
export interface Primary<Payload> {
  /** Sends a new configuration to every worker, and to later ones. */
  publish(payload: Payload): void
  /** Sends an order to every worker, as JSON. A later worker gets the last one after its configuration. */
  order(order: unknown): void
  /**
   * A ready worker builds the configuration without applying it. Resolves to the reason if that fails, else
   * to null.
   */
  tryOut(payload: Payload): Promise<string | null>
  /** The sum of all processes' metrics, by default in Prometheus's text format. */
  metrics(format?: TextFormat): Promise<string>
  /** The last requests of all worker processes. */
  recent(): Promise<unknown[]>
  /**
   * Ready if at least one worker is ready and every running worker is; lists the others with their last
   * error.
   */
  ready(): Readiness
  /** All worker processes, draining ones last. */
  workers(): WorkerStatus[]
  /**
   * Starts new workers, and drains the previous ones once all new ones are ready. Rejects with the reason if
   * one cannot start; then the previous workers continue, and the caller publishes their configuration again.
   */
  restart(next: RestartOptions<Payload>): Promise<void>
  /** Resolves when the workers from before the last restart have exited. */
  previousExited(): Promise<void>
  /** Drains all workers; resolves when the last has exited. Idempotent. */
  drain(): Promise<void>
}

/** A worker that ran for this long was healthy: the next back-off starts from the base. */
const HEALTHY_MS = 30_000
const DEFAULT_LIMITS: RespawnLimits = { baseMs: 250, capMs: 30_000 }

/** The delay after the first failure, and the longest one. */
interface RespawnLimits {
  readonly baseMs: number
  readonly capMs: number
}

/** The consecutive failures of a slot whose worker has just exited after `livedMs`. */
function failuresAfter(failures: number, livedMs: number): number {
  return livedMs >= HEALTHY_MS ? 1 : failures + 1
}

/**
 * The delay in ms before the worker is started again, after this number of consecutive failures (1 or more).
 * Full jitter on the upper half, so that workers that crashed together do not restart together.
 */
function respawnDelayMs(failures: number, limits = DEFAULT_LIMITS): number {
  const { baseMs, capMs } = limits
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 20))
  return Math.round(ceiling * (0.5 + Math.random() / 2))
}

/** More sets are added up into one. */
const MAX_SETS = 8

/** The metrics of exited processes, without gauges. */
class RetiredMetrics {
  private sets: Collected[][] = []
  private isCompacting = false

  /** One set for each process, or the sum of several. */
  get all(): readonly Collected[][] {
    return this.sets
  }

  /** Adds the last metrics of a process. */
  add(counted: readonly Collected[]): void {
    this.sets.push(counted.filter(({ type }) => type !== 'gauge'))
    void this.compact()
  }

  private async compact(): Promise<void> {
    if (this.isCompacting || this.sets.length < MAX_SETS) return
    this.isCompacting = true
    const batch = [...this.sets]
    try {
      const merged = await aggregate(batch)
      this.sets = [merged, ...this.sets.slice(batch.length)]
    } finally {
      this.isCompacting = false
    }
  }
}
