/**
 * The parts of a store that a migration copies, and how to read them in pages.
 */
import { dayOf, monthOf } from '../../limits/limit-arithmetic.js'
import type { BudgetSpent, UsageSum } from '../ledger.js'
import type { Store } from '../store.js'
import type { AuditEntry } from '../audit-trail.js'

const TRAIL_PAGE = 1_000

/** The parts, in the order in which they are copied. */
export const PARTS = ['accounts', 'keys', 'trail', 'rows', 'hours', 'days', 'budgets'] as const
/** A kind of record; `rows` are ledger entries, `hours` and `days` the ledger's sums, `budgets` their spend. */
export type Part = (typeof PARTS)[number]

/** Called with the number of records of a part that are done. */
export type Progress = (part: Part, done: number) => void

/** The oldest records of the source; the target may have older ones, which the source has pruned. */
export interface PartStarts {
  /** The first entry's id. */
  readonly trail: string
  /** The first row's time. */
  readonly rows: number
  /** The first bucket's start. */
  readonly hours: number
  readonly days: number
}

/** Every entry, newest first, page by page. */
export async function* auditPages(store: Store): AsyncGenerator<readonly AuditEntry[]> {
  for (let after: string | null = null; ;) {
    const page: readonly AuditEntry[] = await store.auditTrail.page({
      accountId: null,
      after,
      limit: TRAIL_PAGE,
    })
    if (page.length > 0) yield page
    const last = page.at(-1)
    if (last === undefined || page.length < TRAIL_PAGE) return
    after = last.id
  }
}

/** The spend of the current day or month, in batches; the spend of earlier ones is not kept. */
export async function* budgetBatches(
  store: Store,
  nowMs: number,
): AsyncGenerator<readonly BudgetSpent[]> {
  for await (const batch of store.ledger.budgets()) {
    yield batch.filter(
      ({ kind, period }) => period >= (kind === 'usd_day' ? dayOf(nowMs) : monthOf(nowMs)),
    )
  }
}

/** All sums of an account from a time on. */
export function sumsSince(
  store: Store,
  accountId: string,
  by: 'hour' | 'day',
  fromMs: number,
): Promise<UsageSum[]> {
  return store.ledger.sums({ accountId, by, fromMs, toMs: Number.MAX_SAFE_INTEGER })
}
