/**
 * Those that are under way at the moment: entered and left tens of thousands of times a second.
 *
 * Not a `Set`: V8 makes a new table for one every few dozen changes, and the old table holds the new one and
 * whoever was in it. Once a single table has grown old, all that come after it, with every request in
 * them, live until the next full collection: a fifth of the gateway's processor time went there.
 */

/** Who can be in flight, in one listIndex at a time. */
export interface InFlightItem {
  /** Where it is in the list; `NOT_LISTED` where it is in none. Only `InFlightList` writes it. */
  listIndex: number
}

/** The `listIndex` of one that is in no list. */
export const NOT_LISTED = -1

/** A list without order, that is entered and left in constant time. */
export class InFlightList<T extends InFlightItem> {
  private readonly list: T[] = []

  get size(): number {
    return this.list.length
  }

  /** Once, until `remove`. */
  add(flight: T): void {
    if (flight.listIndex !== NOT_LISTED) return
    flight.listIndex = this.list.length
    this.list.push(flight)
  }

  /** Where it is not there, nothing happens. */
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

  /** Calls `visit` for each; it may remove any, and add. One that is added meanwhile is not visited. */
  each(visit: (flight: T) => void): void {
    // From the end: whoever takes the listIndex of one that leaves has been visited.
    for (let at = this.list.length - 1; at >= 0; at -= 1) {
      const flight = this.list[at]
      if (flight !== undefined) visit(flight)
    }
  }
}
