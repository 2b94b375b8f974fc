/**
 * Limits the concurrent commands of a connection. The others wait here without a timeout: a burst must not
 * look like a slow server.
 */
import { unavailable } from '../../errors.js'

const MAX_UNDER_WAY = 16
const MAX_WAITING = 10_000

/** The commands of one connection. */
export class Queue {
  private readonly isEnded: () => boolean
  private readonly waiting: (() => void)[] = []
  private underWay = 0

  /** While `isEnded` returns true, no command waits. */
  constructor(isEnded: () => boolean) {
    this.isEnded = isEnded
  }

  /**
   * Resolves when the command may be sent; call `leave` when it has its reply. Rejects with
   * `GatewayError(store_unavailable)` if too many wait.
   */
  async enter(what: string): Promise<void> {
    if (this.waiting.length >= MAX_WAITING) {
      throw unavailable(`${what} failed`, new Error(`${MAX_WAITING} commands wait already`))
    }
    while (this.underWay >= MAX_UNDER_WAY && !this.isEnded()) {
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    this.underWay += 1
  }

  leave(): void {
    this.underWay -= 1
    const count = this.isEnded() ? this.waiting.length : 1
    for (const go of this.waiting.splice(0, count)) go()
  }
}
