/**
 * Runs rolling restarts of the workers in sequence. Requests for a restart while another one waits share it.
 */
import type { Logger } from '../observe/log.js'

/** The steps of a rolling restart. */
export interface RestartSteps {
  /** Resolves when the workers that the last restart replaced have exited. */
  readonly ready: () => Promise<void>
  /** Replaces the workers; rejects, with the previous workers in place, if the new ones cannot serve. */
  readonly replace: () => Promise<void>
  readonly log: Logger
}

/** The progress of restarts, for the ops port. */
export interface RestartState {
  /** Restarts requested since the start. */
  readonly asked: number
  /** Restarts that succeeded or failed. */
  readonly settled: number
  /** Why the last one failed; null if it succeeded. */
  readonly failure: string | null
}

/** Accepts requests for restarts. */
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
