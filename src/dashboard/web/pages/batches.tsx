/** Batches, newest first, and a drawer with one: its lines, what it has cost, and its cancellation. */
import type { BatchesReply, BatchReply } from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { change } from '../api/endpoints.js'
import { useList, useResource } from '../api/use-resource.js'
import { Button } from '../components/button.js'
import { CopyButton } from '../components/copy-button.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Dialog, FormDialog, useDialog } from '../components/dialog.js'
import { DrawerSection, Fact, Facts, Summary } from '../components/facts.js'
import { Filter, ReasonField } from '../components/form.js'
import { Empty, Loaded } from '../components/loading-states.js'
import { report } from '../components/notices.js'
import { Absent, Ago, Count, Money, Name, TwoLines } from '../components/values.js'
import { count, plural } from '../format/number.js'
import { fullTime } from '../format/time.js'
import { keyLink, Link, setFilter, setQuery, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'

type Batch = BatchReply['batch']
type Listed = BatchesReply['batches'][number]

const PAGE = 50
const EVERY_MS = 5_000

const STATES: Readonly<Record<Batch['state'], { readonly text: string; readonly tone: string }>> = {
  validating: { text: 'validating', tone: '' },
  in_progress: { text: 'running', tone: 'good' },
  finalizing: { text: 'writing results', tone: 'good' },
  completed: { text: 'completed', tone: 'good' },
  failed: { text: 'failed', tone: 'bad' },
  cancelling: { text: 'cancelling', tone: 'warn' },
  cancelled: { text: 'cancelled', tone: 'warn' },
  expired: { text: 'expired', tone: 'warn' },
}

export function BatchesPage() {
  const scope = useScope()
  const { query } = useLocation()
  const state = query.get('state') ?? ''
  const opened = query.get('batch')
  const off = useResource('/batches', { account: scope, limit: 1 }).data?.isOff === true
  const list = useList(
    '/batches',
    { account: scope, state, limit: PAGE },
    ({ batches }: BatchesReply) => batches,
    { everyMs: EVERY_MS },
  )
  return (
    <Page
      title="Batches"
      purpose="Work of POST /v1/batches: its state, the lines that have run, and what it has cost."
      filters={
        <Filter
          label="State"
          all="All states"
          value={state}
          options={Object.entries(STATES).map(([value, { text }]) => ({ value, label: text }))}
          onChange={(value) => setFilter({ state: value })}
        />
      }
    >
      <DataTable
        caption="Batches, newest first"
        columns={scope === 'all' ? [NAME, ACCOUNT, ...COLUMNS] : [NAME, ...COLUMNS]}
        list={list}
        unit="batch"
        unaffected="Batches still run."
        keyOf={({ id }) => id}
        nameOf={({ id }) => id}
        open={({ id }) => setQuery({ batch: id })}
        empty={<NoBatches isOff={off} isFiltered={state !== ''} />}
      />
      {opened === null ? null : <BatchDrawer id={opened} onClose={() => setQuery({ batch: null })} />}
    </Page>
  )
}

function NoBatches({ isOff, isFiltered }: { readonly isOff: boolean; readonly isFiltered: boolean }) {
  if (isOff) {
    return (
      <Empty title="This gateway runs no batches">
        <p>
          Set <code>files</code> in its configuration to serve <code>/v1/files</code> and{' '}
          <code>/v1/batches</code>.
        </p>
      </Empty>
    )
  }
  return isFiltered ? (
    <Empty title="No batch is in this state">
      <Button onClick={() => setFilter({ state: null })}>All states</Button>
    </Empty>
  ) : (
    <Empty title="No batches yet">
      <p>
        A client makes one with a file of lines and <code>POST /v1/batches</code>.
      </p>
    </Empty>
  )
}

function State({ batch: { state } }: { readonly batch: Batch }) {
  const { text, tone } = STATES[state]
  return <span className={`status ${tone}`.trimEnd()}>{text}</span>
}

const NAME: Column<Listed> = {
  id: 'name',
  head: 'Batch',
  cell: ({ id, model, upstream, endpoint }) => (
    <TwoLines
      first={<Name text={id} strong />}
      second={[model, ...(upstream === null ? [] : [upstream]), endpoint].join(' · ')}
    />
  ),
  text: true,
}

const ACCOUNT: Column<Listed> = {
  id: 'account',
  head: 'Account',
  cell: ({ account }) => account,
  extra: true,
}

const COLUMNS: readonly Column<Listed>[] = [
  { id: 'state', head: 'State', cell: (batch) => <State batch={batch} /> },
  {
    id: 'done',
    head: 'Lines done',
    cell: ({ lines: { completed, total } }) => `${count(completed)} of ${count(total)}`,
    numeric: true,
  },
  {
    id: 'failed',
    head: 'Failed',
    cell: ({ lines: { failed } }) => (failed === 0 ? '0' : <b className="bad-text">{count(failed)}</b>),
    numeric: true,
    extra: true,
  },
  {
    id: 'cost',
    head: 'Cost',
    cell: ({ used }) =>
      used === null ? <Absent /> : <Money nano={used.costNanoUsd} unpriced={used.unpriced} />,
    numeric: true,
  },
  { id: 'created', head: 'Created', cell: ({ createdAtMs }) => <Ago ms={createdAtMs} />, minor: true },
]

interface DrawerProps {
  readonly id: string
  readonly onClose: () => void
}

function BatchDrawer({ id, onClose }: DrawerProps) {
  const account = useScope()
  const resource = useResource('/batches/{id}', { id, account }, { everyMs: EVERY_MS })
  const [dialog, open] = useDialog()
  return (
    <Dialog title="Batch" side onClose={onClose}>
      <Loaded resource={resource} what="This batch" unaffected="It still runs.">
        {(reply) => (
          <>
            <Contents {...reply} />
            {reply.mayCancel ? (
              <p>
                <Button
                  tone="danger"
                  disabled={reply.batch.state === 'cancelling'}
                  onClick={() => open((close) => <CancelBatch batch={reply.batch} onClose={close} />)}
                >
                  Cancel batch
                </Button>
              </p>
            ) : null}
          </>
        )}
      </Loaded>
      {dialog}
    </Dialog>
  )
}

function Contents({ batch, used }: BatchReply) {
  const { id, accountId, account, keyId, model, endpoint, upstream, upstreamBatchId, form, lines } = batch
  const { completed, failed, total } = lines
  return (
    <>
      <Summary>
        <State batch={batch} />
        <span>
          {count(completed)} of {plural(total, 'line')} done
        </span>
        {failed === 0 ? null : <span className="bad-text">{count(failed)} failed</span>}
        <Money nano={used.costNanoUsd} unpriced={used.unpriced} />
      </Summary>
      {batch.failure === null ? null : (
        <section className="failure stack provider" aria-label="Failure">
          <p className="failure-message">{batch.failure}</p>
        </section>
      )}
      <DrawerSection title="Batch">
        <Facts>
          <Fact name="Batch id">
            <code>{id}</code> <CopyButton text={id} what="batch id" />
          </Fact>
          <Fact name="Account">{account}</Fact>
          <Fact name="Key id">
            <Link to={keyLink({ accountId, id: keyId })}>
              <code>{keyId}</code>
            </Link>
          </Fact>
          <Fact name="Endpoint">
            <code>{endpoint}</code>
          </Fact>
          <Fact name="Model">{model}</Fact>
          <Fact name="Upstream">
            {upstream ?? <Absent />}
            <span className="soft"> · {form === 'queue' ? 'line by line' : `batches of ${form}`}</span>
          </Fact>
          <Fact name="Id at the upstream">
            {upstreamBatchId === null ? null : <code>{upstreamBatchId}</code>}
          </Fact>
          <Fact name="Created">{fullTime(batch.createdAtMs)}</Fact>
          {batch.endedAtMs === null ? (
            <Fact name="Ends by">{fullTime(batch.expiresAtMs)}</Fact>
          ) : (
            <Fact name="Ended">{fullTime(batch.endedAtMs)}</Fact>
          )}
        </Facts>
      </DrawerSection>
      <DrawerSection title="Usage">
        <Facts>
          <Fact name="Cost">
            <Money nano={used.costNanoUsd} unpriced={used.unpriced} />
            {used.isPart ? <span className="soft"> of the newest requests</span> : null}
          </Fact>
          <Fact name="Requests">
            <Count value={used.requests} unit="requests" />{' '}
            {used.requests === 0 ? null : (
              <Link to={urlOf('/requests', { account: accountId, batch: id })}>Show them</Link>
            )}
          </Fact>
        </Facts>
      </DrawerSection>
    </>
  )
}

/** Cancels the batch, which cannot be undone. */
function CancelBatch({ batch, onClose }: { readonly batch: Batch; readonly onClose: () => void }) {
  const { id, accountId, lines } = batch
  const left = lines.total - lines.completed - lines.failed
  return (
    <FormDialog
      isQuestion
      title={`Cancel the batch ${id}?`}
      description={`No more of its lines are sent: ${plural(left, 'line')} of ${count(lines.total)} have not run. What ran is charged, and its results stay.`}
      verb="Cancel batch"
      initial={{ reason: '' }}
      send={async (body) => {
        await change('POST /batches/{id}/cancel', body, id, { account: accountId })
        report('Cancelling. The batch ends within seconds.')
      }}
      onClose={onClose}
    >
      {(form) => <ReasonField {...form.field('reason')} />}
    </FormDialog>
  )
}
