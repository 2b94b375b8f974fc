/**
 * Several processes behind one port: the primary starts, feeds, watches and ends the workers.
 * Knows no gateway and no configuration; both are handed in. The primary reads no byte of traffic:
 * it accepts connections only to hand them on, in turn (Node's round robin).
 *
 * A worker says hello, gets the configuration, starts, and then reports its state every second. The
 * primary pings each worker every second, and kills and replaces one that sends nothing for ten pings.
 */
import cluster from 'node:cluster'
import type { Logger } from '../../observe/log/log.js'
import type { Collected } from '../../observe/metrics/metric.js'
import { aggregate, aggregateText } from '../../observe/metrics/registry.js'
import type { Readiness } from '../ops-listener.js'
import { isToPrimary, type ToPrimary, type ToWorker } from './messages.js'
import { failing, newSlot, troubleOf, type Slot } from './slot.js'
import { onSignals } from '../signals.js'

export { runWorker, type WorkerOptions } from './worker.js'

/** What the primary is given. */
export interface PrimaryOptions<Payload> {
  workers: number
  /** The configuration in force; what a new worker starts with. Must survive JSON. */
  payload: Payload
  log: Logger
  /** For each worker's Node, besides what the primary's was given. */
  execArgv?: readonly string[]
  /** The primary's own metrics, added to the workers'. */
  collect: () => Promise<Collected[]>
  /** How long workers may take to finish what they have; afterwards they are killed. */
  drainMs: () => number
  /**
   * Told once how the start went: null when the first worker is ready; the reason where a worker
   * ended before any was, and then no worker is left and none is started again. Where absent such
   * a death is like any other.
   */
  started?: (failure: string | null) => void
  /** What a worker is told that asks how the whole stands. Must survive JSON. */
  answer?: () => Promise<unknown>
  /** Runs after the last worker has gone, before the process ends: close what the primary holds. */
  closed?: () => Promise<void>
  /** The back-off's base and cap; 250 ms and 30 s where absent. */
  respawn?: { baseMs: number; capMs: number }
  /** Time between pings of a worker; 1 s where absent. */
  pingMs?: number
  /** Called for each worker that is replaced: it ended by itself, or was killed because it was silent. */
  onReplaced?: (reason: 'ended' | 'silent') => void
}

/** The running primary, as the program sees it. */
export interface Primary<Payload> {
  /** Gives every worker, and every later one, a new configuration. */
  publish(payload: Payload): void
  /** All processes' metrics as one, in Prometheus's text format. */
  metrics(): Promise<string>
  /** Ready when a worker is, and none that runs is not; names those that are not, with the last error. */
  ready(): Readiness
  /** Ends all workers, gently at first; resolves when the last has gone. Idempotent. */
  drain(): Promise<void>
}

/** A worker that lived this long was healthy: its next death starts the back-off from the base. */
const HEALTHY_MS = 30_000
/**
 * Pings without any message from the worker before it is killed. Pings are counted and not time: a primary
 * that was suspended itself sends one when it resumes, and hears the workers before the next.
 */
const MAX_UNANSWERED = 10
/** The same for a worker that is not ready yet: opening a large store may block its event loop. */
const MAX_UNANSWERED_AT_START = 60
/** A worker that does not give its metrics within this stands in with the last ones it gave. */
const COLLECT_MS = 1000
/** On top of the drain's own deadline, before what is left is killed. */
const KILL_AFTER_MS = 5000

/** More sets of what dead workers counted than this are added up into one. */
const MAX_RETIRED = 8

/**
 * How a worker's C library (glibc) manages memory; variables that the operator has set stay. By default it keeps freed
 * blocks of up to 32 MB: after large bodies a worker then stays at its peak (mallopt(3)).
 */
const WORKER_MEMORY = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' }

/** Starts the workers and the handling of signals. */
export function runPrimary<Payload>(options: PrimaryOptions<Payload>): Primary<Payload> {
  const fleet = new Fleet(options)
  onSignals({
    log: options.log,
    drain: async () => {
      await fleet.drain()
      await options.closed?.()
    },
    abandon: () => fleet.kill(),
  })
  fleet.start()
  return fleet
}

