/** The playground: sends a message, streams the reply, and shows cost and timing. */
import { useState, useSyncExternalStore } from 'react'
import type { ModelsReply } from '../../server/schema/schema.js'
import type { Ended } from '../api/chat.js'
import { useResource } from '../api/cache.js'
import { Button, IconButton } from '../components/button.js'
import { CopyButton } from '../components/copy-button.js'
import { Dialog } from '../components/dialog.js'
import { SelectField, TextArea, TextField } from '../components/form.js'
import { exampleOf, RequestCode } from '../components/request-code.js'
import { ProblemLine } from '../components/states.js'
import { Money } from '../components/values.js'
import { Waterfall } from '../components/waterfall.js'
import { attemptsOf } from '../format/failure-texts.js'
import { count, duration } from '../format/number.js'
import {
  baseOf,
  FORMATS,
  HELLO,
  KEY_PLACEHOLDER,
  type Format,
  type FormatRequest,
} from '../format/request-formats.js'
import { useLocation, setQuery } from '../routing.js'
import { Page } from '../shell/page.js'
import { useSession } from '../shell/session.js'
import {
  requestOf,
  useConversation,
  type Conversation,
  type Run,
  type Settings,
  type Turn,
} from './conversation.js'

/** The available ids: aliases, then models with a configured upstream. */
function servedIds(data: ModelsReply | null): string[] {
  const models = (data?.models ?? []).filter(({ route }) => route?.configured === true)
  return [...(data?.aliases ?? []), ...models].map(({ id }) => id)
}

/** The page of the playground. */
export function PlaygroundPage() {
  const { query } = useLocation()
  const { data } = useResource('/models')
  const models = data?.models ?? []
  const served = servedIds(data)
  const wanted = query.get('model') ?? exampleOf(models)
  const model = served.includes(wanted) || served.length === 0 ? wanted : (served[0] ?? wanted)
  const format = FORMATS.find(({ id }) => id === query.get('format'))?.id ?? 'chat'
  const [settings, setSettings] = useState<Settings>({ system: '', temperature: '', maxTokens: '' })
  const [text, setText] = useState('')
  const [isCode, setCode] = useState(false)
  const conversation = useConversation()
  const { turns, running } = conversation
  const isNarrow = useNarrow()
  const run = { model, format, settings }
  const sendText = (): void => {
    if (running !== null || text.trim() === '') return
    conversation.send(text, run)
    setText('')
  }
  const column = <SettingsColumn {...{ served, model, format, settings, setSettings }} />
  const turnList = <Turns conversation={conversation} run={run} />
  const composer = (
    <Composer
      text={text}
      setText={setText}
      isBusy={running !== null}
      send={sendText}
      stop={conversation.stop}
    />
  )
  return (
    <Page
      title="Playground"
      purpose="Requests run as your account and count for its limits. No key is needed."
      action={<PageActions conversation={conversation} copy={() => setCode(true)} />}
    >
      {/* On a phone the composer comes first, visually and in tab order. */}
      <div className="playground">
        {isNarrow ? null : column}
        <div className="playground-talk">
          {isNarrow ? composer : turnList}
          {isNarrow ? turnList : composer}
        </div>
        {isNarrow ? column : null}
      </div>
      {isCode ? (
        <CodeDialog
          model={model}
          format={format}
          request={
            turns.length === 0 && text === '' ? HELLO : requestOf(settings, ...asCode(turns, text))
          }
          onClose={() => setCode(false)}
        />
      ) : null}
    </Page>
  )
}

interface ActionsProps {
  readonly conversation: Conversation
  readonly copy: () => void
}

function PageActions({ conversation: { turns, clear }, copy }: ActionsProps) {
  return (
    <>
      <Button disabled={turns.length === 0} onClick={clear}>
        Clear
      </Button>
      <Button icon="copy" onClick={copy}>
        Copy as code
      </Button>
    </>
  )
}

interface TurnsProps {
  readonly conversation: Conversation
  readonly run: Run
}

