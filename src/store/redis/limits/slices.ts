/**
 * What this process has set aside of limits that it asks for all the time, so that a request under them is
 * let run without a word to Redis. Pure but for its own counts; who calls says what time it is.
 *
 * A slice is a part of a rate or a budget that Redis has granted: there it counts as used, so that all
 * processes together never pass a limit. How much was taken of it, and given back, is told in totals, which
 * may be told twice. It may be used for `USABLE_MS` after it was asked for, half as long as Redis keeps it.
 * Places do not flow; how they are kept is in `place-slices.ts`.
 */
import { budgetStanding, drained, rateStanding, UNITS } from '../../../limits/bucket.js'
import type { BudgetDemand, Claim, Demand, RateDemand, Standing } from '../../ledger.js'
import type { Told } from './demands.js'
/** As long as Redis keeps a slice that it does not hear of (scripts/limits/slice.lua). */
const SLICE_MS = 10_000
import {
  hasPlace,
  hearPlaces,
  idlePlaces,
  LEAST_PLACES,
  newPlaceSlice,
  placesStanding,
  rollPlaces,
  takePlace,
  tellPlaces,
  wantsPlaces,
  type PlaceSlice,
} from './place-slices.js'
import { Heat, HOT, WINDOW_MS } from './slice-heat.js'

/** How long a slice may be used without Redis having answered. */
export const USABLE_MS = SLICE_MS / 2
/** How long a settlement need not speak of a slice that there is enough of. */
const QUIET_MS = 250
/** All slices of a limit hold a hundredth of it, and one process half of that: for less than this many no slice fits. */
const LEAST_REQUESTS = 200
/** Limits that are watched; 10,000 are some 3 MB. */
const MOST_WATCHED = 10_000

/** A demand of which there can be a slice: what flows or is spent, not what is held. */
export type SliceDemand = RateDemand | BudgetDemand

/** Numbers that the scripts answer with for each slice. */
export const NUMBERS = 5

/** A limit that this process asks for. */
interface Slice {
  readonly name: string
  readonly kind: SliceDemand['kind']
  limit: number
  /** All in all, since this process began; what is left of it is `granted - taken - givenBack`. */
  granted: number
  taken: number
  givenBack: number
  /** As far as Redis has been told. */
  toldTaken: number
  usableUntilMs: number
  askedMs: number
  /** How the limit stood, and when this was heard. */
  used: number
  held: number
  leftMs: number
  heardMs: number
  isLow: boolean
  /** What was asked for in the running window, and in the one before. */
  windowMs: number
  count: number
  amount: number
  countBefore: number
  amountBefore: number
  /** Of one request. */
  largest: number
}

/** A request, as far as slices are concerned. */
export interface SliceRequest {
  readonly accountId: string
  readonly demands: readonly Demand[]
  /** What it was let run by; null where nobody knows. */
  readonly taken: Claim['taken'] | null
}

