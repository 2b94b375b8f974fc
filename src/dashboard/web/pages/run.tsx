/** A run, a value of the dimension `run`: what it has used, what is left of it, its tools, its requests. */
import type { RunReply } from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { change } from '../api/endpoints.js'
import { useList, useResource } from '../api/use-resource.js'
import { Button } from '../components/button.js'
import { FormDialog, useDialog } from '../components/dialog.js'
import { Fact, Facts } from '../components/facts.js'
import { NamedLevels } from '../components/limits.js'
import { ReasonField } from '../components/form.js'
import { Empty, Loaded } from '../components/loading-states.js'
import { report } from '../components/notices.js'
import { Ago, Count, Money } from '../components/values.js'
import { count } from '../format/number.js'
import { Link, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useScope } from '../shell/session.js'
import { OpenedRequest, RequestTable } from './request-table.js'

const EVERY_MS = 5_000
const PAGE = 50

export function RunPage() {
  const scope = useScope()
  const run = useLocation().query.get('run') ?? ''
  const enabled = run !== '' && scope !== 'all'
  const resource = useResource('/run', { run, account: scope }, { everyMs: EVERY_MS, enabled })
  const [dialog, open] = useDialog()
  const { data } = resource
  return (
    <Page
      title={run === '' ? 'Run' : `Run ${run}`}
      purpose="What the run has used, what is left of its limits, its tools and its requests."
      action={
        data?.mayEnd === true && data.state === 'live' ? (
          <Button tone="danger" onClick={() => open((onClose) => <StopRun run={data} onClose={onClose} />)}>
            Stop run
          </Button>
        ) : undefined
      }
    >
      {enabled ? (
        <Loaded resource={resource} what="The run" unaffected="Its requests are still served and recorded.">
          {(shown) => <Figures run={shown} />}
        </Loaded>
      ) : (
        <Empty title="No run chosen">
          Choose one under <Link to={urlOf('/usage', { group: 'dimension:run' })}>Usage by run</Link> of an
          account.
        </Empty>
      )}
      {enabled ? <Requests run={run} /> : null}
      <OpenedRequest />
      {dialog}
    </Page>
  )
}

function Figures({ run }: { readonly run: RunReply }) {
  const { state, requests, inputTokens, outputTokens, costNanoUsd, firstAtMs, lastAtMs, endedAtMs } = run
  return (
    <>
      <Block title="Used">
        <Facts>
          <Fact name="State">
            {state === 'live' ? 'live' : 'ended'}
            {endedAtMs === null ? null : (
              <span className="soft">
                {' '}
                · <Ago ms={endedAtMs} />
              </span>
            )}
          </Fact>
          <Fact name="Account">{run.account}</Fact>
          <Fact name="Cost">
            <Money nano={costNanoUsd} />
          </Fact>
          <Fact name="Requests">
            <Count value={requests} unit="requests" />
          </Fact>
          <Fact name="Tokens">
            {count(inputTokens)} in · {count(outputTokens)} out
          </Fact>
          <Fact name="First request">
            <Ago ms={firstAtMs} />
          </Fact>
          <Fact name="Latest request">
            <Ago ms={lastAtMs} />
          </Fact>
        </Facts>
      </Block>
      <Limits run={run} />
      <Tools run={run} />
    </>
  )
}

/** Nothing without limits. */
function Limits({ run: { limits } }: { readonly run: RunReply }) {
  if (limits.length === 0) return null
  return (
    <Block title="Limits" note="of this run">
      <NamedLevels levels={limits} />
    </Block>
  )
}

/** Nothing without calls. */
function Tools({ run: { tools } }: { readonly run: RunReply }) {
  if (tools.length === 0) return null
  return (
    <Block title="Tools" note="that the model called">
      <Facts>
        {tools.map(({ name, calls }) => (
          <Fact key={name} name={name}>
            <Count value={calls} unit="calls" />
          </Fact>
        ))}
      </Facts>
    </Block>
  )
}

function Requests({ run }: { readonly run: string }) {
  const account = useScope()
  const dimension = `run=${run}`
  const list = useList('/requests', { account, dimension, limit: PAGE }, ({ rows }) => rows, {
    sortable: true,
    usualSort: '-atMs',
  })
  return (
    <Block
      title="Requests"
      action={<Link to={urlOf('/requests', { account, dimension })}>All with filters</Link>}
    >
      <RequestTable
        list={list}
        empty={<Empty title="No request is kept">Older ones have left the ledger.</Empty>}
      />
    </Block>
  )
}

interface StopRunProps {
  readonly run: RunReply
  readonly onClose: () => void
}

/** Ends the run, which cannot be undone. */
function StopRun({ run: { run, account }, onClose }: StopRunProps) {
  return (
    <FormDialog
      isQuestion
      title={`Stop run ${run}?`}
      description="Its running requests are cut within a second on every gateway, and later ones get 403 run_ended."
      verb="Stop run"
      initial={{ reason: '' }}
      send={async ({ reason }) => {
        await change('POST /run/end', { run, reason }, undefined, { account })
        report(`Stopped. Requests of the run ${run} are refused.`)
      }}
      onClose={onClose}
    >
      {(form) => <ReasonField {...form.field('reason')} />}
    </FormDialog>
  )
}