function Turns({ conversation, run }: TurnsProps) {
  const { turns, running, rerun, edit, remove } = conversation
  return (
    <div className="turns" aria-busy={running !== null}>
      {turns.length === 0 ? (
        <p className="soft">No messages yet. Send one to see the reply, its cost and timing.</p>
      ) : (
        turns.map((turn, at) => (
          <TurnView
            key={turn.id}
            turn={turn}
            number={at + 1}
            isRunning={running === turn.id}
            isLocked={running !== null && running !== turn.id}
            rerun={() => rerun(turn.id, run)}
            edit={(asked) => edit(turn.id, asked)}
            remove={() => remove(turn.id)}
          />
        ))
      )}
    </div>
  )
}

/** The next request; without a draft, the last one. */
function asCode<T extends { readonly asked: string }>(
  turns: readonly T[],
  text: string,
): [before: readonly T[], asked: string] {
  const last = turns.at(-1)
  return text === '' && last !== undefined ? [turns.slice(0, -1), last.asked] : [turns, text]
}

interface ComposerProps {
  readonly text: string
  readonly setText: (text: string) => void
  readonly isBusy: boolean
  readonly send: () => void
  readonly stop: () => void
}

function Composer({ text, setText, isBusy, send, stop }: ComposerProps) {
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        className="input"
        rows={3}
        aria-label="Message"
        placeholder="Message"
        data-key="/"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          send()
        }}
      />
      <div className="composer-foot">
        <span className="soft">Enter to send, Shift+Enter for a new line</span>
        {isBusy ? (
          <Button icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" tone="primary" icon="send" disabled={text.trim() === ''}>
            Send
          </Button>
        )}
      </div>
    </form>
  )
}

interface CodeProps {
  readonly model: string
  readonly format: Format
  readonly request: FormatRequest
  readonly onClose: () => void
}

/** The request in each language and client format. */
function CodeDialog({ model, format, request, onClose }: CodeProps) {
  const { session } = useSession()
  return (
    <Dialog
      title="Copy as code"
      description={`The same request, with a key of yours in the variable ${KEY_PLACEHOLDER.slice(1)}.`}
      wide
      onClose={onClose}
    >
      <RequestCode
        target={{ base: baseOf(session.publicUrl), model, key: KEY_PLACEHOLDER }}
        request={request}
        format={format}
      />
    </Dialog>
  )
}

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
function TurnView(props: TurnProps) {
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

interface SettingsProps {
  readonly served: readonly string[]
  readonly model: string
  readonly format: Format
  readonly settings: Settings
  readonly setSettings: (settings: Settings) => void
}

/** The settings. Model and format are in the address. */
function SettingsColumn(props: SettingsProps) {
  const { served, model, format, settings, setSettings } = props
  const options = served.includes(model) ? served : [model, ...served]
  return (
    <div className="playground-settings">
      <SelectField
        label="Model"
        value={model}
        onChange={(event) => setQuery({ model: event.target.value }, { replace: true })}
      >
        {options.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Client format"
        hint={format === 'gemini' ? 'Replies in this format are shown whole.' : undefined}
        value={format}
        onChange={(event) => setQuery({ format: event.target.value }, { replace: true })}
      >
        {FORMATS.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </SelectField>
      <TextArea
        label="System message"
        rows={4}
        placeholder="none"
        value={settings.system}
        onChange={(event) => setSettings({ ...settings, system: event.target.value })}
      />
      <div className="field-grid">
        <TextField
          label="Temperature"
          type="number"
          min={0}
          max={2}
          step={0.1}
          placeholder="default"
          value={settings.temperature}
          onChange={(event) => setSettings({ ...settings, temperature: event.target.value })}
        />
        <TextField
          label="Max. tokens"
          type="number"
          min={1}
          step={1}
          placeholder="default"
          value={settings.maxTokens}
          onChange={(event) => setSettings({ ...settings, maxTokens: event.target.value })}
        />
      </div>
    </div>
  )
}

const narrow = window.matchMedia('(max-width: 899px)')

function subscribe(listener: () => void): () => void {
  narrow.addEventListener('change', listener)
  return () => narrow.removeEventListener('change', listener)
}

/** True if the window is too narrow for the rail. */
function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => narrow.matches)
}
