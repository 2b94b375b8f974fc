/** The budgets of accounts, keys and labels: what is over, what will be, and until when one is raised. */
import type { BudgetRow, BudgetsReply } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { Button, CreateButton } from '../components/button.js'
import { DataTable, type Column } from '../components/data-table.js'
import { FormDialog, useDialog, type OpenDialog } from '../components/dialog.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { Empty, Loaded, TableSkeleton } from '../components/loading-states.js'
import { Day, Money } from '../components/values.js'
import { dollars, exactDollars, percent, plural } from '../format/number.js'
import { fullTime } from '../format/time.js'
import { go, keyLink, Link, setFilter, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'
import { AccountField, AccountLimits } from './accounts/account-dialogs.js'
import { RaiseButton, RaiseNote } from './raise-budget.js'

const EVERY_MS = 30_000

const STATUSES = [
  { value: 'over', label: 'over', tone: 'revoked' },
  { value: 'will_be_over', label: 'will be over', tone: 'warn' },
  { value: 'near', label: 'near', tone: 'warn' },
  { value: 'fine', label: 'fine', tone: '' },
] as const

const FILTERS: readonly ListFilter[] = [
  { name: 'status', label: 'Status', options: STATUSES },
  { name: 'kind', label: 'Kind', options: optionsOf('account', 'key', 'label') },
  {
    name: 'period',
    label: 'Period',
    options: [...optionsOf('day', 'week', 'month'), { value: 'total', label: 'in all' }],
  },
]

function optionsOf(...values: readonly string[]): ListFilter['options'] {
  return values.map((value) => ({ value, label: value }))
}

/** The page of all budgets. */
export function BudgetsPage() {
  const { query } = useLocation()
  const scope = useScope()
  const [dialog, open] = useDialog()
  const asked = Object.fromEntries(
    ['search', 'status', 'kind', 'period'].map((name) => [name, query.get(name)]),
  )
  const resource = useResource('/budgets', { account: scope, ...asked }, { everyMs: EVERY_MS })
  const mayChange = resource.data?.without.some((each) => each.mayChange) === true
  return (
    <Page
      title="Budgets"
      purpose="What accounts, keys and labels may spend, and where they will be at the end of the period (UTC)."
      action={
        mayChange ? (
          <CreateButton
            text="Set budget"
            onClick={() => open((onClose) => <ChooseAccount onClose={onClose} />)}
          />
        ) : undefined
      }
      filters={
        <FilterBar search={{ label: 'Search budgets', hint: 'Account, key or label' }} filters={FILTERS} />
      }
    >
      <Loaded resource={resource} what="The budgets" skeleton={<TableSkeleton />}>
        {(data) => <Budgets data={data} open={open} />}
      </Loaded>
      {dialog}
    </Page>
  )
}

interface BudgetsProps {
  readonly data: BudgetsReply
  readonly open: OpenDialog
}

function Budgets({ data, open }: BudgetsProps) {
  const { rows, total } = data
  return (
    <>
      <Summary data={data} />
      {rows.length === 0 ? (
        <NoMatches what="budgets" filters={FILTERS}>
          <Empty title="No budgets yet">
            <p>
              A budget limits what an account or key spends in a day, week or month, or in all. Requests
              beyond it are refused.
            </p>
          </Empty>
        </NoMatches>
      ) : (
        <DataTable
          caption="Budgets"
          columns={COLUMNS}
          rows={rows}
          isPart
          keyOf={({ id }) => id}
          actions={(row: BudgetRow) => <Actions row={row} open={open} />}
        />
      )}
      {total > rows.length ? (
        <p className="pager soft">
          The first {rows.length} of {plural(total, 'budget')}. Search for the others.
        </p>
      ) : null}
      <Without data={data} open={open} />
    </>
  )
}

function Actions({ row, open }: { readonly row: BudgetRow; readonly open: OpenDialog }) {
  const { kind, ofId, account, name } = row
  const edit = (): void => {
    if (kind === 'key') go(keyLink({ accountId: account ?? '', id: ofId }, 'limits'))
    else open((onClose) => <AccountLimits name={ofId} onClose={onClose} />)
  }
  if (!row.mayChange) return null
  return (
    <span className="row line gap-8">
      <RaiseButton row={row} open={open} />
      <Button className="small" onClick={edit}>
        Edit<span className="unseen"> the budget of {name}</span>
      </Button>
    </span>
  )
}

/** `1 over · 2 will be over · 37 fine`; each selects its rows. */
function Summary({ data: { counts } }: Pick<BudgetsProps, 'data'>) {
  const { query } = useLocation()
  const chosen = query.get('status')
  return (
    <div className="row" role="group" aria-label="Budgets by status">
      {STATUSES.map(({ value, label, tone }) => (
        <button
          key={value}
          type="button"
          className={`tag pick ${counts[value] === 0 ? '' : tone}`.trimEnd()}
          aria-pressed={chosen === value}
          onClick={() => setFilter({ status: chosen === value ? null : value })}
        >
          <b>{counts[value]}</b> {label}
        </button>
      ))}
    </div>
  )
}

const COLUMNS: readonly Column<BudgetRow>[] = [
  {
    id: 'name',
    head: 'Name',
    cell: (row) => (
      <span className="two-lines">
        <Owner row={row} />
        <span className="soft small cut">{secondLine(row)}</span>
        <RaiseNote row={row} />
      </span>
    ),
    text: true,
  },
  {
    id: 'period',
    head: 'Period',
    cell: ({ period }) => (period === 'total' ? 'in all' : period),
    extra: true,
  },
  {
    id: 'bar',
    head: 'Spent, forecast, limit',
    cell: (row) => <Track row={row} />,
    className: 'track-cell',
    minor: true,
  },
  { id: 'spent', head: 'Spent', cell: ({ spentNanoUsd }) => <Money nano={spentNanoUsd} />, numeric: true },
  { id: 'limit', head: 'Limit', cell: ({ limitNanoUsd }) => <Money nano={limitNanoUsd} />, numeric: true },
  { id: 'left', head: 'Left', cell: (row) => <Left row={row} />, numeric: true, extra: true },
  { id: 'forecast', head: 'Forecast', cell: (row) => <Forecast row={row} />, numeric: true, extra: true },
  { id: 'status', head: 'Status', cell: (row) => <Status row={row} /> },
]

function Owner({ row }: { readonly row: BudgetRow }) {
  const { kind, ofId, name } = row
  if (kind === 'label') return <span className="strong cut">{name}</span>
  const to = kind === 'key' ? keyLink({ accountId: row.account ?? '', id: ofId }) : `/accounts/${ofId}`
  return (
    <Link to={to} className="strong cut" title={name}>
      {name}
    </Link>
  )
}

const SOURCES = { own: '', plan: 'by the plan', configuration: 'by the configuration' } as const

function secondLine({ kind, account, source, sinceMs }: BudgetRow): string {
  const of = account === null ? kind : kind === 'key' ? `key of ${account}` : `${kind} of ${account}`
  const since = sinceMs === null ? '' : `the limit counts since ${fullTime(sinceMs)}`
  return [of, SOURCES[source], since].filter((text) => text !== '').join(' · ')
}

/** Spent as a bar, the forecast behind it, the limit as a line. */
function Track({ row }: { readonly row: BudgetRow }) {
  const { name, spentNanoUsd: spent, limitNanoUsd: limit, forecastNanoUsd: forecast, status } = row
  const top = Math.max(limit, spent, forecast ?? 0, 1) * 1.02
  const at = (nano: number): string => `${((nano / top) * 100).toFixed(1)}%`
  const share = percent(limit === 0 ? 1 : spent / limit)
  const text = forecast === null ? '' : `, forecast ${dollars(forecast)}`
  return (
    <span
      className={`track ${status}`}
      role="img"
      aria-label={`Budget of ${name}: ${share} used${text}`}
      title={`${exactDollars(spent)} of ${exactDollars(limit)}${text}`}
    >
      {forecast === null ? null : <span className="track-forecast" style={{ width: at(forecast) }} />}
      <span className="track-spent" style={{ width: at(spent) }} />
      <span className="track-limit" style={{ left: at(limit) }} />
    </span>
  )
}

function Left({ row: { limitNanoUsd, spentNanoUsd } }: { readonly row: BudgetRow }) {
  const left = limitNanoUsd - spentNanoUsd
  return <span title={exactDollars(left)}>{left < 0 ? `−${dollars(-left)}` : dollars(left)}</span>
}

function Forecast({ row }: { readonly row: BudgetRow }) {
  const { forecastNanoUsd: forecast, linearNanoUsd: linear, weekdayNanoUsd: weekday } = row
  if (forecast === null) {
    return (
      <span className="soft" title={row.toMs === null ? 'It never resets' : 'Too early in the period'}>
        –
      </span>
    )
  }
  const ways = [
    ...(weekday === null ? [] : [`by weekday ${exactDollars(weekday)}`]),
    ...(linear === null ? [] : [`linear ${exactDollars(linear)}`]),
  ]
  return <span title={ways.join(', ')}>{dollars(forecast)}</span>
}

function Status({ row: { status, overOnMs } }: { readonly row: BudgetRow }) {
  const shown = STATUSES.find(({ value }) => value === status)
  const tone = { over: 'bad', will_be_over: 'warn', near: 'warn', fine: 'good' }[status]
  return (
    <span className={`status ${tone}`}>
      {overOnMs === null ? (
        shown?.label
      ) : (
        <>
          over on <Day ms={overOnMs} />
        </>
      )}
    </span>
  )
}

/** Accounts without a budget for the month, closed at first. */
function Without({ data: { without, withoutTotal }, open }: BudgetsProps) {
  if (withoutTotal === 0) return null
  return (
    <details className="more-rows">
      <summary>Show {plural(withoutTotal, 'account')} without a budget for the month</summary>
      <DataTable
        caption="Accounts without a budget"
        columns={[
          {
            id: 'name',
            head: 'Account',
            cell: ({ name, displayName }) => (
              <Link to={`/accounts/${name}`} className="strong cut" title={displayName}>
                {displayName}
              </Link>
            ),
            text: true,
          },
          {
            id: 'spent',
            head: 'Spent this month',
            cell: ({ spentNanoUsd }) => <Money nano={spentNanoUsd} />,
            numeric: true,
          },
        ]}
        rows={without}
        isPart
        keyOf={({ name }) => name}
        actions={({ name, mayChange }) =>
          mayChange ? (
            <Button
              className="small"
              onClick={() => open((onClose) => <AccountLimits name={name} onClose={onClose} />)}
            >
              Set<span className="unseen"> the budget of {name}</span>
            </Button>
          ) : null
        }
      />
      {withoutTotal > without.length ? (
        <p className="pager soft">The {without.length} with the highest cost.</p>
      ) : null}
    </details>
  )
}

/** The account, then its budget. */
function ChooseAccount({ onClose }: { readonly onClose: () => void }) {
  return (
    <FormDialog
      title="Set a budget"
      verb="Next"
      initial={{ account: '' }}
      send={({ account }) => Promise.resolve(<AccountLimits name={account.trim()} onClose={onClose} />)}
      onClose={onClose}
    >
      {({ field }) => <AccountField required {...field('account')} />}
    </FormDialog>
  )
}
