/** The playground: sends a message, streams the reply, and shows cost and timing. */
import { useState } from 'react'
import type { ModelsReply } from '../../../server/schema/schema.js'
import { useResource } from '../../api/load-resource.js'
import { exampleOf } from '../../api/example-model.js'
import {
  baseOf,
  FORMATS,
  HELLO,
  KEY_PLACEHOLDER,
  type Format,
  type FormatRequest,
} from '../../format/request-formats.js'
import { Button } from '../../components/actions/button.js'
import { RequestCode } from '../../components/code/request-code.js'
import { Dialog } from '../../components/dialogs/dialog.js'
import { useLocation } from '../../routing/location.js'
import { useNarrow } from '../../shell/narrow-screen.js'
import { Page } from '../../shell/page.js'
import { useSession } from '../../shell/session.js'
import {
  requestOf,
  useConversation,
  type Conversation,
  type Run,
  type Settings,
} from './conversation.js'
import { SettingsColumn } from './playground-settings.js'
import { TurnView } from './turn.js'

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
