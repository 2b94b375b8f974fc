/** A turn of the playground: the message, the reply with cost and timing, or its failure. */
import { useState } from 'react'
import type { Ended } from '../../api/chat.js'
import { useResource } from '../../api/load-resource.js'
import { attemptsOf } from '../../format/failure-texts.js'
import { count, duration } from '../../format/number.js'
import { FORMATS } from '../../format/request-formats.js'
import { Button, IconButton } from '../../components/actions/button.js'
import { CopyButton } from '../../components/actions/copy-button.js'
import { Waterfall } from '../../components/charts/waterfall.js'
import { ProblemLine } from '../../components/states/states.js'
import { Money } from '../../components/tables/figure.js'
import type { Turn } from './conversation.js'

interface TurnProps {
  readonly turn: Turn
  /** Its number, from 1. */
  readonly number: number
  readonly isRunning: boolean
  /** Another turn is running. */
  readonly isLocked: boolean
  readonly rerun: () => void
  readonly edit: (asked: string) => void
  readonly remove: () => void
}

/** The turn. */
export function TurnView(props: TurnProps) {
  const { turn, number, isRunning } = props
  const { model, format, text, thinking, ended, problem, isStopped } = turn
  const formatName = FORMATS.find(({ id }) => id === format)?.name
  return (
    <article className="turn" aria-label={`Turn ${number}`}>
      <Message {...props} />
      <p className="turn-who">
        {model} · {formatName}
        {text === '' || isRunning ? null : <CopyButton text={text} what="reply" />}
      </p>
      {thinking === '' ? null : (
        <details className="thinking">
          <summary>Thinking</summary>
          <p className="turn-text">{thinking}</p>
        </details>
      )}
      <p className={isRunning ? 'turn-text growing' : 'turn-text'}>{text}</p>
      {problem === null ? null : <Failure {...props} />}
      {isStopped ? <p className="soft">Stopped. The reply is not complete.</p> : null}
      {ended === null || ended.requestId === null ? null : (
        <Bill id={ended.requestId} ended={ended} />
      )}
    </article>
  )
}

function Failure({ turn: { problem }, isLocked, rerun }: TurnProps) {
  if (problem === null) return null
  return (
    <div className="turn-problem">
      <ProblemLine problem={problem} />
      <Button disabled={isLocked} onClick={rerun}>
        Retry
      </Button>
    </div>
  )
}

/** The message, editable in place. */
function Message({ turn, isRunning, isLocked, rerun, edit, remove }: TurnProps) {
  const [draft, setDraft] = useState<string | null>(null)
  if (draft !== null) {
    const save = (): void => {
      edit(draft)
      setDraft(null)
    }
    return (
      <form
        className="turn-edit"
        onSubmit={(event) => {
          event.preventDefault()
          save()
        }}
      >
        <textarea
          className="input"
          rows={3}
          aria-label="Edit message"
          autoFocus
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
        />
        <div className="turn-tools">
          <Button onClick={() => setDraft(null)}>Cancel</Button>
          <Button type="submit" tone="primary" disabled={draft.trim() === ''}>
            Save
          </Button>
        </div>
      </form>
    )
  }
  return (
    <>
      <p className="turn-who">
        You
        {isRunning || isLocked ? null : (
          <span className="turn-tools">
            <Button tone="quiet" className="small" onClick={() => setDraft(turn.asked)}>
              Edit
            </Button>
            <Button tone="quiet" className="small" onClick={rerun}>
              Run again
            </Button>
            <IconButton icon="bin" label="Remove this turn" onClick={remove} />
          </span>
        )}
      </p>
      <p className="turn-text asked">{turn.asked}</p>
      {turn.isEdited ? (
        <p className="soft">Edited. The reply below is to the previous message.</p>
      ) : null}
    </>
  )
}

/** The ledger entry of the turn. */
function Bill({ id, ended }: { readonly id: string; readonly ended: Ended }) {
  const [open, setOpen] = useState(false)
  const row = useResource('/requests/{id}', { id }).data?.row
  if (row === undefined) return null
  const { usage, costNanoUsd, hops, durationMs } = row
  return (
    <div className="bill">
      <p className="bill-line">
        <span>
          {count(usage.input ?? 0)} in · {count(usage.output ?? 0)} out
          {usage.reasoning === undefined ? '' : ` (${count(usage.reasoning)} reasoning)`} tokens
        </span>
        <span>
          <Money nano={costNanoUsd} />
        </span>
        <span>
          {hops.firstContent === undefined ? '' : `first token ${duration(hops.firstContent)}, `}
          total {duration(durationMs)}
        </span>
        {ended.finish === null ? null : <span>finish reason {ended.finish}</span>}
        {ended.lost.length === 0 ? null : <span>not translated: {ended.lost.join(', ')}</span>}
        <Button tone="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          Timing
        </Button>
      </p>
      {open ? <Waterfall hops={hops} totalMs={durationMs} attempts={attemptsOf(row)} /> : null}
    </div>
  )
}
