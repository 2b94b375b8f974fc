/** The audit log: who changed what, when and why, with filters and a file. */
import type { Query } from '../api/client.js'
import type { AuditEntry } from '../../../control/dashboard/schema/schema.js'
import { useList } from '../api/use-resource.js'
import { SaveCsv } from '../components/button.js'
import { times } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Changes } from '../components/facts.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { Filter } from '../components/form.js'
import { Empty } from '../components/loading-states.js'
import { ACTION_TEXTS, actionText } from '../format/audit-texts.js'
import { DAY_MS } from '../format/time.js'
import { setFilter, useLocation } from '../routing.js'
import { useNow } from '../shell/clock.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'

const PAGE = 50
/** Changed values of a row; further ones open on demand. */
const SHOWN_CHANGES = 5
/** The start of a period is rounded, so that the list does not load again with each tick of the clock. */
const STEP_MS = 300_000

const WHEN = times<AuditEntry>('atMs', 'When', ({ atMs }) => atMs)
const ACCOUNT: Column<AuditEntry> = {
  id: 'account',
  head: 'Account',
  // A change of a user is one of no account.
  cell: ({ accountName, accountId }) => accountName ?? (accountId.startsWith('usr_') ? '' : accountId),
  minor: true,
}
const COLUMNS: readonly Column<AuditEntry>[] = [
  { id: 'who', head: 'By', cell: ({ actor }) => actor },
  {
    id: 'what',
    head: 'Action',
    cell: ({ action }) => (
      <>
        {actionText(action)}
        <br />
        <span className="soft small">{action}</span>
      </>
    ),
  },
  {
    id: 'detail',
    head: 'Detail',
    cell: (entry) => (
      <>
        {nameOf(entry)}
        <Changes changes={entry.changes} most={SHOWN_CHANGES} />
        {entry.reason === null ? null : <span className="soft"> Reason: {entry.reason}</span>}
      </>
    ),
    className: 'wide-cell',
    extra: true,
  },
  {
    id: 'address',
    head: 'From',
    cell: ({ address }) => <code>{address ?? ''}</code>,
    minor: true,
  },
]

/** What was changed: the account by its name, everything else by its name at the time. */
function nameOf({ action, detail, accountName, changes }: AuditEntry): string {
  // `ci; limits: none → …`: the differences are listed below it.
  const name = changes.length > 0 && detail.includes(' → ') ? (detail.split('; ')[0] ?? detail) : detail
  const isAccount = /^account\.(?:create|change|plan|raise|disable|enable|purge)$/.test(action)
  return isAccount ? (accountName ?? name) : name
}

/** The columns of the changes of one account. */
export const AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [WHEN, ...COLUMNS]

/** The page of the audit log. */
export function AuditPage() {
  const { query } = useLocation()
  const scope = useScope()
  const nowMs = Math.floor(useNow() / STEP_MS) * STEP_MS
  const days = DAYS.find(({ value }) => value === query.get('since'))?.days
  const asked: Query = {
    ...{ account: scope, search: query.get('search'), actor: query.get('actor') },
    ...{ action: query.get('action') ?? actionOf(query.get('show')), target: query.get('target') },
    ...(days === undefined ? {} : { fromMs: nowMs - days * DAY_MS }),
  }
  const list = useList('/audit', { ...asked, limit: PAGE }, ({ entries }) => entries, {
    sortable: true,
    usualSort: '-atMs',
  })
  return (
    <Page
      title="Audit log"
      purpose="Who changed accounts, keys, members and the configuration, when and why."
      action={<SaveCsv path="/audit.csv" query={{ ...asked, sort: query.get('sort') }} />}
      filters={
        <FilterBar search={{ label: 'Search the audit log' }} filters={FILTERS}>
          <Filter
            label="What is shown"
            value={query.get('show') ?? ''}
            all="Changes"
            options={SHOWN}
            onChange={(show) => setFilter({ show })}
          />
        </FilterBar>
      }
    >
      <DataTable
        caption="Audit log"
        columns={[WHEN, ...(scope === 'all' ? [ACCOUNT] : []), ...COLUMNS]}
        list={list}
        unit="change"
        empty={
          <NoMatches what="changes" filters={FILTERS}>
            <Empty title="No changes yet">
              <p>Each change of an account, a key or a member is listed here.</p>
            </Empty>
          </NoMatches>
        }
        keyOf={({ id }) => id}
      />
    </Page>
  )
}

const SHOWN = [
  { value: 'sign-ins', label: 'Sign-ins' },
  { value: 'all', label: 'Changes and sign-ins' },
] as const

/** The actions of a choice: changes alone unless another one is made. */
function actionOf(show: string | null): string | null {
  if (show === 'all') return null
  return show === 'sign-ins' ? 'session.' : '!session.'
}

const KINDS = [...new Set(Object.keys(ACTION_TEXTS).map((action) => action.split('.')[0] ?? ''))]

/** `configuration` has no plural here, and `batch` an irregular one. */
function plural(kind: string): string {
  return kind === 'configuration' ? 'the configuration' : kind === 'batch' ? 'batches' : `${kind}s`
}

const DAYS = [
  { value: '24h', label: 'Last 24 h', days: 1 },
  { value: '7d', label: 'Last 7 d', days: 7 },
  { value: '30d', label: 'Last 30 d', days: 30 },
] as const

const FILTERS: readonly ListFilter[] = [
  {
    name: 'action',
    label: 'Action',
    options: [
      ...KINDS.map((kind) => ({ value: `${kind}.`, label: `all of ${plural(kind)}` })),
      ...Object.entries(ACTION_TEXTS).map(([value, text]) => ({ value, label: `${text} (${value})` })),
    ],
    isFree: true,
  },
  {
    name: 'actor',
    label: 'By',
    options: [{ value: 'command line', label: 'command line' }],
    isFree: true,
  },
  { name: 'target', label: 'Target id', options: [], isFree: true },
  { name: 'since', label: 'Time', options: DAYS },
]
