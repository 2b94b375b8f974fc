/** The reply of one model: its text, calls of tools, failure, cost and timing. */
import { useEffect, useState, type FormEvent } from 'react'
import type { RequestRow } from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { Button } from '../../components/button.js'
import { CopyButton } from '../../components/copy-button.js'
import { TextArea } from '../../components/form.js'
import { later } from '../../components/later.js'
import { ProblemLine } from '../../components/loading-states.js'
import { Money } from '../../components/values.js'
import { Waterfall } from '../../components/waterfall.js'
import { attemptsOf } from '../../format/failure-texts.js'
import { count, duration } from '../../format/number.js'
import { Link } from '../../routing.js'
import { useScope, withScope } from '../../shell/session.js'
import type { Reply } from './turns.js'
import type { ToolCall, ToolResult } from './request-body.js'

const Markdown = later(
  async () => (await import('./markdown.js')).Markdown,
  ({ text }) => <p className="turn-text">{text}</p>,
)

interface ReplyProps {
  readonly reply: Reply
  readonly formatName: string
  /** A request of the conversation is running. */
  readonly isLocked: boolean
  /** A later turn has the results of its calls. */
  readonly isAnswered: boolean
  readonly rerun: () => void
  readonly answer: (results: readonly ToolResult[]) => void
}

export function ReplyView({ reply, formatName, isLocked, isAnswered, rerun, answer }: ReplyProps) {
  const { model, text, thinking, calls, isRunning, problem, isStopped, ended } = reply
  return (
    <div className="reply" role="group" aria-label={`Reply of ${model}`} aria-busy={isRunning}>
      <p className="turn-who row note gap-4">
        {model} · {formatName}
        {text === '' || isRunning ? null : <CopyButton text={text} what="reply" />}
      </p>
      {thinking === '' ? null : (
        <details className="thinking soft">
          <summary>Thinking</summary>
          <p className="turn-text">{thinking}</p>
        </details>
      )}
      <Text reply={reply} />
      <Calls calls={calls} mayAnswer={ended !== null && !isAnswered} isLocked={isLocked} answer={answer} />
      {problem === null ? null : (
        <div className="turn-problem stack">
          <ProblemLine problem={problem} />
          <Button disabled={isLocked} onClick={rerun}>
            Retry
          </Button>
        </div>
      )}
      {isStopped ? <p className="soft">Stopped. The reply is not complete.</p> : null}
      {isRunning ? null : <Bill reply={reply} />}
    </div>
  )
}

/** Markdown once the reply is complete; JSON with line breaks. */
function Text({ reply: { text, isJson, isRunning } }: { readonly reply: Reply }) {
  if (isRunning) return <p className="turn-text growing">{text}</p>
  if (text === '') return null
  if (isJson)
    return (
      <pre className="turn-text json" tabIndex={0}>
        {pretty(text)}
      </pre>
    )
  return (
    <div className="turn-text">
      <Markdown text={text} />
    </div>
  )
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

interface CallsProps {
  readonly calls: readonly ToolCall[]
  readonly mayAnswer: boolean
  readonly isLocked: boolean
  readonly answer: (results: readonly ToolResult[]) => void
}

/** The calls of tools, with a field for the result of each. */
function Calls({ calls, mayAnswer, isLocked, answer }: CallsProps) {
  const [contents, setContents] = useState<Readonly<Record<string, string>>>({})
  if (calls.length === 0) return null
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    answer(calls.map((call) => ({ call, content: contents[call.id] ?? '' })))
  }
  return (
    <form className="tool-calls stack gap-12" onSubmit={submit}>
      {calls.map((call) => (
        <div key={call.id} className="tool-call stack gap-4">
          <p>
            Calls <code>{call.name}</code>
          </p>
          <pre tabIndex={0}>{pretty(call.args)}</pre>
          {mayAnswer ? (
            <TextArea
              label={`Result of ${call.name}`}
              rows={2}
              required
              spellCheck={false}
              value={contents[call.id] ?? ''}
              onChange={(event) => setContents({ ...contents, [call.id]: event.target.value })}
            />
          ) : null}
        </div>
      ))}
      {mayAnswer ? (
        <Button type="submit" disabled={isLocked}>
          {calls.length === 1 ? 'Send the result' : 'Send the results'}
        </Button>
      ) : null}
    </form>
  )
}

const POLL_MS = 500
/** An entry of a stopped request is written when the upstream has been left, at most some seconds later. */
const GIVE_UP_MS = 15_000

/** The ledger entry of a reply; undefined until it is there. */
function useEntry({ id, requestId }: Reply): { row: RequestRow | undefined; isLate: boolean } {
  const account = useScope()
  const [isLate, setLate] = useState(false)
  const [isFound, setFound] = useState(false)
  const everyMs = isLate || isFound ? undefined : POLL_MS
  const one = useResource(
    '/requests/{id}',
    { id: requestId, account },
    { everyMs, enabled: requestId !== null },
  )
  const found = useResource(
    '/requests',
    { clientRequestId: id, account, limit: 1 },
    { everyMs, enabled: requestId === null },
  )
  const row = one.data?.row ?? found.data?.rows[0]
  useEffect(() => setFound(row !== undefined), [row])
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), GIVE_UP_MS)
    return () => clearTimeout(timer)
  }, [])
  return { row, isLate }
}

/** Tokens, cost and timing, and a link to the request. */
function Bill({ reply }: { readonly reply: Reply }) {
  const [open, setOpen] = useState(false)
  const account = useScope()
  const { row, isLate } = useEntry(reply)
  if (row === undefined) {
    return isLate && reply.isStopped ? (
      <p className="soft">The request was stopped before the gateway recorded it.</p>
    ) : null
  }
  const { ended } = reply
  const { usage, costNanoUsd, hops, durationMs, requestId, source } = row
  return (
    <div className="bill">
      <p className="bill-line row note">
        <span>
          {count(usage.input ?? 0)} in · {count(usage.output ?? 0)} out
          {usage.reasoning === undefined ? '' : ` (${count(usage.reasoning)} reasoning)`} tokens
          {source === 'reported' || source === 'none' ? '' : `, ${source}`}
        </span>
        <span>
          <Money nano={costNanoUsd} />
        </span>
        <span>
          {hops.firstContent === undefined ? '' : `first token ${duration(hops.firstContent)}, `}
          total {duration(durationMs)}
        </span>
        {ended?.finish === undefined || ended.finish === null ? null : (
          <span>finish reason {ended.finish}</span>
        )}
        {ended === null || ended.lost.length === 0 ? null : (
          <span>not translated: {ended.lost.join(', ')}</span>
        )}
        <Link to={withScope(`/requests?request=${requestId}`, account)}>Request</Link>
        <Button tone="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          Timing
        </Button>
      </p>
      {open ? <Waterfall hops={hops} totalMs={durationMs} attempts={attemptsOf(row)} /> : null}
    </div>
  )
}
