/** Rolling restarts of the workers, one after the other. Those asked for while one waits for its turn share it. */
import type { Logger } from '../observe/log/log.js'

/** What a rolling restart consists of. */
export interface RestartSteps {
  /** Resolves when a restart may begin: the workers that the last one replaced are gone. */
  readonly turn: () => Promise<void>
  /** Replaces the workers; rejects, with everything as it was, if the new ones cannot serve. */
  readonly replace: () => Promise<void>
  readonly log: Logger
}

/** How far restarts are, as the ops port shows it. */
export interface RestartState {
  /** How many were asked for since the start. */
  readonly asked: number
  /** How many of these are done or have failed. */
  readonly settled: number
  /** Why the last one failed; null if it succeeded. */
  readonly failure: string | null
}

/** Takes requests for restarts. */
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

  /** Begins a restart, or the next one when the present one is over. */
  ask(): void {
    this.asked += 1
    if (!this.isRunning) void this.run()
  }

  private async run(): Promise<void> {
    this.isRunning = true
    while (this.settled < this.asked) {
      await this.steps.turn()
      const covered = this.asked
      this.failure = await this.once()
      this.settled = covered
    }
    this.isRunning = false
  }

  private async once(): Promise<string | null> {
    const { log, replace } = this.steps
    const sinceMs = performance.now()
    try {
      await replace()
      log.info('rolling restart done', { elapsed_ms: performance.now() - sinceMs })
      return null
    } catch (error) {
      log.error('rolling restart failed; the former workers stay', error)
      return error instanceof Error ? error.message : String(error)
    }
  }
}
