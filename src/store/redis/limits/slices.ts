/**
 * The slices of one process: parts of busy limits that Redis has granted to it in advance, so that a request
 * under them is admitted without a command. Pure; the caller passes the time. How slices work: docs/explanation/redis-store.md.
 */
import type { Demand, LimitState } from '../../ledger.js'
import type { Told } from './encode-demands.js'
import {
  costOf,
  covers,
  isDue,
  isHot,
  LEAST_REQUESTS,
  leftOf,
  limitOf,
  newSlice,
  QUIET_MS,
  roll,
  standingOf,
  tell,
  USABLE_MS,
  WINDOW_MS,
  type FlowSlice,
  type SliceDemand,
} from './counter-slices.js'
import {
  hearPlaces,
  idlePlaces,
  LEAST_PLACES,
  newPlaceSlice,
  rollPlaces,
  takePlace,
  tellPlaces,
  wantsPlaces,
  type PlaceSlice,
} from './concurrency-slices.js'

/** Limits that are watched; 10,000 are some 3 MB. */
const MOST_WATCHED = 10_000

/** Numbers that the scripts answer with for each slice. */
export const NUMBERS = 5

/** A request, as far as slices are concerned. */
export interface SliceRequest {
  readonly accountId: string
  readonly demands: readonly Demand[]
}

/** The slices of one process at one ledger. */
export class Slices {
  private readonly nameOf: (accountId: string, demand: Demand) => string | null
  private readonly slices = new Map<string, FlowSlice | PlaceSlice>()
  /** Words about places so far: numbers never come twice, whatever is forgotten in between. */
  private words = 0
  /** The places in use, by request. */
  private readonly places = new Map<string, readonly PlaceSlice[]>()

  /** `nameOf` tells where a demand is counted; null where there can be no slice of it. */
  constructor(nameOf: (accountId: string, demand: Demand) => string | null) {
    this.nameOf = nameOf
  }

  /**
   * Takes what the demands cost of their slices, or nothing of any; how the limits then stand, at the
   * worst. Null where the ledger has to be asked. Places are the request's until `letGo`.
   */
  take(
    requestId: string,
    accountId: string,
    demands: readonly Demand[],
    nowMs: number,
  ): LimitState[] | null {
    let isCovered = demands.length > 0
    const found: (FlowSlice | PlaceSlice)[] = []
    for (const demand of demands) {
      const slice = this.watch(accountId, demand, nowMs)
      if (slice === null) isCovered = false
      else if (!covers(slice, demand, nowMs)) {
        isCovered = false
        if (slice.kind === 'concurrent') slice.short += 1
      }
      if (slice !== null) found.push(slice)
    }
    if (!isCovered) return null
    for (const [at, slice] of found.entries()) {
      const demand = demands[at]
      // Two rules of one subject may ask for more than there is, together.
      if (demand !== undefined && covers(slice, demand, nowMs)) {
        if (slice.kind === 'concurrent') takePlace(slice)
        else slice.taken += costOf(demand)
        continue
      }
      for (const [before, each] of found.slice(0, at).entries()) {
        const other = demands[before]
        if (each.kind === 'concurrent') each.busy -= 1
        else if (other !== undefined) each.taken -= costOf(other)
      }
      return null
    }
    const places = found.filter((slice) => slice.kind === 'concurrent')
    if (places.length > 0) this.places.set(requestId, places)
    return found.map((slice, at) => standingOf(slice, demands[at], nowMs))
  }

  /** The request has ended: the places that a slice gave it are free. */
  letGo(requestId: string): void {
    for (const slice of this.places.get(requestId) ?? []) slice.busy -= 1
    this.places.delete(requestId)
  }

  /**
   * What is to be told of the slices of these requests with something else, each once; those that there is nothing
   * to say of are left out.
   */
  told(requests: Iterable<SliceRequest>, nowMs: number): Told[] {
    const slices = new Set<FlowSlice | PlaceSlice>()
    if (this.slices.size === 0) return []
    for (const { accountId, demands } of requests) {
      for (const demand of demands) {
        const name = this.nameOf(accountId, demand)
        const slice = name === null ? undefined : this.slices.get(name)
        if (slice !== undefined) slices.add(slice)
      }
    }
    const told: Told[] = []
    for (const slice of slices) {
      if (slice.kind === 'concurrent') {
        rollPlaces(slice, nowMs, WINDOW_MS)
        const isOf = slice.held > 0 || isHot(slice)
        const isDue = nowMs - slice.askedMs >= QUIET_MS || wantsPlaces(slice)
        if (isOf && isDue) told.push(this.tellPlaces(slice, nowMs))
        continue
      }
      roll(slice, nowMs)
      const isOf = leftOf(slice) > 0 || slice.taken > slice.toldTaken || isHot(slice)
      if (isOf && isDue(slice, nowMs)) told.push(tell(slice, nowMs))
    }
    return told
  }

