/**
 * `sluice usage`: usage and cost of requests, as entries (`ledger/export-columns.ts` defines the columns) or
 * as totals (`usage-summary.ts`).
 */
import { jsonText } from '../base/json.js'
import { Option } from '@commander-js/extra-typings'
import { csvHeader, csvLine, jsonLine } from '../ledger/export-columns.js'
import type { Account } from '../accounts/account.js'
import type { LedgerEntry } from '../ledger/entry.js'
import { everyAccount } from '../store/list-all.js'
import { configOption, declare, UsageError } from './command.js'
import { focusHeader, focusLines } from './focus-export.js'
import { rangeOf, TIME_FORMS, type TimeOptions } from './time-range.js'
import { filterOf, groupingOf, progressOn, summarise, type FilterOptions } from './usage-summary.js'
import { entriesIn } from '../usage/entries-in-range.js'
import { unitsCell, type ReportFigures } from '../usage/totals.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'
import { findAccount } from '../accounts/changes/change-accounts.js'
import { monthRange } from '../usage/ranges.js'
import {
  accountReport,
  isReportGrouping,
  reportCsv,
  type Report,
  type ReportGrouping,
} from '../usage/reports.js'
import { isStatementGrouping, type StatementGrouping } from '../usage/is-statement-grouping.js'
import { statementCsv, statementOf } from '../usage/statements.js'
import { table } from './print-table-or-json.js'

const DESCRIPTION = `
Reads the ledger of the configured store, with or without a running gateway. export prints one line for each
request, oldest first, request_id first; docs/reference/ledger.md describes the columns. summary prints
the highest cost first, and names beside ids. By model, key, account, upstream, client_format and label it sums
exactly that time, and whole days (UTC) before the first entry that is kept. By program, user or dimension, and with a
filter other than --key and --account, it sums the ledger entries of exactly that time, which are kept for
ledger.keep_days. In JSON, errors is the former name of failed. By parent, root, member and month, and as csv, it counts each request under the tree of accounts at its
time, and older months as a whole; only --account selects. statement prints what each key of an account, and of
all below it, used of each model in a month (UTC); a month that is over never changes. With --by,
statement splits the lines by the ledger entries; (not kept) are those older than ledger.keep_days.

The filters --status, --upstream, --model, --key, --account, --dimension, --program, --user, --batch,
--client-format and --request-id select entries that match all of them.`

/** `sluice usage`; `now` is the reference of `--since 24h`. */
export function command(open: OpenStore = withStore, now = Date.now) {
  const usage = declare({
    name: 'usage',
    summary: 'export or sum up the usage and cost of requests',
    description: DESCRIPTION,
    example: 'sluice usage export --config config/gateway.yaml --format csv --since 24h > usage.csv',
  })
  const selecting = (name: string) => {
    return usage
      .command(name)
      .option('--since <TIME>', `${TIME_FORMS}; default: export everything, summary 30d`)
      .option(
        '--until <TIME>',
        'the end, in the same forms; requests that arrived before it are included (default: now)',
      )
      .option('--status <N>', 'the HTTP status, such as 429')
      .option('--upstream <NAME>', 'the upstream of the last attempt')
      .option('--model <MODEL>', 'the requested model; must match exactly')
      .option('--key <ID>', 'the id of the API key')
      .option('--account <NAME>', ACCOUNT)
      .option('--dimension <NAME=VALUE>', 'a value of a dimension, such as run=r-17')
      .option('--program <NAME>', 'the program of the client, such as claude-code, other or none')
      .option('--user <EMAIL>', 'the person who signed in')
      .option('--batch <ID>', 'the id of a batch: its entry, and its lines that were sent as requests')
      .option(
        '--client-format <NAME>',
        "the client's format or endpoint, as in the column ingress: chat, messages, images, rerank, batches",
      )
      .option('--request-id <ID>', 'the request id, as in the reply header x-request-id')
  }
  selecting('export')
    .addOption(
      new Option(
        '--format <FORMAT>',
        'jsonl (one JSON object a line), csv (with a line of names first) or focus (FOCUS 1.2: charges by day, account, key, model, upstream and tags, as CSV)',
      )
        .choices(['jsonl', 'csv', 'focus'] as const)
        .makeOptionMandatory(),
    )
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => {
        return exportRows(session, options, now())
      })
    })
  selecting('summary')
    .option(
      '--by <WHAT>',
      'group by model (the default), key, account, upstream, client_format, program, user, label:NAME or dimension:NAME; or by parent (for the parent of the account, or for the account if it has none), root (for the top of its tree), member (who made the key) or month',
    )
    .option(
      '--tree',
      'with --account: with all accounts below it (summary by parent, root, member, month, or csv)',
    )
    .addOption(csvOption())
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (options) => {
      checkSummary(options)
      process.exitCode = await open(options.config, (session) => {
        return summary(session, options, now())
      })
    })
  usage
    .command('statement')
    .requiredOption('--account <NAME>', ACCOUNT)
    .requiredOption('--month <YYYY-MM>', 'the month of a statement, such as 2026-11', checkedMonth)
    .option('--by <GROUP>', 'split the lines by client_format, program, user or dimension:NAME', checkedSplit)
    .addOption(csvOption())
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => statement(session, options))
    })
  return usage
}

const ACCOUNT = 'the name, id or e-mail address of the account'

function csvOption() {
  return new Option('--format <FORMAT>', 'csv: with a line of names first')
    .choices(['csv'] as const)
    .conflicts('json')
}

function summary(
  session: StoreSession,
  options: ReportOptions & TimeOptions,
  nowMs: number,
): Promise<number> {
  const range = rangeOf(options, '30d', nowMs)
  if (isReport(options)) {
    const { fromMs, untilMs } = range
    return report(session, options, { fromMs, toMs: untilMs ?? nowMs })
  }
  return summarise(session, { ...options, ...range }, nowMs)
}

