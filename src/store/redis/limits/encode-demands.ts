/**
 * Encodes demands for the scripts.
 */
import { isPlain, quote } from '../../../wire/json/quote.js'
import type { Demand } from '../../ledger.js'
import { slotPrefix } from '../ledger/key-names.js'

/** What a request holds of a limit until it is settled: kind, key, cost, limit, member. */
export type Hold = readonly [Demand['kind'], string, number, number, string]

/**
 * The report of one slice: key, kind, limit, taken, returned, wanted amount, minimum. For concurrent requests the numbers
 * after the limit are those of `reportConcurrencySlice`.
 */
export type SliceReport = readonly [string, string, number, number, number, number, number]

/**
 * The `Hold`s of these demands as JSON. `member` is the beginning of their members. Not cached: cached texts of ten
 * thousand keys do not fit the processor's caches. Joined from few strings: each one costs time here and when the
 * command is sent.
 */
export function encodeHolds(accountId: string, demands: readonly Demand[], member: string): string {
  let text = '['
  let last: Demand | null = null
  let [opening, ending] = ['', '']
  for (const [at, demand] of demands.entries()) {
    const { kind, shared, subject } = demand
    // Consecutive demands often have the same subject.
    if (last?.subject !== subject || last.shared !== shared) {
      // Checked before they are joined: V8 copies a joined string to read it.
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

/** A demand's limit and cost. */
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

/** The holds of a request in other slots of a Cluster: slot, day and month, holds. */
export function parseSharedHolds(text: unknown): [string, [number, number], Hold[]][] {
  if (typeof text !== 'string' || text === '[]') return []
  return JSON.parse(text) as [string, [number, number], Hold[]][]
}
