/**
 * Quantiles of the time to first token from single requests, where these are few: sums have them only within
 * intervals, so that a p95 of 1.76 s might be shown as 2.45 s.
 */
import type { Ledger } from '../../store/ledger.js'
import type { ExactUsage } from '../../usage/exact-usage.js'
import { quantileOf } from './compare-upstreams.js'
import type * as schema from './schema/schema.js'

/** Up to this number of requests, the quantiles are those of the requests. */
const MOST_EXACT = 2_000
/** Accounts and keys whose requests are read. */
const MOST_OWNERS = 20
const PAGE_ROWS = 500

/** Selects requests. */
interface Selection {
  /** Null is all accounts. */
  readonly accountId: string | null
  readonly keyId?: string
  readonly model?: string
}

type Figures = schema.Sent<typeof schema.figures>
type Point = schema.Sent<typeof schema.usagePoint>

/** The figures of a range: in total and over time. */
interface OverTime {
  readonly total: Figures
  readonly points: readonly Point[]
}

/** The same figures with exact quantiles if the requests are few, and kept. */
export async function withExactTimes(
  ledger: Pick<Ledger, 'entries'>,
  usage: ExactUsage,
  selection: Selection,
  { total, points }: OverTime,
): Promise<{ total: Figures; points: Point[] }> {
  const { extendedTo } = usage.range
  const owners = usage.ownersOf(selection)
  const isExact = total.requests <= MOST_EXACT && extendedTo === null && owners.length <= MOST_OWNERS
  if (!isExact || total.firstTokenP95Ms === null) return { total, points: [...points] }
  const times: number[] = []
  const byStart = new Map<number, number[]>()
  for (const owner of owners) {
    for await (const { atMs, firstMs } of timesOf(ledger, usage, owner)) {
      const startMs = usage.startOf(atMs)
      times.push(firstMs)
      const known = byStart.get(startMs)
      if (known === undefined) byStart.set(startMs, [firstMs])
      else known.push(firstMs)
    }
  }
  return {
    total: { ...total, ...quantiles(times) },
    points: points.map((point) => ({ ...point, ...quantiles(byStart.get(point.startMs) ?? []) })),
  }
}

function quantiles(times: readonly number[]): Pick<Figures, 'firstTokenP50Ms' | 'firstTokenP95Ms'> {
  const sorted = [...times].sort((a, b) => a - b)
  return { firstTokenP50Ms: quantileOf(sorted, 0.5), firstTokenP95Ms: quantileOf(sorted, 0.95) }
}

async function* timesOf(
  ledger: Pick<Ledger, 'entries'>,
  { range: { fromMs, toMs } }: ExactUsage,
  selection: Selection,
): AsyncGenerator<{ readonly atMs: number; readonly firstMs: number }> {
  for (let after: string | null = null; ;) {
    const page = await ledger.entries({ ...selection, fromMs, toMs, after, limit: PAGE_ROWS })
    for (const { atMs, hops } of page.entries) {
      if (hops.firstContent !== undefined) yield { atMs, firstMs: hops.firstContent }
    }
    if (page.next === null) return
    after = page.next
  }
}