async function exportRows(
  session: StoreSession,
  values: FilterOptions & TimeOptions & { readonly format: 'jsonl' | 'csv' | 'focus' },
  nowMs: number,
): Promise<number> {
  const { store, terminal } = session
  const isCsv = values.format === 'csv'
  const filter = await filterOf(store, values)
  const { fromMs, untilMs } = rangeOf(values, '1970-01-01', nowMs)
  const query = { filter, fromMs, toMs: untilMs ?? Number.POSITIVE_INFINITY }
  const entries = entriesIn(store.ledger, query, progressOn(session))
  if (values.format === 'focus') return exportCharges(session, entries)
  if (isCsv) terminal.out(csvHeader())
  for await (const rows of entries) {
    terminal.out(rows.map((row) => (isCsv ? csvLine(row) : jsonLine(row))).join('\n'))
    await terminal.ready()
  }
  return 0
}

/** Prints charges in the columns of FOCUS. */
async function exportCharges(
  { store, terminal, companies }: StoreSession,
  entries: AsyncIterable<readonly LedgerEntry[]>,
): Promise<number> {
  const accounts = new Map<string, Account>()
  for await (const account of everyAccount(store)) accounts.set(account.id, account)
  terminal.out(focusHeader())
  for await (const lines of focusLines(entries, { accounts, ...companies })) {
    terminal.out(lines.join('\n'))
    await terminal.ready()
  }
  return 0
}

// `sluice usage statement`, and the summaries of `sluice usage` that follow the tree of accounts or are CSV.

/** The options of `sluice usage summary` that reports read. */
interface ReportOptions extends FilterOptions {
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
  ['dimension', '--dimension'],
  ['program', '--program'],
  ['user', '--user'],
  ['batch', '--batch'],
  ['clientFormat', '--client-format'],
  ['requestId', '--request-id'],
] as const

/** Whether a summary is a report of accounts. */
function isReport({ by, format }: ReportOptions): boolean {
  return format !== undefined || OF_REPORTS.includes(by ?? '')
}

/** Throws `UsageError` for options of a summary that do not go together. */
function checkSummary(values: ReportOptions): void {
  const { by = 'model', tree } = values
  if (!isReport(values)) {
    groupingOf(by)
    if (tree !== undefined) {
      throw new UsageError('--tree needs --by parent, root, member or month, or --format csv')
    }
    return
  }
  if (!isReportGrouping(by)) {
    throw new UsageError('--by must be model, key, account, parent, root, member, month or label:NAME')
  }
  const given = OF_ENTRIES.find(([name]) => values[name] !== undefined)
  if (given !== undefined) throw new UsageError(`this summary does not accept ${given[1]}`)
  if (tree === true && values.account === undefined) throw new UsageError('--tree needs --account')
}

/** Throws `UsageError`. */
function checkedMonth(text: string): string {
  if (monthRange(text) !== null) return text
  throw new UsageError(`--month must be YYYY-MM, such as 2026-11, not "${text}"`)
}

/** Throws `UsageError`. */
function checkedSplit(text: string): StatementGrouping {
  if (isStatementGrouping(text)) return text
  throw new UsageError(`--by must be client_format, program, user or dimension:NAME, not "${text}"`)
}

/** Prints a statement. A purged account has the lines that it had. */
async function statement(
  session: StoreSession,
  values: Pick<ReportOptions, 'format' | 'json'> &
    Record<'account' | 'month', string> & { readonly by?: StatementGrouping | undefined },
): Promise<number> {
  const { store, terminal } = session
  const { account, month, by = null } = values
  const found = await findAccount(store, account)
  const result = await statementOf(store, found?.id ?? account, month, by)
  if (found === null && result.lines.length === 0) {
    terminal.err(
      `sluice: no account has the name, id or e-mail address "${account}": 'sluice accounts list' shows all`,
    )
    return 1
  }
  if (values.format === 'csv') terminal.out(statementCsv(result, by).trimEnd())
  else if (values.json === true) terminal.out(jsonText(by === null ? result : { by, ...result }, 2))
  else {
    const split = by === null ? [] : [by]
    const head = ['account', 'key', 'key id', 'model', ...split, ...FIGURES]
    const rows = result.lines.map((line) => [
      ...[line.account, line.key ?? '', line.key_id, line.model],
      ...split.map(() => line.group ?? ''),
      ...cells(line),
    ])
    const blank = ['', '', '', ...split.map(() => '')]
    terminal.out(table([head, ...rows, ['total', ...blank, ...cells(result.total)]]))
  }
  return 0
}

/** Prints a report of accounts. */
async function report(
  session: StoreSession,
  values: ReportOptions,
  range: { readonly fromMs: number; readonly toMs: number },
): Promise<number> {
  const { store, terminal } = session
  const by = groupingOfReport(values.by)
  const account = values.account === undefined ? null : await idOf(session, values.account)
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

/** The id of the account; a purged one is known to the ledger and the audit trail only. */
async function idOf({ store }: StoreSession, account: string): Promise<string> {
  return (await findAccount(store, account))?.id ?? account
}

const FIGURES = ['requests', 'input', 'output', 'cost (USD)', 'units']

function cells(figures: ReportFigures): string[] {
  const { requests, input_tokens: input, output_tokens: output, cost_usd: cost } = figures
  return [String(requests), String(input), String(output), cost, unitsCell(figures.units)]
}

function jsonOf({ rows }: Report, by: ReportGrouping): string {
  return jsonText(
    rows.map(({ group, ...figures }) => ({ [by]: group, ...figures })),
    2,
  )
}
