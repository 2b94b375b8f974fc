/** What the program hands to the primary of a cluster, and what it gets: `cluster.ts` runs it. */
import type { Logger } from '../../observe/log/log.js'
import type { Collected } from '../../observe/metrics/metric.js'
import type { Readiness } from '../ops/ops-listener.js'

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
   * Called once with the outcome of the start: null when the first worker is ready, or why a worker ended before
   * any was ready; then no worker is left and none is started again. Without it such a worker is replaced.
   */
  started?: (failure: string | null) => void
  /** The answer to a worker's question. Both must survive JSON. */
  answer?: (question: unknown) => Promise<unknown>
  /** Runs on SIGUSR2; without it the signal is ignored. */
  onRestartSignal?: () => void
  /** Runs when the drain begins. */
  onDrain?: () => void
  /** Runs after the last worker has gone, before the process ends: close what the primary holds. */
  closed?: () => Promise<void>
  /** The back-off's base and cap; 250 ms and 30 s by default. */
  respawn?: { baseMs: number; capMs: number }
  /** Time between pings of a worker; 1 s by default. */
  pingMs?: number
  /** Called for each worker that is replaced: it ended by itself, or was killed because it was silent. */
  onReplaced?: (reason: 'ended' | 'silent') => void
}

/** What a rolling restart changes. */
export interface Succession<Payload> {
  /** The configuration that the new workers start with. */
  readonly payload: Payload
  readonly workers: number
  /** True if the new workers listen on the address of the former ones. */
  readonly isSameAddress: boolean
}

/** One worker process, for the operator. */
export interface WorkerStatus {
  readonly worker: number
  readonly pid: number | null
  /** `ready`, `draining`, or what is wrong. */
  readonly state: string
}

/** The running primary, as the program sees it. */
export interface Primary<Payload> {
  /** Gives every worker, and every later one, a new configuration. */
  publish(payload: Payload): void
  /** Gives every worker an order. A later worker gets the last one after its configuration. Must survive JSON. */
  order(order: unknown): void
  /** Has a ready worker build a configuration, without putting it in force; why that fails, or null. */
  tryOut(payload: Payload): Promise<string | null>
  /** All processes' metrics as one, in Prometheus's text format. */
  metrics(): Promise<string>
  /** The last requests of all worker processes. */
  recent(): Promise<unknown[]>
  /** Ready when a worker is, and none that runs is not; names those that are not, with the last error. */
  ready(): Readiness
  /** All worker processes, those that drain last. */
  workers(): WorkerStatus[]
  /**
   * Starts new workers, and drains the former ones once all of the new ones are ready. Rejects with the reason if one
   * cannot start; the former workers then go on as before, and the caller publishes their configuration again.
   */
  restart(next: Succession<Payload>): Promise<void>
  /** Resolves when no worker of before the last restart is left. */
  formerGone(): Promise<void>
  /** Ends all workers, gently at first; resolves when the last has gone. Idempotent. */
  drain(): Promise<void>
}