class Fleet<Payload> implements Primary<Payload> {
  private readonly options: PrimaryOptions<Payload>
  private readonly slots: Slot[]
  private payload: Payload
  /** What workers that are gone had counted: counters must not fall. */
  private retired: Collected[][] = []
  private compacting = false
  private draining: Promise<void> | null = null
  private hasStarted = false
  private ended: (() => void) | null = null
  private scrape: Promise<string> | null = null

  constructor(options: PrimaryOptions<Payload>) {
    this.options = options
    this.payload = options.payload
    this.slots = Array.from({ length: options.workers }, (_, index) => newSlot(index + 1))
  }

  start(): void {
    // Workers take connections from the listening socket themselves: a crowd of new ones is not handed on one by one.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ execArgv: [...process.execArgv, ...(this.options.execArgv ?? [])] })
    for (const slot of this.slots) this.fill(slot)
    setInterval(() => this.pingAll(), this.options.pingMs ?? 1000).unref()
  }

  publish(payload: Payload): void {
    this.payload = payload
    for (const slot of this.slots) this.send(slot, { type: 'config', payload })
  }

  /** Scrapes that overlap share one collection. */
  metrics(): Promise<string> {
    this.scrape ??= this.collectAll().finally(() => {
      this.scrape = null
    })
    return this.scrape
  }

  private async collectAll(): Promise<string> {
    const [own] = await Promise.all([
      this.options.collect(),
      ...this.slots.map((slot) => this.ask(slot)),
    ])
    return aggregateText([own, ...this.retired, ...this.slots.map((slot) => slot.counted)])
  }

  ready(): Readiness {
    const checks: Record<string, string> = {}
    let isServed = false
    let isTroubled = this.draining !== null
    for (const slot of this.slots) {
      const trouble = troubleOf(slot)
      isServed ||= trouble === null
      // A worker that has begun is given connections; one that starts is not, and the others take them.
      isTroubled ||= trouble !== null && slot.state !== null
      // A worker that is ready may still have to say that it does without something.
      checks[`worker_${String(slot.number)}`] = trouble ?? (failing(slot) || 'ok')
    }
    if (this.draining !== null) checks['drain'] = 'draining'
    return { ready: isServed && !isTroubled, checks }
  }

  drain(): Promise<void> {
    this.draining ??= this.endAll()
    return this.draining
  }

  /** Ends all workers now. */
  kill(): void {
    for (const slot of this.slots) slot.worker?.process.kill('SIGKILL')
  }

  private async endAll(): Promise<void> {
    const done = new Promise<void>((resolve) => {
      this.ended = resolve
    })
    for (const slot of this.slots) {
      if (slot.retry !== null) clearTimeout(slot.retry)
      this.send(slot, { type: 'drain' })
    }
    this.countDown()
    const timer = setTimeout(() => {
      this.options.log.warn('workers outlived the drain and are killed')
      this.kill()
    }, this.options.drainMs() + KILL_AFTER_MS)
    await done.finally(() => clearTimeout(timer))
  }

  private pingAll(): void {
    for (const slot of this.slots) {
      if (slot.worker === null || slot.isSilent) continue
      const max = slot.state?.ready === true ? MAX_UNANSWERED : MAX_UNANSWERED_AT_START
      if (slot.unanswered < max) {
        slot.unanswered += 1
        this.send(slot, { type: 'ping' })
      } else this.killSilent(slot)
    }
  }

  private killSilent(slot: Slot): void {
    slot.isSilent = true
    slot.failure = `no answer to ${String(slot.unanswered)} pings`
    this.options.log.warn('worker does not answer and is killed', {
      worker: slot.number,
      worker_pid: slot.worker?.process.pid,
      reason: slot.failure,
    })
    slot.worker?.process.kill('SIGKILL')
  }

  private countDown(): void {
    if (this.slots.every((slot) => slot.worker === null)) this.ended?.()
  }

