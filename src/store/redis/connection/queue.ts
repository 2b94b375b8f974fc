/**
 * Limits how many commands are under way on a connection. The others wait here, where no timeout runs: a burst is
 * not taken for a slow server, and a server that hangs is found by the first commands.
 */
import { unavailable } from '../../errors.js'

const MAX_UNDER_WAY = 16
const MAX_WAITING = 10_000

/** The commands of one connection. */
export class Queue {
  private readonly isEnded: () => boolean
  private underWay = 0
  private readonly waiting: (() => void)[] = []

  /** While `isEnded` returns true, nobody waits. */
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

  /** A command is sent; `left` follows when it has its answer. */
  enter(): void {
    this.underWay += 1
  }

  leave(): void {
    this.underWay -= 1
    if (this.isEnded()) for (const go of this.waiting.splice(0)) go()
    else this.waiting.shift()?.()
  }
}
