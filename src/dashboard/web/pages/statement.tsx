/** The statement of an account for a month: what each key used of each model, and a file of it. */
import type { StatementReply } from '../../server/schema/schema.js'
import { call, problemOf, urlOf } from '../api/client.js'
import { useResource } from '../api/cache.js'
import { Button } from '../components/button.js'
import { report } from '../components/notices.js'
import { Loaded } from '../components/states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent, Count } from '../components/values.js'
import { saveFile } from '../format/csv.js'
import { plural } from '../format/number.js'
import { setQuery, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useAccount, useScope } from '../shell/session.js'

/** Months that the page offers. */
const MONTHS = 24

/** The page of statements. */
export function StatementPage() {
  const own = useAccount()
  const scope = useScope()
  const { query } = useLocation()
  const months = monthsBefore(new Date())
  const month = months.find((each) => each === query.get('month')) ?? months[0] ?? ''
  const account = scope === null || scope === 'all' ? own.id : scope
  const resource = useResource('/statements/{id}', { id: month, account })
  return (
    <Page
      title="Statement"
      purpose="What the account and all below it used and cost in a month (UTC)."
      scoped
      action={
        <Button icon="file" onClick={() => void saveStatement(month, account)}>
          Save CSV
        </Button>
      }
      filters={
        <label className="span">
          <span className="unseen">Month</span>
          <select value={month} onChange={(event) => setQuery({ month: event.target.value })}>
            {months.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Loaded resource={resource} what="The statement" holds="Requests are still counted.">
        {(data) => (
          <Block
            title={data.account}
            note={`${plural(data.total.requests, 'request')}, $${data.total.cost_usd}`}
          >
            {data.lines.length === 0 ? (
              <p className="soft">No requests in this month.</p>
            ) : (
              <DataTable
                caption="Statement"
                columns={COLUMNS}
                rows={data.lines}
                keyOf={(line) => `${line.account} ${line.key_id} ${line.model}`}
              />
            )}
          </Block>
        )}
      </Loaded>
    </Page>
  )
}

async function saveStatement(month: string, account: string): Promise<void> {
  try {
    const url = urlOf('/statements/{id}', { id: month, account, format: 'csv' })
    saveFile(`statement-${month}.csv`, await (await call('GET', url)).text())
  } catch (error) {
    report(problemOf(error).message)
  }
}

type Line = StatementReply['lines'][number]

const COLUMNS: readonly Column<Line>[] = [
  { id: 'account', head: 'Account', cell: ({ account }) => account },
  { id: 'key', head: 'Key', cell: ({ key, key_id }) => key ?? (key_id || <Absent />) },
  { id: 'model', head: 'Model', cell: ({ model }) => model },
  {
    id: 'requests',
    head: 'Requests',
    numeric: true,
    cell: ({ requests }) => <Count value={requests} />,
  },
  {
    id: 'input',
    head: 'Input',
    numeric: true,
    cell: (line) => <Count value={line.input_tokens} />,
  },
  {
    id: 'output',
    head: 'Output',
    numeric: true,
    cell: (line) => <Count value={line.output_tokens} />,
  },
  { id: 'cost', head: 'Cost (USD)', numeric: true, cell: ({ cost_usd }) => cost_usd },
]

/** The current month and those before it, such as `2026-11`. */
function monthsBefore(now: Date): string[] {
  return Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  )
}
