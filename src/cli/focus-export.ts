/**
 * `sluice usage export --format focus`: charges in the columns of FOCUS, the FinOps Open Cost and Usage
 * Specification, for tools that read the bills of clouds. One row for each UTC day, account, key, model and
 * upstream, and for each set of labels and values of dimensions, so that costs can be allocated by tag; the
 * sum of the costs is that of the ledger.
 *
 * Source: FOCUS 1.2 (`specification/columns`). Own columns start with `x_`, as it demands.
 */
import { DAY_MS } from '../base/time-units.js'
import type { Account } from '../accounts/account.js'
import type { LedgerEntry } from '../ledger/entry.js'
import { csvCell } from '../base/csv.js'
import { unitsIn } from '../base/unit-counts.js'
import { usd } from '../ledger/export-columns.js'
import { addToSum, newSum, sumFromCounters, type SumCounters } from '../store/records/count-usage.js'
import type { UsageSum } from '../store/usage-queries.js'

/** What a row adds up. */
interface Charge {
  /** The last entry of the row: its names and labels are those of the row. */
  entry: LedgerEntry
  readonly counters: SumCounters
  /** Other units than text tokens, by name. */
  readonly units: Map<string, number>
}

/** A row with its figures. */
interface Row extends UsageSum {
  readonly entry: LedgerEntry
  readonly units: ReadonlyMap<string, number>
}

/** Names that the ledger does not have. */
interface ChargeNames {
  /** The accounts that exist, by id. */
  readonly accounts: ReadonlyMap<string, Account>
  /** The company that is paid for an upstream. */
  readonly providerOf: (upstream: string) => string
  /** The company that made a model; null if it is unknown. */
  readonly publisherOf: (model: string) => string | null
}

type Cell = (row: Row, names: ChargeNames) => string | number

const cost: Cell = ({ costNanoUsd }) => usd(costNanoUsd)
const tokens: Cell = ({ inputTokens, outputTokens }) => inputTokens + outputTokens
/** Provider and service of requests that reached no upstream: FOCUS does not allow empty ones. */
const GATEWAY = 'Sluice'
const provider: Cell = ({ entry: { upstream } }, { providerOf }) => {
  return upstream === null ? GATEWAY : providerOf(upstream)
}
const model: Cell = ({ entry }) => entry.model

/** The columns in order. */
const COLUMNS: readonly (readonly [name: string, cell: Cell])[] = [
  ['BilledCost', cost],
  ['BillingAccountId', ({ entry }, { accounts }) => topOf(entry, accounts).id],
  ['BillingAccountName', ({ entry }, { accounts }) => topOf(entry, accounts).name],
  ['BillingCurrency', () => 'USD'],
  ['BillingPeriodEnd', ({ entry }) => monthText(entry.atMs, 1)],
  ['BillingPeriodStart', ({ entry }) => monthText(entry.atMs, 0)],
  ['ChargeCategory', () => 'Usage'],
  ['ChargeClass', () => ''],
  ['ChargeDescription', ({ entry }) => `Tokens of ${entry.model} at ${entry.upstream ?? 'no upstream'}`],
  ['ChargeFrequency', () => 'Usage-Based'],
  ['ChargePeriodEnd', ({ entry }) => timeText(dayOf(entry) + DAY_MS)],
  ['ChargePeriodStart', ({ entry }) => timeText(dayOf(entry))],
  ['ConsumedQuantity', tokens],
  ['ConsumedUnit', () => 'Tokens'],
  ['ContractedCost', cost],
  ['EffectiveCost', cost],
  ['InvoiceIssuerName', provider],
  ['ListCost', cost],
  ['PricingQuantity', tokens],
  ['PricingUnit', () => 'Tokens'],
  ['ProviderName', provider],
  ['PublisherName', (row, names) => names.publisherOf(row.entry.model) ?? provider(row, names)],
  ['ResourceId', model],
  ['ResourceName', model],
  ['ResourceType', () => 'Model'],
  ['ServiceCategory', () => 'AI and Machine Learning'],
  ['ServiceName', ({ entry }) => entry.upstream ?? GATEWAY],
  ['ServiceSubcategory', () => 'Generative AI'],
  ['SubAccountId', ({ entry }) => entry.accountId],
  ['SubAccountName', ({ entry }) => entry.accountPath?.split('/').at(-1) ?? entry.accountId],
  ['SubAccountType', () => 'Account'],
  ['Tags', ({ entry }) => tagsOf(entry)],
  ['x_InputTokens', ({ inputTokens }) => inputTokens],
  ['x_OutputTokens', ({ outputTokens }) => outputTokens],
  ['x_CacheReadTokens', ({ cacheReadTokens }) => cacheReadTokens],
  ['x_CacheWriteTokens', ({ cacheWriteTokens }) => cacheWriteTokens],
  ['x_Requests', ({ requests }) => requests],
  ['x_UnpricedRequests', ({ unpriced }) => unpriced],
  ['x_KeyId', ({ entry }) => entry.keyId],
  ['x_Units', ({ units }) => [...units].map(([unit, count]) => `${unit}=${rounded(count)}`).join(' ')],
]

