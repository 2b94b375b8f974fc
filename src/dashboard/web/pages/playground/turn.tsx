/** A turn: the message, editable in place, and the reply of each model. */
import { useState } from 'react'
import { Button, IconButton } from '../../components/button.js'
import { FORMATS } from '../../format/request-formats.js'
import { AttachmentList } from './attachments.js'
import type { Reply, Turn } from './turns.js'
import { ReplyView } from './reply.js'
import type { ToolResult } from './request-body.js'

interface TurnProps {
  readonly turn: Turn
  /** Its number, from 1. */
  readonly number: number
  /** A request of the conversation is running. */
  readonly isLocked: boolean
  /** The columns of the turn after it that answer its calls; its calls can be answered in the others. */
  readonly answered: readonly number[]
  readonly rerun: () => void
  readonly edit: (text: string) => void
  readonly remove: () => void
  readonly answer: (reply: Reply, results: readonly ToolResult[]) => void
}

export function TurnView(props: TurnProps) {
  const { turn, number, isLocked, answered, rerun, answer } = props
  const formatName = FORMATS.find(({ id }) => id === turn.format)?.name ?? ''
  return (
    <article className="turn" aria-label={`Turn ${number}`}>
      {turn.results.length > 0 ? <Results {...props} /> : <Question {...props} />}
      <div className={turn.replies.length > 1 ? 'replies two stack gap-16' : 'replies stack gap-16'}>
        {turn.replies.map((reply) => (
          <ReplyView
            key={reply.id}
            reply={reply}
            formatName={formatName}
            isLocked={isLocked}
            isAnswered={answered.includes(reply.column)}
            rerun={rerun}
            answer={(results) => answer(reply, results)}
          />
        ))}
      </div>
    </article>
  )
}

function Tools({ isLocked, rerun, remove, children }: TurnProps & { children?: React.ReactNode }) {
  if (isLocked) return null
  return (
    <span className="row gap-4 end">
      {children}
      <Button tone="quiet" className="small" onClick={rerun}>
        Run again
      </Button>
      <IconButton icon="bin" label="Remove this turn" onClick={remove} />
    </span>
  )
}

/** The answers to calls of tools. */
function Results(props: TurnProps) {
  return (
    <>
      <p className="turn-who row note gap-4">
        Results of tools
        <Tools {...props} />
      </p>
      {props.turn.results.map(({ call, content }) => (
        <div key={call.id} className="tool-call stack gap-4">
          <code>{call.name}</code>
          <pre tabIndex={0}>{content}</pre>
        </div>
      ))}
    </>
  )
}

/** The message. */
function Question(props: TurnProps) {
  const { turn, edit } = props
  const [text, setText] = useState<string | null>(null)
  if (text !== null) {
    return (
      <form
        className="turn-edit stack"
        onSubmit={(event) => {
          event.preventDefault()
          edit(text)
          setText(null)
        }}
      >
        <textarea
          className="input"
          rows={3}
          aria-label="Edit message"
          autoFocus
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <div className="row gap-4 end">
          <Button onClick={() => setText(null)}>Cancel</Button>
          <Button type="submit" tone="primary" disabled={text.trim() === ''}>
            Save
          </Button>
        </div>
      </form>
    )
  }
  return (
    <>
      <p className="turn-who row note gap-4">
        You
        <Tools {...props}>
          <Button tone="quiet" className="small" onClick={() => setText(turn.asked.text)}>
            Edit
          </Button>
        </Tools>
      </p>
      <AttachmentList files={turn.asked.files} />
      <p className="turn-text asked">{turn.asked.text}</p>
      {turn.isEdited ? <p className="soft">Edited. The reply below is to the previous message.</p> : null}
    </>
  )
}
