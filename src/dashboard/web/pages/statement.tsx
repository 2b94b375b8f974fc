/** The statement of a month: sums of accounts, what each key used of each model, and a file of it. */
import type { StatementReply } from '../../../control/dashboard/schema/schema.js'
import { useResource, type Resource } from '../api/use-resource.js'
import { SaveCsv } from '../components/button.js'
import { Filter, Search } from '../components/form.js'
import { Loaded } from '../components/loading-states.js'
import { counts, names } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { TwoLines } from '../components/values.js'
import { plural } from '../format/number.js'
import { countsText } from '../format/units.js'
import { setFilter, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'

/** Dimensions are splits besides. */
const SPLITS = [
  { value: 'client_format', label: 'Client format' },
  { value: 'program', label: 'Program' },
  { value: 'user', label: 'Person' },
] as const
/** Months that the page offers. */
const MONTHS = 24

export function StatementPage() {
  const scope = useScope()
  const { query } = useLocation()
  const months = monthsBefore(new Date())
  const month = months.find((each) => each === query.get('month')) ?? months[0] ?? ''
  const by = query.get('by')
  const asked = { id: month, account: scope, by }
  const [search, after] = [query.get('search'), query.get('after')]
  const partOf = `${month} ${scope ?? ''} ${by ?? ''}`
  const resource = useResource('/statements/{id}', { ...asked, search, after }, { partOf })
  return (
    <Page
      title="Statement"
      purpose={
        scope === 'all'
          ? 'What all accounts used and cost in a month (UTC).'
          : 'What the account and all below it used and cost in a month (UTC).'
      }
      action={<SaveCsv path="/statements/{id}" query={{ ...asked, format: 'csv' }} />}
      filters={
        <>
          <Filter
            label="Month"
            value={month}
            options={months.map((each) => ({ value: each, label: each }))}
            onChange={(value) => setFilter({ month: value })}
          />
          <Filter
            label="Split by"
            value={by ?? ''}
            all="Not split"
            options={[
              ...SPLITS,
              ...(resource.data?.dimensions ?? []).map((name) => ({
                value: `dimension:${name}`,
                label: name,
              })),
            ]}
            onChange={(value) => setFilter({ by: value })}
          />
          <Search label="Search the statement" hint="Account, key, model or value" value={search ?? ''} />
        </>
      }
    >
      <Loaded resource={resource} what="The statement" unaffected="Requests are still counted.">
        {(shown) => <Lines statement={shown} resource={resource} />}
      </Loaded>
    </Page>
  )
}

interface LinesProps {
  readonly statement: StatementReply
  readonly resource: Omit<Resource<unknown>, 'data'>
}

function Lines({ statement, resource }: LinesProps) {
  const { account, accounts, account_count: number, lines, line_count: total, next, month } = statement
  const by = useLocation().query.get('by')
  const split = SPLITS.find(({ value }) => value === by)?.label ?? by?.replace('dimension:', '') ?? null
  const units = Object.keys(statement.total.units).length === 0 ? [] : [UNITS]
  const isOver = month < new Date().toISOString().slice(0, 7)
  const note = `${plural(statement.total.requests, 'request')} · ${plural(number, 'account')} · ${
    isOver ? 'final' : 'so far'
  }`
  return (
    <>
      <Block title={`$${statement.total.cost_usd}`} note={`${account ?? 'All accounts'}, ${month}: ${note}`}>
        {number <= 1 ? null : (
          <DataTable
            caption="By account"
            columns={[...SUMS, ...units]}
            rows={accounts.slice(0, SHOWN)}
            name="by."
            usualSort="-cost"
            isPart={number > SHOWN}
            keyOf={(sum) => sum.account}
          />
        )}
        {number <= SHOWN ? null : (
          <p className="note">
            The {SHOWN} accounts with the highest cost of {number}. The file has all; a search finds the
            others.
          </p>
        )}
      </Block>
      <Block
        title={
          split === null ? 'By account, key and model' : `By account, key, model and ${split.toLowerCase()}`
        }
        note={
          split === null ? undefined : '(not kept): requests whose ledger entries are older than is kept.'
        }
      >
        <DataTable
          caption="Statement"
          columns={[...(split === null ? COLUMNS : splitColumns(split)), ...units]}
          list={{ ...resource, name: '', sortable: false, sort: null, rows: lines, total, next }}
          unit="line"
          empty={<p className="soft">No requests in this month.</p>}
          keyOf={(line) => `${line.account} ${line.key_id} ${line.model} ${line.group ?? ''}`}
        />
      </Block>
    </>
  )
}

type Line = StatementReply['lines'][number]

/** Accounts that are listed above the lines. */
const SHOWN = 20
const COST: Column<Pick<Line, 'cost_usd'>> = {
  id: 'cost',
  head: 'Cost (USD)',
  cell: ({ cost_usd }) => cost_usd,
  value: ({ cost_usd }) => Number(cost_usd),
  numeric: true,
}
/** Shown if the statement has units. */
const UNITS: Column<Pick<Line, 'units'>> = {
  id: 'units',
  head: 'Units',
  cell: ({ units }) => countsText(Object.entries(units)),
  className: 'prose',
  minor: true,
}
const SUMS: readonly Column<StatementReply['accounts'][number]>[] = [
  names('account', 'Account', ({ account }) => account, { strong: true }),
  counts('requests', 'Requests', ({ requests }) => requests),
  counts('input', 'Input', (sum) => sum.input_tokens, { minor: true }),
  counts('output', 'Output', (sum) => sum.output_tokens, { minor: true }),
  COST,
]

const COLUMNS: readonly Column<Line>[] = [
  {
    id: 'key',
    head: 'Key',
    cell: ({ account, key, key_id }) => <TwoLines first={key ?? (key_id || '–')} second={account} />,
    text: true,
  },
  names('model', 'Model', ({ model }) => (model === 'other' ? 'unknown models' : model)),
  counts('requests', 'Requests', ({ requests }) => requests),
  counts('input', 'Input', (line) => line.input_tokens, { minor: true }),
  counts('output', 'Output', (line) => line.output_tokens, { minor: true }),
  COST,
]

function splitColumns(split: string): readonly Column<Line>[] {
  return [...COLUMNS.slice(0, 2), names('group', split, ({ group }) => group ?? null), ...COLUMNS.slice(2)]
}

/** The current month and those before it, such as `2026-11`. */
function monthsBefore(now: Date): string[] {
  return Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  )
}
