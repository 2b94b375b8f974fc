/** `sluice audit`: exports the audit trail of the configured store, newest first. */
import { csvCell } from '../ledger/export-columns.js'
import { withReason, type AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { parseAction, type Command } from './command.js'
import { UsageError } from './usage-error.js'
import { rangeOf } from './usage.js'
import { namedAccount, openingFor, withStore, type StoreSession } from './with-store.js'

/** `sluice audit`. */
export const command: Command = {
  name: 'audit',
  summary: 'export the audit trail: who changed which account or key',
  help: `
Usage: sluice audit export --format jsonl|csv [--account ACCOUNT] [--since TIME] [--until TIME]
                           [--config FILE]

Prints one line for each change of an account, a key or the configuration and for each sign-in, newest first,
with or without a running gateway. The fields are id, at, actor (an e-mail address, or 'command line' with the
user of the operating system), address, request_id, action, account (its e-mail address), target (the id of the
key or account), before and after (the changed fields; JSON in csv, empty for none).

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --format FORMAT    jsonl (one JSON object a line) or csv (with a line of names first)
  --account ACCOUNT  only changes of the account with this id or e-mail address
  --since TIME       a date or time (2026-11-20, 2026-11-20T08:00:00Z), or a duration before now (90m, 24h, 7d);
                     default: everything
  --until TIME       the end, in the same forms (default: now)

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice audit export --config config/gateway.yaml --format csv --since 30d > audit.csv
`,
  run(argv) {
    const { values } = parseAudit(argv)
    return withStore(openingFor('sluice audit', values.config), (session) =>
      runAudit(session, values, Date.now()),
    )
  },
}

const OPTIONS = {
  config: { type: 'string' },
  format: { type: 'string' },
  account: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
} as const

/** The options of the action. */
export type AuditValues = ReturnType<typeof parseAudit>['values']

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseAudit(argv: readonly string[]) {
  const allowed = { export: Object.keys(OPTIONS) } as const
  const parsed = parseAction('audit', argv, { options: OPTIONS, allowed })
  const { format } = parsed.values
  if (format !== 'jsonl' && format !== 'csv') {
    throw new UsageError("'sluice audit export' needs --format jsonl or --format csv")
  }
  return parsed
}

/** The columns, in order. */
const COLUMNS: readonly (readonly [
  name: string,
  value: (entry: AuditEntry, account: string) => unknown,
])[] = [
  ['id', ({ id }) => id],
  ['at', ({ atMs }) => new Date(atMs).toISOString()],
  ['actor', ({ actor }) => actor],
  ['address', ({ address }) => address],
  ['request_id', ({ requestId }) => requestId ?? null],
  ['action', ({ action }) => action],
  ['account', (_, account) => account],
  ['target', ({ target }) => target],
  ['before', ({ before }) => before ?? null],
  ['after', (entry) => withReason(entry) ?? withoutFields(entry)],
]

/** Entries without changed fields have a text, such as the reason of a rollback. */
function withoutFields({ after, detail }: AuditEntry): unknown {
  return after === undefined && detail !== '' ? { detail } : null
}

/** Runs the action on an open store; `nowMs` is the reference of `--since 24h`. Throws `UsageError`. */
export async function runAudit(
  session: StoreSession,
  values: AuditValues,
  nowMs: number,
): Promise<number> {
  const { store, terminal } = session
  const { fromMs, untilMs } = rangeOf(values, '1970-01-01', nowMs)
  const owner = values.account === undefined ? null : await namedAccount(session, values.account)
  if (owner === null && values.account !== undefined) return 1
  const isCsv = values.format === 'csv'
  if (isCsv) terminal.out(COLUMNS.map(([name]) => name).join(','))
  const names = new AccountNames(store)
  for await (const page of pagesOf(store, owner?.id ?? null)) {
    const lines: string[] = []
    for (const entry of page) {
      if (entry.atMs < fromMs || entry.atMs >= (untilMs ?? Infinity)) continue
      const account = await names.of(entry.accountId)
      const cells = COLUMNS.map(([name, value]) => [name, value(entry, account)] as const)
      lines.push(isCsv ? csvOf(cells) : JSON.stringify(Object.fromEntries(cells)))
    }
    if (lines.length > 0) terminal.out(lines.join('\n'))
    await terminal.ready()
    // A minute for clocks that differ: entries are in order of their ids, which each machine makes.
    if ((page.at(-1)?.atMs ?? Infinity) < fromMs - 60_000) return 0
  }
  return 0
}

function csvOf(cells: readonly (readonly [name: string, value: unknown])[]): string {
  return cells
    .map(([, value]) => {
      if (value === null || value === undefined) return ''
      return csvCell(typeof value === 'string' ? value : JSON.stringify(value))
    })
    .join(',')
}

const PAGE_ENTRIES = 500

async function* pagesOf(
  { auditTrail }: Pick<Store, 'auditTrail'>,
  accountId: string | null,
): AsyncGenerator<readonly AuditEntry[]> {
  for (let after: string | null = null; ;) {
    const page: AuditEntry[] = await auditTrail.page({ accountId, after, limit: PAGE_ENTRIES })
    yield page
    if (page.length < PAGE_ENTRIES) return
    after = page.at(-1)?.id ?? null
  }
}

/** E-mail addresses by id; an account that does not exist has its id as its name. */
class AccountNames {
  private readonly store: Pick<Store, 'accountById'>
  private readonly names = new Map<string, string>()

  constructor(store: Pick<Store, 'accountById'>) {
    this.store = store
  }

  async of(accountId: string): Promise<string> {
    const known = this.names.get(accountId)
    if (known !== undefined) return known
    const account = await this.store.accountById(accountId)
    const name = account?.email ?? account?.name ?? accountId
    this.names.set(accountId, name)
    return name
  }
}
