/**
 * Sums by account, parent, top of the tree, member, key, label, model and month, in which each request counts
 * under the tree at its own time, so that a month that is over never changes.
 */
import { csvText } from '../base/csv.js'
import { adminTurns } from '../base/turn-queue.js'
import type { AccountUse, GroupUse, UseDetail } from '../store/usage-queries.js'
import { selectAccount } from './account-selection.js'
import { AT_ONCE, accountUses, type AccountUseSource } from './account-uses.js'
import { labelGroups } from './label-groups.js'
import { monthText } from './ranges.js'
import { groupNamesOf, NONE } from './sums-of-entries.js'
import { FIGURE_COLUMNS, shownTotals, unitsCell, type ReportTotals } from './totals.js'
import { groupedUses, inOrder, storedAs, totalOf, type Group } from './usage-groups.js'

/** The groupings of a report; `label:NAME` groups by the value of a label. */
const REPORT_GROUPINGS = ['account', 'parent', 'root', 'member', 'key', 'model', 'month'] as const
/** One of them. */
export type ReportGrouping = (typeof REPORT_GROUPINGS)[number] | `label:${string}`

/** Whether the text is a grouping. */
export function isReportGrouping(text: string): text is ReportGrouping {
  return REPORT_GROUPINGS.some((each) => each === text) || /^label:[^\s=]{1,100}$/.test(text)
}

/** Selects what a report sums up. */
export interface ReportQuery {
  readonly by: ReportGrouping
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  /** Only this account, by its name or id; null: all. */
  readonly account: string | null
  /** With `account`: with all below it. */
  readonly tree: boolean
}

/** The sums of one group. */
interface ReportRow extends ReportTotals {
  /** A name; for keys the id; `(none)` for requests without the property. */
  readonly group: string
}

/** Sums by group; the highest cost first, months and days in order. */
export interface Report {
  readonly rows: readonly ReportRow[]
  readonly total: ReportTotals
}

/** See `ReportQuery`. Entries that were pruned are counted with their whole month. */
export async function accountReport(store: AccountUseSource, query: ReportQuery): Promise<Report> {
  const { by, account, tree, fromMs, toMs } = query
  const selection = account === null ? null : await selectAccount(store, account)
  if (selection === null && by.startsWith('label:')) {
    const groups = await labelGroups(store.ledger, `label=${by.slice('label:'.length)}=`, query, Date.now())
    if (groups !== null)
      return reportOf(await groupedUses({ store }, { group: by, accountId: null }, groups), by)
  }
  const wanted = { fromMs, toMs, by: detailOf(by) }
  const uses = await accountUses(store, wanted, { selection, tree })
  const grouped: GroupUse[] = []
  for (const [at, use] of uses.entries()) {
    if (at % AT_ONCE === AT_ONCE - 1) await adminTurns.next()
    grouped.push({ ...use, ...groupNameOf(use, by) })
  }
  return reportOf(await groupedUses({ store }, { group: by, accountId: null }, grouped), by)
}

/** What a grouping needs. */
function detailOf(by: ReportGrouping): UseDetail {
  if (by.startsWith('label:')) return 'labels'
  return by === 'key' || by === 'member' || by === 'model' ? 'keys' : 'accounts'
}

function groupNameOf(use: AccountUse, by: ReportGrouping): Pick<AccountUse, 'accountId' | 'keyId'> {
  if (by === 'month') return { accountId: '', keyId: monthText(use.month) }
  const [name] = groupNamesOf({ ...use, upstream: null, ingress: null }, storedAs(by))
  return name ?? { accountId: '', keyId: NONE }
}

/** Groups as a report. */
export function reportOf(groups: readonly Pick<Group, 'id' | 'total'>[], by: string): Report {
  const rows = inOrder(groups, by).map(({ id, total }) => ({ group: id, ...shownTotals(total) }))
  return { rows, total: shownTotals(totalOf(groups)) }
}

const REPORT_COLUMNS = ['group', ...FIGURE_COLUMNS] as const

/** A report as CSV with a line of names. */
export function reportCsv({ rows }: Pick<Report, 'rows'>): string {
  const cells = rows.map((row) => [...REPORT_COLUMNS.map((name) => row[name]), unitsCell(row.units)])
  return csvText([[...REPORT_COLUMNS, 'units'], ...cells])
}
