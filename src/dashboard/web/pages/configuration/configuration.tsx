/** The configuration in force, its generations and rollbacks, for administrators. */
import { useState } from 'react'
import type {
  ConfigurationReply,
  FleetMember,
  GenerationRecord,
} from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { Button } from '../../components/actions/button.js'
import { report } from '../../components/states/notices.js'
import { Loaded } from '../../components/states/states.js'
import { Ago } from '../../components/tables/figure.js'
import { Table, type Column } from '../../components/tables/table.js'
import { setQuery, useLocation } from '../../routing/location.js'
import { Block, Page } from '../../shell/page.js'
import { GenerationDrawer } from './generation-drawer.js'
import { reasonOf } from './reason.js'
import { Rollback } from './rollback.js'

const EVERY_MS = 5_000

/** The page of the configuration. */
export function ConfigurationPage() {
  const { query } = useLocation()
  const resource = useResource('/configuration', {}, { everyMs: EVERY_MS })
  const { data, reload } = resource
  const [target, setTarget] = useState<GenerationRecord | null>(null)
  const shown = query.get('generation')
  return (
    <Page
      title="Configuration"
      purpose="The generation in force, the changes with their authors, and rollbacks."
    >
      <Loaded
        resource={resource}
        what="The configuration"
        holds="Requests are served with the generation in force."
      >
        {(data) => (
          <>
            <InForce data={data} />
            <Generations data={data} rollBack={setTarget} />
            {data.fleet === null ? null : <Fleet fleet={data.fleet} hash={data.hash} />}
            <Block title="Values in force" note="secrets are masked">
              <details>
                <summary>Show all values</summary>
                <pre className="code" tabIndex={0} aria-label="Values in force">
                  {data.values}
                </pre>
              </details>
            </Block>
          </>
        )}
      </Loaded>
      {shown === null || data === null ? null : (
        <GenerationDrawer
          generation={shown}
          others={data.generations}
          from={query.get('from')}
          onClose={() => setQuery({ generation: null, from: null })}
        />
      )}
      {target === null ? null : (
        <Rollback
          target={target}
          onClose={() => setTarget(null)}
          onDone={(generation) => {
            report(`Rolled back. Generation ${generation} is in force.`)
            reload()
          }}
        />
      )}
    </Page>
  )
}

function InForce({ data }: { readonly data: ConfigurationReply }) {
  const { inForce, held, problems, waitingForRestart, hash } = data
  return (
    <Block title="In force">
      {held === 'last_good' ? (
        <div className="problem" role="alert">
          <p>
            The file had a fault when the gateway started. Generation {inForce}, the last good one,
            is in force until the file is corrected.
          </p>
        </div>
      ) : null}
      {held === 'rollback' ? (
        <div className="problem" role="status">
          <p>
            A rollback is in force, not the file. The next change of the file, or SIGHUP, ends it.
          </p>
        </div>
      ) : null}
      {problems === null ? null : (
        <div className="problem" role="alert">
          <p>The file is refused; generation {inForce} stays in force.</p>
          <pre tabIndex={0}>{problems.join('\n')}</pre>
        </div>
      )}
      <dl className="facts">
        <dt>Generation</dt>
        <dd>{inForce}</dd>
        <dt>Hash</dt>
        <dd>
          <code title={hash}>{hash.slice(0, 12)}</code>
        </dd>
        <dt>Waiting for a restart</dt>
        <dd>
          {waitingForRestart.length === 0 ? (
            <span className="soft">nothing</span>
          ) : (
            waitingForRestart.map((name) => (
              <span key={name} className="tag">
                {name}
              </span>
            ))
          )}
        </dd>
      </dl>
    </Block>
  )
}

interface GenerationsProps {
  readonly data: ConfigurationReply
  readonly rollBack: (target: GenerationRecord) => void
}

function Generations({ data, rollBack }: GenerationsProps) {
  const { generations, inForce } = data
  const columns: readonly Column<GenerationRecord>[] = [
    {
      id: 'generation',
      head: 'Generation',
      cell: ({ generation }) => (
        <>
          {generation}{' '}
          {generation === inForce ? <span className="status good">in force</span> : null}
        </>
      ),
      className: 'main-cell',
    },
    { id: 'at', head: 'Since', cell: ({ atMs }) => <Ago ms={atMs} />, minor: true },
    { id: 'author', head: 'Author', cell: ({ author }) => author, minor: true },
    { id: 'reason', head: 'Reason', cell: reasonOf, className: 'wide-cell' },
    {
      id: 'hash',
      head: 'Hash',
      cell: ({ hash }) => <code title={hash}>{hash.slice(0, 12)}</code>,
      minor: true,
    },
  ]
  return (
    <Block title="Generations" note="the last 20, newest first">
      <Table
        caption="Generations"
        columns={columns}
        rows={generations}
        keyOf={({ generation }) => String(generation)}
        open={({ generation }) => setQuery({ generation: String(generation) })}
        nameOf={({ generation }) => `generation ${generation}`}
        actions={(record) =>
          record.generation === inForce ? null : (
            <Button onClick={() => rollBack(record)}>
              Roll back<span className="unseen"> to {record.generation}</span>
            </Button>
          )
        }
      />
    </Block>
  )
}

function Fleet({ fleet, hash }: { readonly fleet: readonly FleetMember[]; readonly hash: string }) {
  const differing = fleet.filter((member) => member.hash !== hash).length
  return (
    <Block title="Fleet" note="gateways that share the store">
      {differing === 0 ? null : (
        <div className="problem" role="alert">
          <p>
            {differing} of {fleet.length} gateways have another configuration than this one.
          </p>
        </div>
      )}
      <Table
        caption="Fleet"
        columns={[
          { id: 'host', head: 'Host', cell: ({ host }) => host, className: 'main-cell' },
          { id: 'hash', head: 'Hash', cell: (member) => <code>{member.hash.slice(0, 12)}</code> },
          {
            id: 'state',
            head: 'State',
            cell: (member) =>
              member.hash === hash ? (
                <span className="status good">agrees</span>
              ) : (
                <span className="status bad">differs</span>
              ),
          },
          {
            id: 'generation',
            head: 'Generation',
            cell: ({ generation }) => generation,
            numeric: true,
          },
        ]}
        rows={fleet}
        keyOf={({ id }) => id}
      />
    </Block>
  )
}
