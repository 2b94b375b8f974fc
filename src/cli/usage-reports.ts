/**
 * `sluice usage statement`, and the summaries of `sluice usage` that follow the tree of accounts or are CSV.
 */
import { findAccount } from '../accounts/accounts.js'
import {
  accountReport,
  isReportGrouping,
  monthRange,
  reportCsv,
  statementCsv,
  statementOf,
  type Report,
  type ReportFigures,
  type ReportGrouping,
} from '../dashboard/server/account-reports.js'
import { table } from './print-table-or-json.js'
import { UsageError } from './command.js'
import { groupingOf, type FilterOptions } from './usage-summary.js'
import type { StoreSession } from './with-store.js'

/** The options of `sluice usage summary` that reports read. */
export interface ReportOptions extends FilterOptions {
  readonly by?: string | undefined
  readonly format?: 'csv' | undefined
  readonly json?: true | undefined
  readonly tree?: true | undefined
}

/** Groupings that only reports have. */
const OF_REPORTS = ['parent', 'root', 'member', 'month']
/** Filters of entries, which reports do not have. */
const OF_ENTRIES = [
  ['status', '--status'],
  ['upstream', '--upstream'],
  ['model', '--model'],
  ['key', '--key'],
  ['requestId', '--request-id'],
] as const

/** Whether a summary is a report of accounts. */
export function isReport({ by, format }: ReportOptions): boolean {
  return format !== undefined || OF_REPORTS.includes(by ?? '')
}

/** Throws `UsageError` for options of a summary that do not go together. */
export function checkSummary(values: ReportOptions): void {
  const { by = 'model', tree } = values
  if (!isReport(values)) {
    groupingOf(by)
    if (tree !== undefined) {
      throw new UsageError('--tree needs --by parent, root, member or month, or --format csv')
    }
    return
  }
  if (!isReportGrouping(by)) {
    throw new UsageError(
      '--by must be model, key, account, parent, root, member, month or label:NAME',
    )
  }
  const given = OF_ENTRIES.find(([name]) => values[name] !== undefined)
  if (given !== undefined) throw new UsageError(`this summary does not accept ${given[1]}`)
  if (tree === true && values.account === undefined) throw new UsageError('--tree needs --account')
}

/** Throws `UsageError`. */
export function checkedMonth(text: string): string {
  if (monthRange(text) !== null) return text
  throw new UsageError(`--month must be YYYY-MM, such as 2026-11, not "${text}"`)
}

/** Prints a statement. A purged account has the lines that it had. */
export async function statement(
  session: StoreSession,
  values: Pick<ReportOptions, 'format' | 'json'> & Record<'account' | 'month', string>,
): Promise<number> {
  const { store, terminal } = session
  const { account, month } = values
  const found = await findAccount(store, account)
  const result = await statementOf(store, found?.name ?? account, month)
  if (found === null && result.lines.length === 0) {
    terminal.err(
      `sluice: no account has the name, id or e-mail address "${account}": 'sluice accounts list' shows all`,
    )
    return 1
  }
  if (values.format === 'csv') terminal.out(statementCsv(result).trimEnd())
  else if (values.json === true) terminal.out(JSON.stringify(result, undefined, 2))
  else {
    const head = ['account', 'key', 'key id', 'model', ...FIGURES]
    const rows = result.lines.map((line) => [
      ...[line.account, line.key ?? '', line.key_id, line.model],
      ...cells(line),
    ])
    terminal.out(table([head, ...rows, ['total', '', '', '', ...cells(result.total)]]))
  }
  return 0
}

/** Prints a report of accounts. */
export async function report(
  session: StoreSession,
  values: ReportOptions,
  range: { readonly fromMs: number; readonly toMs: number },
): Promise<number> {
  const { store, terminal } = session
  const by = groupingOfReport(values.by)
  const account = values.account === undefined ? null : await nameOf(session, values.account)
  const tree = values.tree === true
  const result = await accountReport(store, { by, ...range, account, tree })
  if (values.format === 'csv') terminal.out(reportCsv(result).trimEnd())
  else if (values.json === true) terminal.out(jsonOf(result, by))
  else {
    const rows = result.rows.map((row) => [row.group, ...cells(row), String(row.failed)])
    terminal.out(table([[by, ...FIGURES, 'failed'], ...rows]))
  }
  return 0
}

function groupingOfReport(text = 'model'): ReportGrouping {
  return isReportGrouping(text) ? text : 'model'
}

/** The name of the account; that of a purged one is known to the ledger only. */
async function nameOf({ store }: StoreSession, account: string): Promise<string> {
  return (await findAccount(store, account))?.name ?? account
}

const FIGURES = ['requests', 'input', 'output', 'cost (USD)']

function cells(figures: ReportFigures): string[] {
  const { requests, input_tokens: input, output_tokens: output, cost_usd: cost } = figures
  return [String(requests), String(input), String(output), cost]
}

function jsonOf({ rows }: Report, by: ReportGrouping): string {
  return JSON.stringify(
    rows.map(({ group, ...figures }) => ({ [by]: group, ...figures })),
    undefined,
    2,
  )
}