  /** What is to be told for its own sake: slices in use that nobody has spoken of lately, and what is over. */
  overdue(nowMs: number): Told[] {
    const told: Told[] = []
    for (const [name, slice] of this.slices) {
      const isPlaces = slice.kind === 'concurrent'
      if (isPlaces) rollPlaces(slice, nowMs, WINDOW_MS)
      else roll(slice, nowMs)
      const left = isPlaces ? idlePlaces(slice) : leftOf(slice)
      const isIdle = isPlaces ? slice.held === 0 : left === 0 && slice.taken === slice.toldTaken
      if (isIdle) {
        if (nowMs - slice.windowMs >= 2 * WINDOW_MS) this.slices.delete(name)
      } else if (nowMs - slice.askedMs >= WINDOW_MS || (slice.isLow && left > 0)) {
        told.push(isPlaces ? this.tellPlaces(slice, nowMs) : tell(slice, nowMs))
      }
    }
    return told
  }

  /** Everything that is left goes back: nothing more will be taken. */
  ended(nowMs: number): Told[] {
    const told: Told[] = []
    for (const slice of this.slices.values()) {
      if (slice.kind === 'concurrent') {
        if (slice.held > 0)
          told.push(tellPlaces({ ...slice, busy: 0 }, false, nowMs, (this.words += 1)))
        continue
      }
      if (leftOf(slice) === 0 && slice.taken === slice.toldTaken) continue
      slice.count = slice.countBefore = 0
      told.push(tell(slice, nowMs))
    }
    this.slices.clear()
    return told
  }

  /** What Redis answered to what it was told at `askedMs`. */
  heard(told: readonly Told[], numbers: readonly number[], askedMs: number, nowMs: number): void {
    for (const [at, [name, , , taken]] of told.entries()) {
      const slice = this.slices.get(name)
      const from = at * NUMBERS
      if (slice?.kind === 'concurrent') {
        const own = numbers.slice(from, from + NUMBERS)
        if (own.length === NUMBERS) hearPlaces(slice, own, askedMs + USABLE_MS)
        continue
      }
      const granted = numbers[from]
      if (slice === undefined || granted === undefined || !Number.isFinite(granted)) continue
      slice.granted = granted
      slice.used = numbers[from + 1] ?? 0
      slice.held = numbers[from + 2] ?? 0
      slice.leftMs = numbers[from + 3] ?? 0
      slice.isLow = numbers[from + 4] === 1
      slice.heardMs = nowMs
      slice.toldTaken = Math.max(slice.toldTaken, taken)
      slice.usableUntilMs = askedMs + USABLE_MS
    }
  }

  /** The slice of a demand, asked for once more; null where there can be none. */
  private watch(accountId: string, demand: Demand, nowMs: number): FlowSlice | PlaceSlice | null {
    const name = this.nameOf(accountId, demand)
    if (name === null) return null
    if (demand.kind === 'concurrent') return this.watchPlaces(demand.limit, name, nowMs)
    return this.watchFlow(demand, name, nowMs)
  }

  private watchFlow(demand: SliceDemand, name: string, nowMs: number): FlowSlice | null {
    const limit = limitOf(demand)
    const cost = costOf(demand)
    if (limit < cost * LEAST_REQUESTS) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MOST_WATCHED) return null
      slice = newSlice(name, demand.kind, limit, nowMs)
      this.slices.set(name, slice)
    }
    if (slice.kind === 'concurrent') return null
    slice.limit = limit
    roll(slice, nowMs)
    slice.count += 1
    slice.amount += cost
    slice.largest = Math.max(slice.largest, cost)
    return slice
  }

  private tellPlaces(slice: PlaceSlice, nowMs: number): Told {
    return tellPlaces(slice, isHot(slice), nowMs, (this.words += 1))
  }

  private watchPlaces(limit: number, name: string, nowMs: number): PlaceSlice | null {
    if (limit < LEAST_PLACES) return null
    let slice = this.slices.get(name)
    if (slice === undefined) {
      if (this.slices.size >= MOST_WATCHED) return null
      slice = newPlaceSlice(name, limit, nowMs, this.words + 1)
      this.slices.set(name, slice)
    }
    if (slice.kind !== 'concurrent') return null
    slice.limit = limit
    rollPlaces(slice, nowMs, WINDOW_MS)
    slice.count += 1
    return slice
  }
}
