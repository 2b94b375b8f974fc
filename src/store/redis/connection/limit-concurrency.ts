/**
 * Limits the concurrent commands of a connection. The others wait here without a timeout: a burst must not look like a
 * slow server.
 */
import { unavailable } from '../../errors.js'

const MAX_UNDER_WAY = 16
const MAX_WAITING = 10_000

/** The commands of one connection. */
export class Queue {
  private readonly isEnded: () => boolean
  private underWay = 0
  private readonly waiting: (() => void)[] = []

  /** While `isEnded` returns true, no command waits. */
  constructor(isEnded: () => boolean) {
    this.isEnded = isEnded
  }

  /** True if a command has to wait for its turn. */
  get isFull(): boolean {
    return this.underWay >= MAX_UNDER_WAY
  }

  /** Resolves when there is room. Rejects with `GatewayError(store_unavailable)` if too many wait. */
  async waitForRoom(what: string): Promise<void> {
    if (this.waiting.length >= MAX_WAITING) {
      throw unavailable(`${what} failed`, new Error(`${MAX_WAITING} commands wait already`))
    }
    while (this.isFull && !this.isEnded()) {
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
  }

  /** A command is sent; call `leave` when it has its reply. */
  enter(): void {
    this.underWay += 1
  }

  leave(): void {
    this.underWay -= 1
    if (this.isEnded()) for (const go of this.waiting.splice(0)) go()
    else this.waiting.shift()?.()
  }
}
