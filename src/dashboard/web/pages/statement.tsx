/** The statement of an account for a month: what each key used of each model, and a file of it. */
import type { StatementReply } from '../../server/schema/schema.js'
import { call, problemOf, urlOf } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { Button } from '../components/button.js'
import { Filter } from '../components/form.js'
import { report } from '../components/notices.js'
import { Loaded } from '../components/loading-states.js'
import { counts, names } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { saveFile } from '../format/csv.js'
import { plural } from '../format/number.js'
import { setQuery, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useAccount, useScope } from '../shell/session.js'

/** Months that the page offers. */
const MONTHS = 24

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
        <Filter
          label="Month"
          value={month}
          options={months.map((each) => ({ value: each, label: each }))}
          onChange={(value) => setQuery({ month: value })}
        />
      }
    >
      <Loaded resource={resource} what="The statement" unaffected="Requests are still counted.">
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
  names('account', 'Account', ({ account }) => account),
  names('key', 'Key', ({ key, key_id }) => key ?? (key_id || null)),
  names('model', 'Model', ({ model }) => (model === 'other' ? 'unknown models' : model)),
  counts('requests', 'Requests', ({ requests }) => requests),
  counts('input', 'Input', (line) => line.input_tokens, { minor: true }),
  counts('output', 'Output', (line) => line.output_tokens, { minor: true }),
  {
    id: 'cost',
    head: 'Cost (USD)',
    cell: ({ cost_usd }) => cost_usd,
    value: ({ cost_usd }) => Number(cost_usd),
    numeric: true,
  },
]

/** The current month and those before it, such as `2026-11`. */
function monthsBefore(now: Date): string[] {
  return Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  )
}