  private fill(slot: Slot): void {
    slot.retry = null
    slot.state = null
    slot.failure = null
    slot.isSilent = false
    slot.unanswered = 0
    slot.startedAtMs = Date.now()
    const worker = cluster.fork({ ...WORKER_MEMORY, ...process.env })
    slot.worker = worker
    const gone = (code: number | null, signal: string | null): void => {
      if (slot.worker === worker) this.gone(slot, code, signal)
    }
    worker.on('message', (message: unknown) => {
      if (isToPrimary(message)) this.heard(slot, message)
    })
    worker.on('error', (error) => {
      this.options.log.error('worker channel', error, { worker: slot.number })
      if (worker.process.pid === undefined) gone(null, null)
    })
    worker.once('exit', (code: number | null, signal: string | null) => {
      // Its last messages may still be in the channel.
      if (worker.isConnected()) worker.once('disconnect', () => gone(code, signal))
      else gone(code, signal)
    })
  }

  private heard(slot: Slot, message: ToPrimary): void {
    slot.unanswered = 0
    switch (message.type) {
      case 'hello':
        // A drain may have begun while it was starting; it then never opens a listener.
        if (this.draining === null) this.send(slot, { type: 'config', payload: this.payload })
        else this.send(slot, { type: 'drain' })
        return
      case 'state':
        slot.state = message.state
        if (message.state.ready) {
          slot.lastError = null
          this.announceStart()
        }
        slot.reportedAtMs = Date.now()
        return
      case 'pong':
        return
      case 'failed':
        slot.failure = message.message
        return
      case 'metrics':
        slot.counted = message.metrics
        slot.answer?.()
        return
      case 'ask':
        void this.tell(slot, message.id)
        return
      default:
        message satisfies never
    }
  }

  private async tell(slot: Slot, id: number): Promise<void> {
    const answer = await (this.options.answer?.() ?? null)
    this.send(slot, { type: 'told', id, answer })
  }

  private announceStart(): void {
    if (this.hasStarted) return
    this.hasStarted = true
    this.options.started?.(null)
  }

  /** Gives the start up: who waits for it hears of it when the last worker has gone. */
  private giveUp(reason: string): void {
    this.kill()
    this.draining = this.endAll()
    void this.draining.then(() => this.options.started?.(reason))
  }

  private gone(slot: Slot, code: number | null, signal: string | null): void {
    slot.worker = null
    slot.state = null
    this.retired.push(slot.counted.filter(({ type }) => type !== 'gauge'))
    slot.counted = []
    slot.answer?.()
    void this.compact()
    if (this.draining === null) this.refill(slot, code, signal)
    else this.countDown()
  }

  private async compact(): Promise<void> {
    if (this.compacting || this.retired.length < MAX_RETIRED) return
    this.compacting = true
    const batch = [...this.retired]
    try {
      const merged = await aggregate(batch)
      this.retired = [merged, ...this.retired.slice(batch.length)]
    } finally {
      this.compacting = false
    }
  }

  private refill(slot: Slot, code: number | null, signal: string | null): void {
    const { baseMs, capMs } = this.options.respawn ?? { baseMs: 250, capMs: 30_000 }
    const lived = Date.now() - slot.startedAtMs
    slot.failures = lived >= HEALTHY_MS ? 1 : slot.failures + 1
    slot.lastError =
      slot.failure ?? (signal === null ? `exit ${String(code)}` : `killed by ${signal}`)
    if (!this.hasStarted && this.options.started !== undefined) {
      this.giveUp(slot.lastError)
      return
    }
    // Full jitter on the upper half, so that workers that died together do not come back together.
    const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(slot.failures - 1, 20))
    const delayMs = Math.round(ceiling * (0.5 + Math.random() / 2))
    this.options.log.warn('worker died; it is started again', {
      worker: slot.number,
      reason: slot.lastError,
      delay_ms: delayMs,
      elapsed_ms: lived,
    })
    this.options.onReplaced?.(slot.isSilent ? 'silent' : 'ended')
    slot.retry = setTimeout(() => this.fill(slot), delayMs)
  }

  private ask(slot: Slot): Promise<void> {
    if (slot.worker === null) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, COLLECT_MS)
      slot.answer = () => {
        clearTimeout(timer)
        slot.answer = null
        resolve()
      }
      this.send(slot, { type: 'collect' })
    })
  }

  private send(slot: Slot, message: ToWorker): void {
    if (slot.worker?.isConnected() === true) slot.worker.send(message)
  }
}
