/**
 * Usage by what only single requests have: the program of the client, the person who signed in, the values of
 * a dimension. Stored sums do not have them, so all requests of the range are read, in turns of the event
 * loop.
 */
import { addNanoUsd } from '../../base/nano-usd.js'
import { adminTurns } from '../../base/turn-queue.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { addToSum, newSum, sumFromCounters, type SumCounters } from '../../store/records/count-usage.js'
import { groupOfEntry, type GroupUse, type UsageSum } from '../../store/usage-queries.js'
import type { ExactUsage } from '../../usage/exact-usage.js'
import type { Services } from './services.js'

/** A grouping of entries. */
export type EntryGrouping = 'program' | 'user' | `dimension:${string}`

/** Groups beyond these are one together, so that a range with any number of runs fits into memory. */
const MOST_GROUPS = 100_000
/** What the groups beyond the maximum are called. */
const FURTHER = '(further values)'

type EntrySource = Pick<Services, 'ledger'>

/** Selects the requests to group. */
interface EntryQuery {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly group: EntryGrouping
  readonly keyId?: string | undefined
  readonly model?: string | undefined
}

/** The totals of a group. */
export type GroupTotals = Pick<
  GroupUse,
  'requests' | 'errors' | 'inputTokens' | 'outputTokens' | 'costNanoUsd' | 'unpriced'
>
/** Totals that are being added up. */
export type RunningTotals = { -readonly [Name in keyof GroupTotals]: GroupTotals[Name] }

/** A group of entries; no stored sums belong to it. */
interface EntryGroup {
  readonly id: string
  readonly accountId: null
  readonly total: GroupTotals
  readonly sources: readonly never[]
}

/** Whether the grouping is one of entries. */
export function isOfEntries(group: string): group is EntryGrouping {
  return group === 'program' || group === 'user' || group.startsWith('dimension:')
}

/** All groups with requests in the range, in no order. */
export async function entryGroups(
  { ledger }: EntrySource,
  usage: ExactUsage,
  query: EntryQuery,
): Promise<EntryGroup[]> {
  const totals = new Map<string, RunningTotals>()
  for await (const entry of entriesIn(ledger, usage, query)) {
    const named = groupOfEntry(entry, query.group)
    const id = totals.has(named) || totals.size < MOST_GROUPS ? named : FURTHER
    const total = totals.get(id) ?? nothing()
    totals.set(id, total)
    addEntry(total, entry)
  }
  return Array.from(totals, ([id, total]) => ({ id, accountId: null, total, sources: [] }))
}

/** The sums over time of some of the groups. */
export async function sumsOfEntryGroups(
  { ledger }: EntrySource,
  usage: ExactUsage,
  { query, ids }: { readonly query: EntryQuery; readonly ids: ReadonlySet<string> },
): Promise<Map<string, UsageSum[]>> {
  const byGroup = new Map<string, Map<string, OpenSum>>()
  for await (const entry of entriesIn(ledger, usage, query)) {
    const id = groupOfEntry(entry, query.group)
    if (!ids.has(id)) continue
    const own = byGroup.get(id) ?? new Map<string, OpenSum>()
    byGroup.set(id, own)
    const { model } = entry
    const startMs = usage.startOf(entry.atMs)
    const name = `${String(startMs)} ${model}`
    const sum = own.get(name) ?? { startMs, model, counters: newSum() }
    own.set(name, sum)
    addToSum(sum.counters, entry)
  }
  const sumOf = ({ counters, ...of }: OpenSum): UsageSum =>
    sumFromCounters(counters, { ...of, accountId: '', keyId: '' })
  return new Map(Array.from(byGroup, ([id, own]) => [id, Array.from(own.values(), sumOf)]))
}

/** A sum that is being added up. */
interface OpenSum {
  readonly startMs: number
  readonly model: string
  readonly counters: SumCounters
}

async function* entriesIn(
  ledger: EntrySource['ledger'],
  { range: { fromMs, toMs } }: ExactUsage,
  { accountId, keyId, model }: EntryQuery,
): AsyncGenerator<LedgerEntry> {
  for await (const entries of ledger.export(fromMs)) {
    for (const entry of entries) {
      const isSelected =
        entry.atMs < toMs &&
        (accountId === null || entry.accountId === accountId) &&
        (keyId === undefined || entry.keyId === keyId) &&
        (model === undefined || entry.model === model)
      if (isSelected) yield entry
    }
    await adminTurns.next()
  }
}

function nothing(): RunningTotals {
  return { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0, unpriced: 0 }
}

function addEntry(to: RunningTotals, { outcome, usage, costNanoUsd, source }: LedgerEntry): void {
  to.requests += 1
  if (outcome !== 'ok') to.errors += 1
  to.inputTokens += usage.input ?? 0
  to.outputTokens += usage.output ?? 0
  to.costNanoUsd = addNanoUsd(to.costNanoUsd, costNanoUsd ?? 0)
  if (costNanoUsd === null && source !== 'none') to.unpriced += 1
}
