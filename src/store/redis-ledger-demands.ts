/**
 * Demands as the scripts of the `redis` engine take them, and their answers. Knows no client.
 */
import { unavailable } from './failure.js'
import type { Demand, Standing } from './ledger.js'
import type { Argument } from './redis-link.js'
import { listOf } from './redis-records.js'

/** What a demand holds until it is settled: kind, name, cost, limit, member. */
export type Hold = readonly [Demand['kind'], string, number, number, string]

/**
 * What the script is told of one slice: name, kind, limit, taken, given back, wanted, least; of places
 * after the limit what `tellPlaces` says.
 */
export type Told = readonly [string, string, number, number, number, number, number]

/** Some of the demands, which are of one slot, with their places among all. */
export interface Part {
  readonly slot: string
  readonly demands: readonly Demand[]
  readonly places: readonly number[]
}

/** What a part's script said. */
export interface Answer {
  readonly outcome: 'taken' | 'refused' | 'known'
  readonly standings: readonly Standing[]
  /** Day and month of the reservation. */
  readonly period: readonly [number, number]
}

/** What the script is told of the demands. */
export function argumentsOf(demands: readonly Demand[], member: string): Argument[] {
  const args: Argument[] = []
  demands.forEach((demand, at) => {
    const { limit, cost } = numbersOf(demand)
    args.push(demand.kind, limit, cost, `${member}#${at}`)
  })
  return args
}

/** A demand's limit, and what it takes of it. */
export function numbersOf(demand: Demand): { limit: number; cost: number } {
  switch (demand.kind) {
    case 'requests':
    case 'tokens':
      return { limit: demand.perMinute, cost: demand.cost }
    case 'concurrent':
      return { limit: demand.limit, cost: 1 }
    case 'usd_day':
    case 'usd_month':
      return { limit: demand.limitNanoUsd, cost: demand.costNanoUsd }
  }
}

/** What the script said of the demands; throws where it said nothing. */
export function answerOf(reply: unknown, demands: readonly Demand[]): Answer {
  const [outcome, ...numbers] = listOf(reply).map(Number)
  if (outcome === undefined || numbers.some(Number.isNaN)) {
    throw unavailable('reading limits failed', new Error('the script gave no answer'))
  }
  const standings = demands.map((_, at) => {
    const [limit = 0, remaining = 0, resetMs = 0, retryAfterMs = 0] = numbers.slice(4 * at)
    return { limit, remaining, resetMs, retryAfterMs }
  })
  const [day = 0, month = 0] = numbers.slice(4 * demands.length)
  const named = outcome === 0 ? 'refused' : outcome === 2 ? 'known' : 'taken'
  return { outcome: named, standings, period: [day, month] }
}

/** What other slots of a Cluster hold for a request: where, of which day and month, and what. */
export function sharedOf(text: unknown): [string, [number, number], Hold[]][] {
  if (typeof text !== 'string' || text === '[]') return []
  return JSON.parse(text) as [string, [number, number], Hold[]][]
}
