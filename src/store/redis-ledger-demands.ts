/**
 * Demands as the scripts of the `redis` engine take them. Knows no client.
 */
import { quote } from '../wire/quote.js'
import type { Demand } from './ledger.js'
import { slotOf } from './redis-ledger-layout.js'

/** What a demand holds until it is settled: kind, name, cost, limit, member. */
export type Hold = readonly [Demand['kind'], string, number, number, string]

/**
 * What the script is told of one slice: name, kind, limit, taken, given back, wanted, least; of places
 * after the limit what `tellPlaces` says.
 */
export type Told = readonly [string, string, number, number, number, number, number]

/**
 * The text of the `Hold`s of these demands. `member` is what their places begin with. Made anew each time: what a
 * process has kept of ten thousand keys is in no cache of its processor.
 */
export function holdsText(accountId: string, demands: readonly Demand[], member: string): string {
  let text = ''
  let last: Demand | null = null
  let [opening, ending] = ['', '']
  for (const [at, demand] of demands.entries()) {
    const { kind, shared, subject } = demand
    // What a rule limits follows each other, and is of one subject.
    if (last?.subject !== subject || last.shared !== shared) {
      opening = quote(`${slotOf(accountId, demand)}:`).slice(0, -1)
      ending = quote(`:${subject}`).slice(1)
    }
    last = demand
    const { limit, cost } = numbersOf(demand)
    const place = kind === 'concurrent' ? quote(`${member}#${at}`) : '""'
    text += `${at === 0 ? '' : ','}["${kind}",${opening}${kind}${ending},${cost},${limit},${place}]`
  }
  return `[${text}]`
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

/** What other slots of a Cluster hold for a request: where, of which day and month, and what. */
export function sharedOf(text: unknown): [string, [number, number], Hold[]][] {
  if (typeof text !== 'string' || text === '[]') return []
  return JSON.parse(text) as [string, [number, number], Hold[]][]
}
