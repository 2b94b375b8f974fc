/**
 * Demands as the scripts of the `redis` engine take them. Knows no client.
 */
import { isPlain, quote } from '../../../wire/json/quote.js'
import type { Demand } from '../../ledger.js'
import { slotPrefix } from '../ledger/key-names.js'

/** What a demand holds until it is settled: kind, name, cost, limit, member. */
export type Hold = readonly [Demand['kind'], string, number, number, string]

/**
 * What the script is reports of one slice: name, kind, limit, taken, given back, wanted, least; of places
 * after the limit what `tellPlaces` says.
 */
export type SliceReport = readonly [string, string, number, number, number, number, number]

/**
 * The text of the `Hold`s of these demands. `member` is what their places begin with. Made anew each time: what a
 * process has kept of ten thousand keys is in no cache of its processor. Of as few pieces as can be, since each is
 * paid for when it is added and when the whole is sent.
 */
export function encodeHolds(accountId: string, demands: readonly Demand[], member: string): string {
  let text = '['
  let last: Demand | null = null
  let [opening, ending] = ['', '']
  for (const [at, demand] of demands.entries()) {
    const { kind, shared, subject } = demand
    // What a rule limits follows each other, and is of one subject.
    if (last?.subject !== subject || last.shared !== shared) {
      // Looked at before they are joined: a text that is joined is copied to be looked at.
      const areBothPlain = isPlain(accountId) && isPlain(subject)
      const slot = slotPrefix(accountId, demand)
      opening = areBothPlain ? `"${slot}:` : quote(`${slot}:`).slice(0, -1)
      ending = areBothPlain ? `:${subject}",` : `${quote(`:${subject}`).slice(1)},`
    }
    last = demand
    const { limit, cost } = amountsOf(demand)
    const end = kind === 'concurrent' ? `,${quote(member).slice(0, -1)}#${at}"]` : ',""]'
    text += `${at === 0 ? '' : ','}${HEADS[kind]}${opening}${kind}${ending}${cost},${limit}${end}`
  }
  return `${text}]`
}

const HEADS: Readonly<Record<Demand['kind'], string>> = {
  requests: '["requests",',
  tokens: '["tokens",',
  concurrent: '["concurrent",',
  usd_day: '["usd_day",',
  usd_month: '["usd_month",',
}

/** A demand's limit, and what it takes of it. */
export function amountsOf(demand: Demand): { limit: number; cost: number } {
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
export function parseSharedHolds(text: unknown): [string, [number, number], Hold[]][] {
  if (typeof text !== 'string' || text === '[]') return []
  return JSON.parse(text) as [string, [number, number], Hold[]][]
}
