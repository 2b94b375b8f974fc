/** The budgets of accounts, keys and labels: what is over, what will be, and until when one is raised. */
import type { BudgetRow, BudgetsReply } from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useResource } from '../api/use-resource.js'
import { Button, CreateButton } from '../components/button.js'
import { DateField } from '../components/date-picker.js'
import { DataTable, type Column } from '../components/data-table.js'
import { FormDialog, useDialog, type OpenDialog } from '../components/dialog.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { TextField } from '../components/form.js'
import { Empty, Loaded, TableSkeleton } from '../components/loading-states.js'
import { report } from '../components/notices.js'
import { Day, Money } from '../components/values.js'
import { dollars, exactDollars, percent, plural } from '../format/number.js'
import { date, inputTime } from '../format/time.js'
import { keyLink, Link, setFilter, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'
import { AccountField, AccountLimits } from './accounts/account-dialogs.js'

const EVERY_MS = 30_000
const USD = 1e9
const WEEK_MS = 7 * 86_400_000

const STATUSES = [
  { value: 'over', label: 'over', tone: 'revoked' },
  { value: 'will_be_over', label: 'will be over', tone: 'warn' },
  { value: 'near', label: 'near', tone: 'warn' },
  { value: 'fine', label: 'fine', tone: '' },
] as const

const FILTERS: readonly ListFilter[] = [
  { name: 'status', label: 'Status', options: STATUSES },
  { name: 'kind', label: 'Kind', options: optionsOf('account', 'key', 'label') },
  { name: 'period', label: 'Period', options: optionsOf('day', 'week', 'month') },
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
              A budget limits what an account or key spends in a day, week or month. Requests beyond it are
              refused.
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
          actions={(row: BudgetRow) =>
            row.mayChange ? (
              <Button
                className="small"
                onClick={() => open((onClose) => <Raise row={row} onClose={onClose} />)}
              >
                Raise<span className="unseen"> the budget of {row.name}</span>
              </Button>
            ) : null
          }
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
        {row.raise === null ? null : (
          <span className="soft small cut" title={row.raise.reason}>
            raised from {dollars(row.raise.fromNanoUsd)} until {date(row.raise.untilMs, row.fromMs)}: “
            {row.raise.reason}”, {row.raise.by}
          </span>
        )}
      </span>
    ),
    text: true,
  },
  { id: 'period', head: 'Period', cell: ({ period }) => period, extra: true },
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

function secondLine({ kind, account, source }: BudgetRow): string {
  const of = account === null ? kind : kind === 'key' ? `key of ${account}` : `${kind} of ${account}`
  return [of, SOURCES[source]].filter((text) => text !== '').join(' · ')
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
      <span className="soft" title="Too early in the period">
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
        <p className="pager soft">The {without.length} with the highest spend.</p>
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

interface RaiseProps {
  readonly row: BudgetRow
  readonly onClose: () => void
}

/** Raises a budget until a time; the former one then holds again. */
function Raise({ row, onClose }: RaiseProps) {
  const { kind, ofId, name, period, limitNanoUsd, forecastNanoUsd, raise, toMs } = row
  const former = raise?.fromNanoUsd ?? limitNanoUsd
  const wanted = Math.max(former * 1.5, forecastNanoUsd ?? 0)
  return (
    <FormDialog
      title={`Raise the budget of ${name}`}
      description={`${dollars(former)} a ${period} holds again afterwards. The reason is in the audit log.`}
      verb="Raise"
      initial={{
        usd: wanted < USD ? (wanted / USD).toFixed(2) : String(Math.ceil(wanted / USD)),
        until: inputTime(toMs),
        reason: '',
      }}
      send={async ({ usd, until, reason }) => {
        const body = {
          ...({ budget: `usd_per_${period}`, usd: Number(usd), reason } as const),
          untilMs: new Date(until).getTime(),
        }
        if (kind === 'key') await change('POST /keys/{id}/raise', body, ofId, { account: row.account })
        else await change('POST /accounts/{id}/limits/raise', body, ofId)
        report(`The budget of ${name} is $${usd} until ${date(body.untilMs, Date.now())}.`)
      }}
      onClose={onClose}
    >
      {({ field, set }) => (
        <>
          <TextField
            label={`US dollars a ${period}`}
            type="number"
            min={0}
            step={0.01}
            inputMode="decimal"
            required
            autoFocus
            {...field('usd')}
          />
          <DateField label="Until" withTime required {...field('until', 'untilMs')} />
          <p className="row">
            <Button className="small" onClick={() => set({ until: inputTime(toMs) })}>
              End of the {period}
            </Button>
            <Button className="small" onClick={() => set({ until: inputTime(Date.now() + WEEK_MS) })}>
              7 days
            </Button>
          </p>
          <TextField label="Reason" required maxLength={200} placeholder="launch" {...field('reason')} />
        </>
      )}
    </FormDialog>
  )
}
