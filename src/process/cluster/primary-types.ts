/** The options and the interface of a cluster's primary; `primary.ts` implements it. */
import type { Logger } from '../../observe/log/log.js'
import type { Collected } from '../../observe/metrics/metric.js'
import type { Readiness } from '../ops/readiness.js'
import type { RespawnLimits } from './respawn-delay.js'

/** Options of the primary. */
export interface PrimaryOptions<Payload> {
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
export interface RestartOptions<Payload> {
  /** The configuration of the new workers. */
  readonly payload: Payload
  readonly workers: number
  /** Whether the new workers listen on the address of the previous ones. */
  readonly isSameAddress: boolean
}

/** One worker process, for the operator. */
export interface WorkerStatus {
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
  /** The sum of all processes' metrics, in Prometheus's text format. */
  metrics(): Promise<string>
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
