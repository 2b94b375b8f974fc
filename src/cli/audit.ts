/** `sluice audit`: exports the audit trail of the configured store, newest first. */
import { csvCell } from '../base/csv.js'
import { withReason, type AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { configOption, declare, formatOption } from './command.js'
import { rangeOf, TIME_FORMS } from './time-range.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice audit`. */
export function command(open: OpenStore = withStore) {
  const audit = declare({
    name: 'audit',
    summary: 'export the audit trail: who changed which account or key',
    description: `
Prints one line for each change of an account, a key or the configuration and for each sign-in, newest first,
with or without a running gateway. The fields are id, at, actor (an e-mail address, or 'command line' with the
user of the operating system), address, request_id, action, account (its e-mail address), target (the id of the
key or account), before and after (the changed fields; JSON in csv, empty for none).`,
    example: 'sluice audit export --config config/gateway.yaml --format csv --since 30d > audit.csv',
  })
  audit
    .command('export')
    .addOption(formatOption())
    .option('--account <ACCOUNT>', 'only changes of the account with this name, id or e-mail address')
    .option('--since <TIME>', `${TIME_FORMS}; default: everything`)
    .option('--until <TIME>', 'the end, in the same forms (default: now)')
    .addOption(configOption())
    .action(async (options) => {
      const work = (session: StoreSession) => exportTrail(session, options, Date.now())
      process.exitCode = await open(options.config, work)
    })
  return audit
}

interface AuditOptions {
  readonly format: 'jsonl' | 'csv'
  readonly account?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
}

/** The columns, in order. */
const COLUMNS: readonly (readonly [name: string, value: (entry: AuditEntry, account: string) => unknown])[] =
  [
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

async function exportTrail(session: StoreSession, values: AuditOptions, nowMs: number): Promise<number> {
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