/** The slices of one process at one ledger. */
export class Slices {
  private readonly nameOf: (accountId: string, demand: Demand) => string | null
  private readonly heat = new Heat()
  private readonly slices = new Map<string, Slice | PlaceSlice>()
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
  ): Standing[] | null {
    let isCovered = demands.length > 0
    const found: (Slice | PlaceSlice)[] = []
    let subject: string | null = null
    let isHot = false
    for (const demand of demands) {
      // What a rule limits follows each other, and is of one subject.
      if (demand.subject !== subject) isHot = this.heat.add(demand.subject, nowMs)
      subject = demand.subject
      const slice = isHot ? this.watch(accountId, demand, nowMs) : null
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
    const slices = new Set<Slice | PlaceSlice>()
    if (this.slices.size === 0) return []
    for (const { accountId, demands, taken } of requests) {
      for (const demand of demands) {
        // What goes back to a slice goes there after it has been told of.
        if (taken !== 'slice' && !this.heat.isHot(demand.subject, nowMs)) continue
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
  private watch(accountId: string, demand: Demand, nowMs: number): Slice | PlaceSlice | null {
    const name = this.nameOf(accountId, demand)
    if (name === null) return null
    if (demand.kind === 'concurrent') return this.watchPlaces(demand.limit, name, nowMs)
    return this.watchFlow(demand, name, nowMs)
  }

  private watchFlow(demand: SliceDemand, name: string, nowMs: number): Slice | null {
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

function newSlice(name: string, kind: SliceDemand['kind'], limit: number, nowMs: number): Slice {
  return {
    name,
    kind,
    limit,
    granted: 0,
    taken: 0,
    givenBack: 0,
    toldTaken: 0,
    usableUntilMs: Number.NEGATIVE_INFINITY,
    askedMs: Number.NEGATIVE_INFINITY,
    used: 0,
    held: 0,
    leftMs: 0,
    heardMs: nowMs,
    isLow: false,
    windowMs: nowMs,
    count: 0,
    amount: 0,
    countBefore: 0,
    amountBefore: 0,
    largest: 0,
  }
}

/** Counts what is told as asked for now; gives back what is more than twice what is wanted. */
function tell(slice: Slice, nowMs: number): Told {
  const want = wantOf(slice)
  const left = leftOf(slice)
  if (slice.isLow || left > 2 * want) slice.givenBack += left - (slice.isLow ? 0 : want)
  slice.askedMs = nowMs
  const { name, kind, limit, taken, givenBack, largest } = slice
  return [name, kind, limit, taken, givenBack, want, largest]
}

/**
 * Whether a settlement has to speak of it: there is too little, it is long ago, or some of it goes back with
 * the settlement, which has to be there for that.
 */
function isDue(slice: Slice, nowMs: number): boolean {
  if (slice.kind !== 'requests' && slice.taken > slice.toldTaken) return true
  return nowMs - slice.askedMs >= QUIET_MS || 2 * leftOf(slice) < wantOf(slice)
}

/** Half of what a second takes, and two requests at the least. */
function wantOf(slice: Slice): number {
  if (!isHot(slice)) return 0
  const { amount, amountBefore, largest } = slice
  return Math.max(2 * largest, Math.ceil(Math.max(amount, amountBefore) / 2))
}

function isHot({ count, countBefore }: Slice | PlaceSlice): boolean {
  return Math.max(count, countBefore) >= HOT
}

function leftOf({ granted, taken, givenBack }: Slice): number {
  return Math.max(0, granted - taken - givenBack)
}

function covers(slice: Slice | PlaceSlice, demand: Demand, nowMs: number): boolean {
  if (slice.kind === 'concurrent') return hasPlace(slice, nowMs)
  return nowMs < slice.usableUntilMs && !slice.isLow && leftOf(slice) >= Math.max(1, costOf(demand))
}

function roll(slice: Slice, nowMs: number): void {
  const sinceMs = nowMs - slice.windowMs
  if (sinceMs < WINDOW_MS) return
  const isNext = sinceMs < 2 * WINDOW_MS
  slice.countBefore = isNext ? slice.count : 0
  slice.amountBefore = isNext ? slice.amount : 0
  if (!isNext) slice.largest = 0
  slice.windowMs = nowMs
  slice.count = slice.amount = 0
}

/** As it stood when it was last heard of; what others did since is in what is held, or will be heard of. */
function standingOf(
  slice: Slice | PlaceSlice,
  demand: Demand | undefined,
  nowMs: number,
): Standing {
  if (slice.kind === 'concurrent') return placesStanding(slice)
  const { limit, used, held, leftMs, heardMs } = slice
  const elapsedMs = Math.max(0, nowMs - heardMs)
  const cost = demand === undefined ? 0 : costOf(demand)
  const isRate = slice.kind === 'requests' || slice.kind === 'tokens'
  const standing = isRate
    ? rateStanding(Math.ceil(drained(used, elapsedMs, limit)) + held * UNITS, limit, cost)
    : budgetStanding(used + held, 0, limit, cost, Math.ceil(Math.max(0, leftMs - elapsedMs)))
  return { ...standing, retryAfterMs: 0 }
}

function limitOf(demand: SliceDemand): number {
  return 'perMinute' in demand ? demand.perMinute : demand.limitNanoUsd
}

function costOf(demand: Demand): number {
  if (demand.kind === 'concurrent') return 0
  return 'cost' in demand ? demand.cost : demand.costNanoUsd
}
