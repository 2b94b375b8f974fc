/** Budgets: what accounts, keys and labels may spend in a period or in all, and how far they are. */
import * as z from 'zod'
import { count, nanoUsd, scope, search, timeMs, wanted } from './shared-types.js'

/** `over`: spent; `will_be_over`: by the forecast; `near`: from 80 % on. */
const status = z.enum(['over', 'will_be_over', 'near', 'fine'])
const kind = z.enum(['account', 'key', 'label'])
/** `total`: in all; it never resets. */
const period = z.enum(['day', 'week', 'month', 'total'])

/** A budget in its running period (UTC). */
export const budgetRow = z.strictObject({
  /** Unique in the list. */
  id: z.string(),
  kind,
  /** The id of the account or key; `NAME=VALUE` for a label. */
  ofId: z.string(),
  name: z.string(),
  /** Of a key its account, of an account the one above it; null for none. */
  account: z.string().nullable(),
  /** Who sets it: the record of the account or key itself, the plan, or a rule of the configuration. */
  source: z.enum(['own', 'plan', 'configuration']),
  period,
  /** Null for a budget in all, whose spend is that since it began to count. */
  fromMs: timeMs.nullable(),
  toMs: timeMs.nullable(),
  spentNanoUsd: nanoUsd,
  /** The limit counts what was spent from this time on; null: in its whole period. */
  sinceMs: timeMs.nullable(),
  /** That holds now. */
  limitNanoUsd: nanoUsd,
  /** At the end of the period: by weekday if known, else linear; null in all, or if it is too early. */
  forecastNanoUsd: nanoUsd.nullable(),
  linearNanoUsd: nanoUsd.nullable(),
  weekdayNanoUsd: nanoUsd.nullable(),
  status,
  /** The day (UTC) on which the forecast passes the limit. */
  overOnMs: timeMs.nullable(),
  /** The raise that holds; null for none. */
  raise: z
    .strictObject({
      fromNanoUsd: nanoUsd,
      untilMs: timeMs,
      reason: z.string(),
      by: z.string(),
      atMs: timeMs,
    })
    .nullable(),
  /** Whether the user may change it. */
  mayChange: z.boolean(),
})

/**
 * `GET /budgets`: the budgets of the selected account, of those below it, and of their keys; of all accounts
 * those of labels, too. First what is over, then what will be, what is near, and the rest; in each the
 * highest share first.
 */
export const budgetsQuery = z.strictObject({
  account: scope.optional(),
  status: status.optional(),
  kind: kind.optional(),
  period: period.optional(),
  /** Part of a name. */
  search: search.optional(),
})
/** At most 500 rows and 200 accounts; `total` and `counts` are of all that match. */
export const budgetsReply = z.strictObject({
  rows: z.array(budgetRow),
  total: count,
  counts: z.strictObject({ over: count, will_be_over: count, near: count, fine: count }),
  /** Accounts without a budget for a month, the highest spend of this month first. */
  without: z.array(
    z.strictObject({
      name: z.string(),
      displayName: z.string(),
      spentNanoUsd: nanoUsd,
      mayChange: z.boolean(),
    }),
  ),
  withoutTotal: count,
  nowMs: timeMs,
})

/**
 * `POST /accounts/{id}/limits/raise` → `accountLimitsReply`, `POST /keys/{id}/raise` → `keyReply`: the budget
 * is higher until a time; then the former one holds again. 403 with `param` above that of an account above.
 */
export const raiseBody = z.strictObject({
  budget: wanted.optional(),
  usd: wanted.optional(),
  untilMs: wanted.optional(),
  reason: wanted.optional(),
})

export type BudgetRow = z.output<typeof budgetRow>
export type BudgetsQuery = z.input<typeof budgetsQuery>
/** The budgets of a part of the gateway. */
export type BudgetsReply = z.output<typeof budgetsReply>
export type RaiseBody = z.input<typeof raiseBody>
