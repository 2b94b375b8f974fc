/** The changes of a generation, compared with the previous one or another one. */
import type { GenerationRecord } from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { SelectField } from '../../components/forms/field.js'
import { BlockSkeleton, ProblemLine } from '../../components/states/states.js'
import { Ago } from '../../components/tables/figure.js'
import { setQuery } from '../../routing/location.js'
import { reasonOf } from './reason.js'

interface DrawerProps {
  readonly generation: string
  readonly others: readonly GenerationRecord[]
  /** The generation to compare with; null: the previous one. */
  readonly from: string | null
  readonly onClose: () => void
}

/** The drawer of a generation. */
export function GenerationDrawer({ generation, others, from, onClose }: DrawerProps) {
  const { data, problem } = useResource('/configuration/{id}', { id: generation, from })
  return (
    <Dialog side title={`Generation ${generation}`} onClose={onClose}>
      {problem !== null && data === null ? (
        <ProblemLine problem={problem} />
      ) : data === null ? (
        <BlockSkeleton />
      ) : (
        <>
          <dl className="facts">
            <dt>Since</dt>
            <dd>
              <Ago ms={data.record.atMs} />
            </dd>
            <dt>Author</dt>
            <dd>{data.record.author}</dd>
            <dt>Reason</dt>
            <dd>{reasonOf(data.record)}</dd>
          </dl>
          <SelectField
            label="Compare with"
            value={String(data.comparedWith ?? '')}
            onChange={(event) => setQuery({ from: event.currentTarget.value })}
          >
            {data.comparedWith === null ? <option value="">no earlier generation</option> : null}
            {others
              .filter((other) => String(other.generation) !== generation)
              .map((other) => (
                <option key={other.generation} value={String(other.generation)}>
                  generation {other.generation}
                </option>
              ))}
          </SelectField>
          {data.changes.length === 0 ? (
            <p className="soft">
              {data.comparedWith === null
                ? 'There is no earlier generation to compare with.'
                : 'No value differs.'}
            </p>
          ) : (
            <ul className="changes" aria-label="Changes">
              {data.changes.map(({ path, before, after }) => (
                <li key={path}>
                  <code>{path}</code> {before === null ? null : <del>{before}</del>}{' '}
                  {after === null ? <span className="soft">gone</span> : <ins>{after}</ins>}
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </Dialog>
  )
}
