/** The configuration in force, its generations and rollbacks, for administrators. */
import { useState } from 'react'
import type {
  ConfigurationReply,
  FleetMember,
  GenerationRecord,
  RollbackReply,
} from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useResource } from '../api/use-resource.js'
import { Button } from '../components/button.js'
import { Changes, Fact, Facts, Summary } from '../components/facts.js'
import { Dialog, FormDialog } from '../components/dialog.js'
import { SelectField, TextField } from '../components/form.js'
import { report } from '../components/notices.js'
import { Loaded } from '../components/loading-states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Name, Time } from '../components/values.js'
import { setQuery, useLocation } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useRights } from '../shell/session.js'

const EVERY_MS = 5_000

export function ConfigurationPage() {
  const { query } = useLocation()
  const resource = useResource('/configuration', {}, { everyMs: EVERY_MS })
  const { data } = resource
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
        unaffected="Requests are served with the generation in force."
      >
        {(data) => (
          <>
            <InForce data={data} />
            <Generations data={data} rollBack={setTarget} />
            {data.fleet === null ? null : <Fleet fleet={data.fleet} hash={data.hash} />}
            <Block title="Values in force" note="secrets are masked">
              <details>
                <summary>Show all values</summary>
                <pre className="code panel" tabIndex={0} aria-label="Values in force">
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
          configuration={data}
          from={query.get('from')}
          rollBack={setTarget}
          onClose={() => setQuery({ generation: null, from: null })}
        />
      )}
      {target === null ? null : (
        <Rollback
          target={target}
          onClose={() => setTarget(null)}
          onDone={({ generation, message }) => {
            report(`Generation ${generation} is in force: ${message}.`)
            setQuery({ generation: null, from: null })
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
            The file had a fault when the gateway started. Generation {inForce}, the last good one, is in
            force until the file is corrected.
          </p>
        </div>
      ) : null}
      {held === 'rollback' ? (
        <div className="problem" role="status">
          <p>A rollback is in force, not the file. The next change of the file, or SIGHUP, ends it.</p>
        </div>
      ) : null}
      {problems === null ? null : (
        <div className="problem" role="alert">
          <p>The file is refused; generation {inForce} stays in force.</p>
          <pre tabIndex={0}>{problems.join('\n')}</pre>
        </div>
      )}
      <Facts>
        <Fact name="Generation">{inForce}</Fact>
        <Fact name="Hash">
          <code title={hash}>{hash.slice(0, 12)}</code>
        </Fact>
        <Fact name="Waiting for a restart">
          {waitingForRestart.length === 0 ? (
            <span className="soft">nothing</span>
          ) : (
            waitingForRestart.map((name) => (
              <span key={name} className="tag">
                {name}
              </span>
            ))
          )}
        </Fact>
      </Facts>
    </Block>
  )
}

interface GenerationsProps {
  readonly data: ConfigurationReply
  readonly rollBack: (target: GenerationRecord) => void
}

function Generations({ data, rollBack }: GenerationsProps) {
  const { isAdmin } = useRights()
  const { generations, inForce } = data
  const columns: readonly Column<GenerationRecord>[] = [
    {
      id: 'generation',
      head: 'Generation',
      cell: ({ generation }) => (
        <>
          {generation} {generation === inForce ? <span className="status good">in force</span> : null}
        </>
      ),
    },
    {
      id: 'at',
      head: 'Since, by',
      cell: ({ atMs, author }) => (
        <>
          <Time ms={atMs} />
          <br />
          <Name text={author} />
        </>
      ),
      className: 'small-cell',
    },
    {
      id: 'changed',
      head: 'Changed',
      cell: (record) => <Changed record={record} />,
      className: 'wide-cell',
      extra: true,
    },
    { id: 'reason', head: 'Reason', cell: reasonOf, className: 'wide-cell', extra: true },
    {
      id: 'hash',
      head: 'Hash',
      cell: ({ hash }) => <code title={hash}>{hash.slice(0, 12)}</code>,
      minor: true,
    },
  ]
  return (
    <Block title="Generations" note="the last 20, newest first">
      <DataTable
        caption="Generations"
        columns={columns}
        rows={generations}
        keyOf={({ generation }) => String(generation)}
        open={({ generation }) => setQuery({ generation: String(generation) })}
        nameOf={({ generation }) => `generation ${generation}`}
        actions={(record) =>
          record.generation === inForce || !isAdmin ? null : (
            <Button onClick={() => rollBack(record)}>
              Roll back<span className="unseen"> to {record.generation}</span>
            </Button>
          )
        }
      />
    </Block>
  )
}

/** Values of a row. */
const SHOWN_CHANGES = 2

/** The first values that the generation changed. What a generation changed never changes. */
function Changed({ record: { generation } }: { readonly record: GenerationRecord }) {
  const { data } = useResource('/configuration/{id}', { id: String(generation) })
  if (data === null) return null
  const { changes, comparedWith } = data
  if (changes.length === 0) {
    return <span className="soft">{comparedWith === null ? 'the first that is kept' : 'no value'}</span>
  }
  const rest = changes.length - SHOWN_CHANGES
  return (
    <>
      <Changes changes={changes.slice(0, SHOWN_CHANGES)} />
      {rest > 0 ? <span className="soft">and {rest} more</span> : null}
    </>
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
      <DataTable
        caption="Fleet"
        columns={[
          { id: 'host', head: 'Host', cell: ({ host }) => host, text: true },
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

interface DrawerProps {
  readonly generation: string
  readonly configuration: ConfigurationReply
  /** The generation to compare with; null: the previous one. */
  readonly from: string | null
  readonly rollBack: (target: GenerationRecord) => void
  readonly onClose: () => void
}

/** What a generation changed, and the way back. */
function GenerationDrawer(props: DrawerProps) {
  const { generation, configuration, from, rollBack, onClose } = props
  const { generations: others, inForce } = configuration
  const { isAdmin } = useRights()
  const resource = useResource('/configuration/{id}', { id: generation, from })
  // From the generation in force, the way back is the one that it is compared with.
  const back = generation === String(inForce) ? resource.data?.comparedWith : Number(generation)
  const target = others.find((record) => record.generation === back)
  return (
    <Dialog side title={`Generation ${generation}`} onClose={onClose}>
      <Loaded resource={resource} what="The generation" unaffected="Requests are served.">
        {(data) => (
          <>
            <Summary>
              {data.record.generation === inForce ? <span className="status good">in force</span> : null}
              <Time ms={data.record.atMs} />
              <Name text={data.record.author} />
              {reasonOf(data.record) === '' ? null : <span>{reasonOf(data.record)}</span>}
            </Summary>
            <SelectField
              label="Compare with"
              value={String(data.comparedWith ?? '')}
              options={[
                ...(data.comparedWith === null ? [{ value: '', label: 'no earlier generation' }] : []),
                ...others
                  .map((other) => String(other.generation))
                  .filter((other) => other !== generation)
                  .map((other) => ({ value: other, label: `generation ${other}` })),
              ]}
              onChange={({ target }) => setQuery({ from: target.value })}
            />
            {data.changes.length === 0 ? (
              <p className="soft">
                {data.comparedWith === null
                  ? 'There is no earlier generation to compare with.'
                  : 'No value differs.'}
              </p>
            ) : (
              <Changes changes={data.changes} />
            )}
            {target === undefined || !isAdmin ? null : (
              <p className="row">
                <Button tone="danger" onClick={() => rollBack(target)}>
                  Roll back to generation {target.generation}
                </Button>
              </p>
            )}
          </>
        )}
      </Loaded>
    </Dialog>
  )
}

interface RollbackProps {
  readonly target: GenerationRecord
  readonly onClose: () => void
  readonly onDone: (done: RollbackReply) => void
}

/** Requires a reason and rolls back. */
function Rollback({ target: { generation }, onClose, onDone }: RollbackProps) {
  return (
    <FormDialog
      title={`Roll back to generation ${generation}?`}
      description="Its content becomes a new generation on every worker of this gateway, not of others. Running requests keep theirs. It stays in force until the file changes or the gateway gets SIGHUP."
      verb="Roll back"
      tone="danger"
      initial={{ reason: '' }}
      send={async (body) => {
        onDone(await change('POST /configuration/{id}/rollback', body, String(generation)))
      }}
      onClose={onClose}
    >
      {({ field }) => (
        <TextField
          label="Reason"
          hint="Recorded with the generation and in the audit trail."
          maxLength={500}
          required
          autoFocus
          {...field('reason')}
        />
      )}
    </FormDialog>
  )
}

/** Includes the generation whose content a rollback restored. */
function reasonOf({ contentOf, reason }: GenerationRecord): string {
  if (contentOf === null) return reason
  return reason === '' ? `rollback to ${contentOf}` : `rollback to ${contentOf}: ${reason}`
}
