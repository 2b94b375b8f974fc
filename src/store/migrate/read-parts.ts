/**
 * The parts of a store that are moved, and how those are read that come in pages.
 */
import { dayOf, monthOf } from '../../limits/limit-arithmetic.js'
import type { BudgetSpent, UsageSum } from '../ledger.js'
import type { Store } from '../store.js'
import type { AuditEntry } from '../audit-trail.js'

const TRAIL_PAGE = 1_000

/** What is copied, in this order. */
export const PARTS = ['accounts', 'keys', 'trail', 'rows', 'hours', 'days', 'budgets'] as const
/** One kind of what a store keeps; `hours` and `days` are the ledger's sums, `budgets` what is spent of them. */
export type Part = (typeof PARTS)[number]

/** Told now and then how many of a part are done. */
export type Progress = (part: Part, done: number) => void

/** Where the source's begins; older things that the target has are what the source has dropped since. */
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

/** What is spent in the running day or month, batch by batch; what was before has been forgotten. */
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
