/**
 * Rolling restarts: new workers with the newest files replace the running ones without a refused connection.
 * Settings that need a restart take effect, including those of the ops port.
 */
import type { Snapshot } from '../../config/config.js'
import type { ConfigSource } from '../../config/generations/config-source.js'
import type { Logger } from '../../observe/log.js'
import type { Ops } from '../ops/ops-listener.js'
import type { Generation } from '../serve-worker.js'
import type { Primary } from './primary.js'

/** What a rolling restart replaces, and with what. */
interface Restarted {
  readonly source: ConfigSource
  readonly log: Logger
  readonly fleet: Primary<Generation>
  readonly ops: Ops
  /** What workers get of the configuration. */
  readonly payloadOf: (snapshot: Snapshot) => Generation
}

export function rollingRestarts({ source, log, fleet, ops, payloadOf }: Restarted): Restarts {
  const replace = async (): Promise<void> => {
    await source.reload()
    const running = source.current().config.server
    const revert = source.takeWaiting()
    const snapshot = source.current()
    const { server } = snapshot.config
    log.info('rolling restart begins', { workers: server.workers })
    const isSameAddress = running.host === server.host && running.port === server.port
    const movesOps = running.opsHost !== server.opsHost || running.opsPort !== server.opsPort
    try {
      log.changeTo(snapshot.config.log)
      if (movesOps) await ops.move({ host: server.opsHost, port: server.opsPort })
      const payload = payloadOf(snapshot)
      await fleet.restart({ payload, workers: server.workers, isSameAddress })
    } catch (error) {
      revert()
      log.changeTo(source.current().config.log)
      if (movesOps) await ops.move({ host: running.opsHost, port: running.opsPort })
      fleet.publish(payloadOf(source.current()))
      throw error
    }
    await source.announce({ opsHost: server.opsHost, opsPort: ops.port })
  }
  return new Restarts({ ready: () => fleet.previousExited(), replace, log })
}

/** The steps of a rolling restart. */
interface RestartSteps {
  /** Resolves when the workers that the last restart replaced have exited. */
  readonly ready: () => Promise<void>
  /** Replaces the workers; rejects, with the previous workers in place, if the new ones cannot serve. */
  readonly replace: () => Promise<void>
  readonly log: Logger
}

/** The progress of restarts, for the ops port. */
interface RestartState {
  /** Restarts requested since the start. */
  readonly asked: number
  /** Restarts that succeeded or failed. */
  readonly settled: number
  /** Why the last one failed; null if it succeeded. */
  readonly failure: string | null
}

/** Runs requested restarts in sequence; requests while another one waits share the next restart. */
export class Restarts {
  private readonly steps: RestartSteps
  private asked = 0
  private settled = 0
  private failure: string | null = null
  private isRunning = false

  constructor(steps: RestartSteps) {
    this.steps = steps
  }

  get state(): RestartState {
    const { asked, settled, failure } = this
    return { asked, settled, failure }
  }

  /** Starts a restart, or schedules one after the running restart. */
  request(): void {
    this.asked += 1
    if (!this.isRunning) void this.run()
  }

  private async run(): Promise<void> {
    this.isRunning = true
    while (this.settled < this.asked) {
      await this.steps.ready()
      const requested = this.asked
      this.failure = await this.runOnce()
      this.settled = requested
    }
    this.isRunning = false
  }

  private async runOnce(): Promise<string | null> {
    const { log, replace } = this.steps
    const sinceMs = performance.now()
    try {
      await replace()
      log.info('rolling restart done', { elapsed_ms: performance.now() - sinceMs })
      return null
    } catch (error) {
      log.error('rolling restart failed; the previous workers continue', error)
      return error instanceof Error ? error.message : String(error)
    }
  }
}
