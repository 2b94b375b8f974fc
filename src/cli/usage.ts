/**
 * `sluice usage`: usage and cost of requests, as entries (`ledger/export-columns.ts` defines the columns) or
 * as totals (`usage-summary.ts`).
 */
import { Option } from '@commander-js/extra-typings'
import { csvHeader, csvLine, jsonLine } from '../ledger/export-columns.js'
import { configOption, declare, formatOption, TIME_FORMS, UsageError } from './command.js'
import {
  checkedMonth,
  checkSummary,
  isReport,
  report,
  statement,
  type ReportOptions,
} from './usage-reports.js'
import { entriesOf, filterOf, summarise, type FilterOptions } from './usage-summary.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice usage`; `now` is the reference of `--since 24h`. */
export function command(open: OpenStore = withStore, now = Date.now) {
  const usage = declare({
    name: 'usage',
    summary: 'export or sum up the usage and cost of requests',
    description: `
Reads the ledger of the configured store, with or without a running gateway. export prints one line for each
request, oldest first, request_id first; docs/reference/ledger.md describes the columns. summary prints
the highest cost first, and names beside ids. By model, key and account it sums whole days (UTC), including
the days of --since and --until. By upstream or label, and with a filter other than --key and --account, it
sums the ledger entries of exactly that time, which are kept for ledger.keep_days. By parent, root, member and
month, and as csv, it counts each request under the tree of accounts at its time, and older months as a whole;
only --account selects. statement prints what each key of an account, and of all below it, used of each model
in a month (UTC); a month that is over never changes.

The filters --status, --upstream, --model, --key, --account and --request-id select entries that match all of
them.`,
    example:
      'sluice usage export --config config/gateway.yaml --format csv --since 24h > usage.csv',
  })
  usage
    .command('export')
    .addOption(formatOption())
    .option('--since <TIME>', SINCE)
    .option('--until <TIME>', UNTIL)
    .option('--status <N>', STATUS)
    .option('--upstream <NAME>', UPSTREAM)
    .option('--model <MODEL>', MODEL)
    .option('--key <ID>', KEY)
    .option('--account <NAME>', ACCOUNT)
    .option('--request-id <ID>', REQUEST)
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => {
        return exportRows(session, options, now())
      })
    })
  usage
    .command('summary')
    .option(
      '--by <WHAT>',
      'group by model (the default), key, account, upstream or label:NAME; or by parent (for the parent of the account, or for the account if it has none), root (for the top of its tree), member (who made the key) or month',
    )
    .option('--since <TIME>', SINCE)
    .option('--until <TIME>', UNTIL)
    .option('--status <N>', STATUS)
    .option('--upstream <NAME>', UPSTREAM)
    .option('--model <MODEL>', MODEL)
    .option('--key <ID>', KEY)
    .option('--account <NAME>', ACCOUNT)
    .option('--request-id <ID>', REQUEST)
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
    .addOption(csvOption())
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => statement(session, options))
    })
  return usage
}

const SINCE = `a ${TIME_FORMS}; default: export everything, summary 30d`
const UNTIL =
  'the end, in the same forms; requests that arrived before it are included (default: now)'
const STATUS = 'the HTTP status, such as 429'
const UPSTREAM = 'the upstream of the last attempt'
const MODEL = 'the requested model; must match exactly'
const KEY = 'the id of the API key'
const ACCOUNT = 'the name, id or e-mail address of the account'
const REQUEST = 'the request id, as in the reply header x-request-id'

function csvOption() {
  return new Option('--format <FORMAT>', 'csv: with a line of names first')
    .choices(['csv'] as const)
    .conflicts('json')
}

interface TimeOptions {
  readonly since?: string | undefined
  readonly until?: string | undefined
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

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Ms since 1970. Throws `UsageError` naming the option if the text is not a time. */
export function sinceOf(text: string, nowMs: number, option = '--since'): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (unit !== '') return nowMs - Number(count) * (UNIT_MS[unit] ?? 0)
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `${option} must be a date (2026-11-20), a time, or a duration before now: 90m, 24h, 7d`,
    )
  }
  return atMs
}

/** The range of `--since` and `--until`; its end is exclusive, and null for now. Throws `UsageError`. */
export function rangeOf(
  { since, until }: TimeOptions,
  from: string,
  nowMs: number,
): { fromMs: number; untilMs: number | null } {
  const fromMs = sinceOf(since ?? from, nowMs)
  const untilMs = until === undefined ? null : sinceOf(until, nowMs, '--until')
  if (since !== undefined && untilMs !== null && untilMs <= fromMs) {
    throw new UsageError(`--until ${until ?? ''} must be later than --since ${since}`)
  }
  return { fromMs, untilMs }
}

async function exportRows(
  session: StoreSession,
  values: FilterOptions & TimeOptions & { readonly format: 'jsonl' | 'csv' },
  nowMs: number,
): Promise<number> {
  const { store, terminal } = session
  const isCsv = values.format === 'csv'
  const query = {
    filter: await filterOf(store, values),
    ...rangeOf(values, '1970-01-01', nowMs),
  }
  if (isCsv) terminal.out(csvHeader())
  for await (const rows of entriesOf(session, query)) {
    terminal.out(rows.map((row) => (isCsv ? csvLine(row) : jsonLine(row))).join('\n'))
    await terminal.ready()
  }
  return 0
}