/** The first line. */
export function focusHeader(): string {
  return COLUMNS.map(([name]) => name).join(',')
}

/** Adds up entries, which come in the order of their time, and yields the lines of each day that is over. */
export async function* focusLines(
  batches: AsyncIterable<readonly LedgerEntry[]>,
  names: ChargeNames,
): AsyncGenerator<string[]> {
  let day: number | null = null
  let charges = new Map<string, Charge>()
  for await (const entries of batches) {
    for (const entry of entries) {
      if (day !== null && dayOf(entry) !== day) {
        yield linesOf(charges, names)
        charges = new Map()
      }
      day = dayOf(entry)
      add(charges, entry)
    }
  }
  if (charges.size > 0) yield linesOf(charges, names)
}

function add(charges: Map<string, Charge>, entry: LedgerEntry): void {
  const { accountId, keyId, model, upstream, labels, dimensions } = entry
  const group = JSON.stringify([accountId, keyId, model, upstream, labels, dimensions])
  const units = new Map<string, number>()
  const charge = charges.get(group) ?? { entry, counters: newSum(), units }
  charge.entry = entry
  addToSum(charge.counters, entry)
  for (const [unit, count] of unitsIn(entry.units)) {
    charge.units.set(unit, (charge.units.get(unit) ?? 0) + count)
  }
  charges.set(group, charge)
}

/** Sums of thousandths. */
function rounded(count: number): number {
  return Math.round(count * 1000) / 1000
}

function linesOf(charges: ReadonlyMap<string, Charge>, names: ChargeNames): string[] {
  return Array.from(charges.values(), ({ entry, counters, units }) => {
    const row = { entry, units, ...sumFromCounters(counters, { ...entry, startMs: dayOf(entry) }) }
    return COLUMNS.map(([, cell]) => csvCell(cell(row, names))).join(',')
  })
}

/** The account at the top of the tree: the last that exists above the one of the entry. */
function topOf(
  { accountId, accountPath }: LedgerEntry,
  accounts: ReadonlyMap<string, Account>,
): { readonly id: string; readonly name: string } {
  let id = accountId
  for (let parent = accounts.get(id)?.parentId; parent !== undefined; parent = accounts.get(id)?.parentId) {
    id = parent
  }
  return { id, name: accounts.get(id)?.name ?? accountPath?.split('/')[0] ?? id }
}

/** Labels and dimensions as JSON. A label with the name of a dimension is left out. */
function tagsOf({ labels, dimensions }: LedgerEntry): string {
  const values = pairsOf(dimensions).map(([name, value]) => [name, decodeURIComponent(value)] as const)
  return JSON.stringify(Object.fromEntries([...pairsOf(labels), ...values]))
}

/** The `k=v` pairs of an entry. */
function pairsOf(text: string | null): (readonly [string, string])[] {
  const pairs = (text ?? '').split(' ').filter((pair) => pair.includes('='))
  return pairs.map((pair) => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

function dayOf({ atMs }: LedgerEntry): number {
  return Math.floor(atMs / DAY_MS) * DAY_MS
}

/** `2026-12-01T00:00:00Z`, as in the specification. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** The start of the month of a time, some months later. */
function monthText(ms: number, later: number): string {
  const date = new Date(ms)
  return timeText(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later))
}
