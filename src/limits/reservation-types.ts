/** The requests, reservations and decisions of the limiter. */
import type { Admission, Demand, LimitState, Raise, Reservation, TakenFrom } from '../store/ledger.js'

/**
 * A request to be admitted. Without `leaseMs` the limiter itself sets how long the reservation is valid, and
 * renews it while the request runs.
 */
export type AdmissionRequest = Omit<Admission, 'leaseMs' | 'isTaken'> & Partial<Pick<Admission, 'leaseMs'>>

/** The reservation of a running request, from its admission to its end. */
export interface LimitReservation {
  readonly admissionRequest: AdmissionRequest
  /** The counters of the store that include it; `nothing` if this process decided alone. */
  taken: TakenFrom
  /**
   * How often `noteRunning` has seen a request that has no reservation in the store; the second time writes
   * one. Null: the store has a reservation, or needs none.
   */
  timesSeen: 0 | 1 | null
  /** Absent until the request takes more than it was admitted with. */
  raised?: RaisedAmounts
}

/** The amounts that a request has reserved in addition to its admission. */
export interface RaisedAmounts {
  readonly byStore: Raise[]
  /** Taken from this process's share while the store was unavailable. */
  readonly locally: Demand[]
  isOver: boolean
}

/**
 * The decision on a request: its reservation, or null if it is refused. `closed`: a budget could not be
 * checked, because the store is unavailable.
 */
export interface Decision {
  readonly limitReservation: LimitReservation | null
  readonly closed: boolean
  readonly limitStates: readonly LimitState[]
}

/** Calls `visit` for the reservation of every running request. */
export type EachReservation = (visit: (limitReservation: LimitReservation) => void) => void

/** The reservation in the form for the ledger; undefined if no limit applies to the request. */
export function storeReservationOf({ admissionRequest, taken }: LimitReservation): Reservation | undefined {
  const { demands } = admissionRequest
  return demands.length === 0 ? undefined : { demands, takenFrom: taken }
}
