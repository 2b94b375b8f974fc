/**
 * The list of requests in flight, with tens of thousands of changes a second.
 *
 * Not a `Set`: V8 replaces the table of a `Set` every few dozen changes, and each old table references the
 * next one with its items. Once one table is in the old generation of the heap, all later tables and their
 * items stay until the next full garbage collection, which took a fifth of the gateway's processor time.
 */

/** An item of at most one list. */
export interface InFlightItem {
  /** Its position in the list; `NOT_LISTED` if it is in none. Only `InFlightList` writes it. */
  listIndex: number
}

/** The `listIndex` of an item that is in no list. */
export const NOT_LISTED = -1

/** An unordered list that adds and removes in constant time. */
export class InFlightList<T extends InFlightItem> {
  private readonly list: T[] = []

  get size(): number {
    return this.list.length
  }

  /** Does nothing if the item is in the list already. */
  add(flight: T): void {
    if (flight.listIndex !== NOT_LISTED) return
    flight.listIndex = this.list.length
    this.list.push(flight)
  }

  /** Does nothing if the item is not in the list. */
  remove(flight: T): void {
    const { listIndex } = flight
    if (this.list[listIndex] !== flight) return
    const last = this.list.pop()
    if (last !== undefined && last !== flight) {
      this.list[listIndex] = last
      last.listIndex = listIndex
    }
    flight.listIndex = NOT_LISTED
  }

  /**
   * Calls `visit` for each item; it may remove and add items. Items that are added meanwhile are not visited.
   */
  each(visit: (flight: T) => void): void {
    // From the end: an item that moves into a free position has been visited.
    for (let index = this.list.length - 1; index >= 0; index -= 1) {
      const flight = this.list[index]
      if (flight !== undefined) visit(flight)
    }
  }
}
