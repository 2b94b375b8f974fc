/**
 * Sends items of one turn of the event loop in one command: a command costs this process and the server several times
 * as much as one more item in it.
 */
import { unavailable } from '../../errors.js'

/** Further items are rejected. */
const MAX_WAITING = 10_000

/** An item that waits for its command. */
export interface Rejectable {
  reject(error: unknown): void
}

/** Concurrent commands, to one server and to a Cluster; later items go with the next command. */
const MAX_UNDER_WAY = { one: 2, cluster: 16 } as const

/** Collects items until the turn is over, then sends them slot by slot. */
export class Batches<Item extends Rejectable> {
  private readonly send: (items: readonly Item[]) => Promise<void>
  private readonly maxItems: number
  private readonly maxUnderWay: number
  private readonly slots = new Map<string, Item[]>()
  private waiting = 0
  private underWay = 0
  private isDue = false

  /**
   * `maxItems` go in one command, which blocks the server. `send` settles each item, and never rejects.
   */
  constructor(atOnce: number, isCluster: boolean, send: (items: readonly Item[]) => Promise<void>) {
    this.maxItems = atOnce
    this.maxUnderWay = isCluster ? MAX_UNDER_WAY.cluster : MAX_UNDER_WAY.one
    this.send = send
  }

  /** Adds an item to those of its slot. Rejects the item if too many wait. */
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
      // To the end of the map, so that a busy slot does not block the others.
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
