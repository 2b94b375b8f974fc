/**
 * Runs long work in several turns of the event loop, between which a gateway serves requests. Reads and
 * changes of the dashboard and the admin API share one queue: for any number of them, the requests of the
 * data plane have most iterations and half of the time for themselves. Large bodies of the data plane share
 * another one, without rests, because a client waits for each.
 */
import type { Steps } from './steps.js'

/** Steps run in one turn until they have taken this long together. */
const TURN_MS = 4
/** Iterations of the event loop from one turn to the next: the hops of a request that are served between. */
const EVERY = 4
/** A turn that waited for a core looks longer than it was. */
const MOST_REST_MS = 25

/** Long work that waits for its turns, in the order of arrival. */
class TurnQueue {
  private readonly waiting: (() => void)[] = []
  private readonly hasRests: boolean
  private isScheduled = false

  /** `hasRests`: the queue rests after each turn for as long as it took: half of the time is for others. */
  constructor(hasRests: boolean) {
    this.hasRests = hasRests
  }

  /** Resolves in an iteration of the event loop in which no other work of this queue runs. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
      if (!this.isScheduled) this.schedule(1)
    })
  }

  /** Runs the steps in as many turns as they need, the first one in the next turn. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.next()
      const untilMs = performance.now() + TURN_MS
      do {
        const { done, value } = steps.next()
        if (done === true) return value
      } while (performance.now() < untilMs)
    }
  }

  /** Runs the first step at once, and the others in turns: short work waits for no long one. */
  start<T>(steps: Steps<T>): T | Promise<T> {
    const { done, value } = steps.next()
    return done === true ? value : this.run(steps)
  }

  private schedule(iteration: number): void {
    this.isScheduled = true
    setImmediate(() => {
      if (iteration < EVERY) this.schedule(iteration + 1)
      else this.resume()
    })
  }

  private resume(): void {
    const beganMs = performance.now()
    this.waiting.shift()?.()
    const proceed = (): void => {
      this.isScheduled = this.waiting.length > 0
      if (this.isScheduled) this.schedule(1)
    }
    // The work runs until then.
    setImmediate(() => {
      const restMs = this.hasRests ? Math.min(performance.now() - beganMs, MOST_REST_MS) : 0
      if (restMs < 1) proceed()
      else setTimeout(proceed, restMs)
    })
  }
}

/** The turns of the dashboard and the admin API. */
export const adminTurns = new TurnQueue(true)

/** The turns of large bodies. */
export const bodyTurns = new TurnQueue(false)
