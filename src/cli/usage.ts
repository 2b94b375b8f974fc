/**
 * `sluice usage`: usage and cost of requests, as entries (`ledger/export-columns.ts` defines the columns) or
 * as totals (`usage-summary.ts`).
 */
import { csvHeader, csvLine, jsonLine } from '../ledger/export-columns.js'
import { parseAction, type Command } from './command.js'
import { UsageError } from './usage-error.js'
import { checkStatement, checkSummary, isReport, report, statement } from './usage-reports.js'
import { entriesOf, FILTER_OPTIONS, filterOf, groupingOf, summarise } from './usage-summary.js'
import { openingFor, withStore, type StoreSession } from './with-store.js'

/** `sluice usage`. */
export const command: Command = {
  name: 'usage',
  summary: 'export or sum up the usage and cost of requests',
  help: `
Usage: sluice usage export  --format jsonl|csv [--since TIME] [--until TIME] [FILTER]… [--config FILE]
       sluice usage summary [--by WHAT] [--since TIME] [--until TIME] [FILTER]… [--json | --format csv]
                            [--config FILE]
       sluice usage statement --account NAME --month YYYY-MM [--format csv | --json] [--config FILE]

Reads the ledger of the configured store, with or without a running gateway. export prints one line for each
request, oldest first, request_id first; docs/reference/ledger.md describes the columns. summary prints
the highest cost first, and names beside ids. By model, key and account it sums whole days (UTC), including the days of --since and
--until. By upstream or label, and with a filter other than --key and --account, it sums the ledger entries of
exactly that time, which are kept for ledger.keep_days. By parent, root, member and month, and as csv, it
counts each request under the tree of accounts at its time, and older months as a whole; only --account
selects. statement prints what each key of an account, and of all below it, used of each model in a month
(UTC); a month that is over never changes.

Options:
  --config FILE   the configuration file (default: the variable SLUICE_CONFIG)
  --format FORMAT jsonl (one JSON object a line) or csv (with a line of names first)
  --month MONTH   the month of a statement, such as 2026-11
  --tree          with --account: with all accounts below it (summary by parent, root, member, month, or csv)
  --since TIME    a date or time (2026-11-20, 2026-11-20T08:00:00Z), or a duration before now (90m, 24h, 7d);
                  default: export everything, summary 30d
  --until TIME    the end, in the same forms; requests that arrived before it are included (default: now)
  --by WHAT       group by model (the default), key, account, upstream or label:NAME; or by parent (for the
                  parent of the account, or for the account if it has none), root (for the top of its tree),
                  member (who made the key) or month
  --json          print JSON

Filters; an entry must match all of them:
  --status N        the HTTP status, such as 429
  --upstream NAME   the upstream of the last attempt
  --model MODEL     the requested model; must match exactly
  --key ID          the id of the API key
  --account NAME    the name, id or e-mail address of the account
  --request-id ID   the request id, as in the reply header x-request-id

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice usage export --config config/gateway.yaml --format csv --since 24h > usage.csv
`,
  run(argv) {
    const call = parseUsage(argv)
    return withStore(openingFor('sluice usage', call.values.config), (session) =>
      runUsage(session, call, Date.now()),
    )
  },
}

/** The action of `sluice usage`. */
export type UsageAction = 'export' | 'summary' | 'statement'

const FILTERS = Object.keys(FILTER_OPTIONS)
const ALLOWED: Record<UsageAction, readonly string[]> = {
  export: ['config', 'format', 'since', 'until', ...FILTERS],
  summary: ['config', 'by', 'since', 'until', 'json', 'format', 'tree', ...FILTERS],
  statement: ['config', 'account', 'month', 'format', 'json'],
}

const NEEDED: Record<UsageAction, readonly string[]> = {
  export: [],
  summary: [],
  statement: ['--account NAME', '--month YYYY-MM'],
}

const OPTIONS = {
  config: { type: 'string' },
  format: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
  by: { type: 'string' },
  month: { type: 'string' },
  tree: { type: 'boolean' },
  json: { type: 'boolean' },
  ...FILTER_OPTIONS,
} as const

/** An action and its options. */
export type UsageCall = ReturnType<typeof parseUsage>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseUsage(argv: readonly string[]) {
  const parts = { options: OPTIONS, allowed: ALLOWED, needed: NEEDED }
  const { action, values } = parseAction('usage', argv, parts)
  if (action === 'export' && values.format !== 'jsonl' && values.format !== 'csv') {
    throw new UsageError("'sluice usage export' needs --format jsonl or --format csv")
  }
  if (action === 'summary') checkSummary(values)
  if (action === 'statement') checkStatement(values)
  return { action, values }
}

/** Runs the action; `nowMs` is the reference of `--since 24h`. */
export async function runUsage(
  session: StoreSession,
  { action, values }: UsageCall,
  nowMs: number,
): Promise<number> {
  if (action === 'export') return exportRows(session, values, nowMs)
  if (action === 'statement') return statement(session, values)
  if (isReport(values)) {
    const { fromMs, untilMs } = rangeOf(values, '30d', nowMs)
    return report(session, values, { fromMs, toMs: untilMs ?? nowMs })
  }
  const summary = {
    grouping: groupingOf(values.by),
    filter: await filterOf(session.store, values),
    ...rangeOf(values, '30d', nowMs),
    json: values.json === true,
  }
  return summarise(session, summary, nowMs)
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
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
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
  values: UsageCall['values'],
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
