/**
 * The form in which scripts get the demands of requests and the reports of slices.
 */
import type { Demand } from '../../ledger.js'
import { windowAmounts } from '../../limit-arithmetic.js'
import { limitKey, slotPrefix } from '../ledger/ledger-keys.js'

/**
 * What a request holds of a limit until it is settled: kind, key, cost, limit, member, and for an amount that
 * never resets how long it is kept without requests, in ms.
 */
export type Hold = readonly [Demand['kind'], string, number, number, string, number?]

/** The holds of a request in another slot of a Cluster: slot, day and month (the week follows), holds. */
export type SharedHolds = readonly [string, readonly [number, number], readonly Hold[]]

/**
 * The report of one slice: key, kind, limit, taken, returned, wanted amount, minimum. For concurrent requests
 * the numbers after the limit are those of `ConcurrencySlice.report`.
 */
export type SliceReport = readonly [string, string, number, number, number, number, number]

/** No unit was used, as scripts read it. */
export const NO_UNITS = '*=0'

/** The holds of these demands; `member` is the beginning of their members in sets of concurrent requests. */
export function holdsOf(accountId: string, demands: readonly Demand[], member: string): Hold[] {
  return demands.map((demand, at) => {
    const { kind, subject } = demand
    const { limit, cost } = amountsOf(demand)
    const key = limitKey(slotPrefix(accountId, demand), kind, subject)
    if ('keepMs' in demand) return [kind, key, cost, limit, '', demand.keepMs]
    return [kind, key, cost, limit, kind === 'concurrent' ? `${member}#${at}` : '']
  })
}

/** A demand's limit and cost. */
export function amountsOf(demand: Demand): { limit: number; cost: number } {
  if ('perMinute' in demand) return { limit: demand.perMinute, cost: demand.cost }
  switch (demand.kind) {
    case 'concurrent':
      return { limit: demand.limit, cost: 1 }
    default:
      return windowAmounts(demand)
  }
}

/** Parses the shared holds of a reservation; none if it has none. */
export function parseSharedHolds(text: unknown): SharedHolds[] {
  return typeof text === 'string' ? (JSON.parse(text) as SharedHolds[]) : []
}
