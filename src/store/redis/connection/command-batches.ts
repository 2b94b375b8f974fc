/**
 * Sends items of one turn of the event loop in one command: a command costs this process and the server
 * several times as much as one more item in it.
 */
import { unavailable } from '../../store-errors.js'

/** Further items are rejected. */
const MAX_WAITING = 10_000
/** Concurrent commands, to one server and to a Cluster; later items go with the next command. */
const MAX_UNDER_WAY = { one: 2, cluster: 16 } as const

/** Sends some items; resolves with the result or the error of each, in their order. */
type Send<Item, Result> = (items: readonly Item[]) => Promise<readonly (Result | Error)[]>

/** An item that waits for its command. */
interface Pending<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Collects items until the turn is over, then sends them slot by slot. */
export class CommandBatches<Item, Result> {
  private readonly send: Send<Item, Result>
  private readonly maxItems: number
  private readonly maxUnderWay: number
  private readonly slots = new Map<string, Pending<Item, Result>[]>()
  private waiting = 0
  private underWay = 0
  private isDue = false

  /** `maxItems` go in one command, which blocks the server. */
  constructor(maxItems: number, isCluster: boolean, send: Send<Item, Result>) {
    this.maxItems = maxItems
    this.maxUnderWay = isCluster ? MAX_UNDER_WAY.cluster : MAX_UNDER_WAY.one
    this.send = send
  }

  /** Sends the item with others of its slot. Rejects with its error, or if too many items wait. */
  add(slot: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.waiting >= MAX_WAITING) {
        const reason = new Error(`${MAX_WAITING} requests wait already`)
        reject(unavailable('sending a batch failed', reason))
        return
      }
      this.waiting += 1
      const items = this.slots.get(slot)
      if (items === undefined) this.slots.set(slot, [{ item, resolve, reject }])
      else items.push({ item, resolve, reject })
      if (this.isDue) return
      this.isDue = true
      setImmediate(() => {
        this.isDue = false
        this.flush()
      })
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
      void this.run(some).then(() => {
        this.underWay -= 1
        this.flush()
      })
    }
  }

  private async run(pending: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      const results = await this.send(pending.map(({ item }) => item))
      for (const [at, { resolve, reject }] of pending.entries()) {
        const result = results[at]
        if (result === undefined || result instanceof Error) reject(result)
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of pending) reject(error)
    }
  }
}
