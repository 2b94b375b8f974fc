/**
 * What wants the same of Redis in one turn of the event loop goes there as one command: a command costs this process
 * and the server several times what one more request in it does. Knows no command.
 */
import { unavailable } from '../../errors.js'

/** More are refused: what waits behind a server that does not answer must not grow for ever. */
const MAX_WAITING = 10_000

/** Something that waits for its command. */
export interface Rejectable {
  reject(error: unknown): void
}

/** Commands under way at once, to one server and to those of a Cluster; what comes meanwhile goes with the next. */
const MAX_UNDER_WAY = { one: 2, cluster: 16 } as const

/** Gathers until the turn is over, then sends slot by slot. */
export class Batches<Item extends Rejectable> {
  private readonly send: (items: readonly Item[]) => Promise<void>
  private readonly maxItems: number
  private readonly maxUnderWay: number
  private readonly slots = new Map<string, Item[]>()
  private waiting = 0
  private underWay = 0
  private isDue = false

  /**
   * So many are one command's, while which the server does nothing else. `send` tells each item what became of it,
   * and never rejects.
   */
  constructor(atOnce: number, isCluster: boolean, send: (items: readonly Item[]) => Promise<void>) {
    this.maxItems = atOnce
    this.maxUnderWay = isCluster ? MAX_UNDER_WAY.cluster : MAX_UNDER_WAY.one
    this.send = send
  }

  /** Items of one slot go together. Rejects the item where too many wait. */
  add(slot: string, item: Item): void {
    if (this.waiting >= MAX_WAITING) {
      item.reject(unavailable('asking failed', new Error(`${MAX_WAITING} requests wait already`)))
      return
    }
    this.waiting += 1
    const items = this.slots.get(slot)
    if (items === undefined) this.slots.set(slot, [item])
    else items.push(item)
    if (this.isDue) return
    this.isDue = true
    setImmediate(() => {
      this.isDue = false
      this.flush()
    })
  }

  private flush(): void {
    for (const [slot, items] of this.slots) {
      if (this.underWay >= this.maxUnderWay) return
      // One that is never empty takes its turn behind the others.
      this.slots.delete(slot)
      const some = items.length <= this.maxItems ? items : items.splice(0, this.maxItems)
      if (some !== items) this.slots.set(slot, items)
      this.waiting -= some.length
      this.underWay += 1
      void this.send(some).finally(() => {
        this.underWay -= 1
        this.flush()
      })
    }
  }
}
