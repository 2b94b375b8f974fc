/** Try a model: write, watch the answer come, see what it cost and where the time went. */
import { useRef, useState } from 'react'
import { chat, type ChatBody, type Message } from '../../api/chat.js'
import { problemOf, type Problem } from '../../api/client.js'
import { useResource } from '../../api/resource.js'
import { exampleOf } from '../../api/served-model.js'
import { baseOf, KEY_PLACE } from '../../format/snippets.js'
import { Button } from '../../parts/actions/button.js'
import { Dialog } from '../../parts/dialogs/dialog.js'
import { announce } from '../../parts/states/notice.js'
import { FormatTabs } from '../../parts/code/format-tabs.js'
import { SnippetTabs } from '../../parts/code/snippet-tabs.js'
import { ProblemLine } from '../../parts/states/states.js'
import { usePlace } from '../../routing/place.js'
import { Page } from '../../shell/page.js'
import { useSession } from '../../shell/session.js'
import { Answer, type Turn } from './playground-answer.js'
import { Settings, type Draft } from './playground-settings.js'

function bodyOf(draft: Draft, model: string, turns: readonly Turn[], text: string): ChatBody {
  const messages: Message[] = [
    ...(draft.system === '' ? [] : [{ role: 'system', content: draft.system } as const]),
    ...turns.flatMap(({ asked, text: answer }): Message[] => [
      { role: 'user', content: asked },
      ...(answer === '' ? [] : [{ role: 'assistant', content: answer } as const]),
    ]),
    ...(text === '' ? [] : [{ role: 'user', content: text } as const]),
  ]
  return {
    model,
    messages,
    stream: true,
    ...(draft.temperature === '' ? {} : { temperature: Number(draft.temperature) }),
    ...(draft.maxTokens === '' ? {} : { max_completion_tokens: Number(draft.maxTokens) }),
  }
}

interface Conversation {
  readonly turns: readonly Turn[]
  readonly busy: boolean
  readonly problem: Problem | null
  readonly send: (body: ChatBody, asked: string) => Promise<void>
  readonly stop: () => void
  readonly clear: () => void
}

/** The turns so far; the last one grows while its answer comes. */
function useConversation(): Conversation {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const going = useRef<AbortController | null>(null)
  const changeLast = (change: (turn: Turn) => Turn): void => {
    setTurns((all) => all.map((turn, index) => (index === all.length - 1 ? change(turn) : turn)))
  }
  const send = async (body: ChatBody, asked: string): Promise<void> => {
    const gone = new AbortController()
    going.current = gone
    setBusy(true)
    setProblem(null)
    setTurns((all) => [
      ...all,
      { id: crypto.randomUUID(), model: body.model, asked, text: '', thinking: '', ended: null },
    ])
    try {
      const ended = await chat(body, gone.signal, (piece) =>
        changeLast((turn) => ({
          ...turn,
          text: turn.text + piece.text,
          thinking: turn.thinking + piece.thinking,
        })),
      )
      changeLast((turn) => ({ ...turn, ended }))
      announce('The answer is complete.')
    } catch (error) {
      if (!gone.signal.aborted) setProblem(problemOf(error))
    } finally {
      setBusy(false)
    }
  }
  return {
    turns,
    busy,
    problem,
    send,
    stop: () => going.current?.abort(),
    clear: () => {
      going.current?.abort()
      setTurns([])
      setProblem(null)
    },
  }
}

/** The page of the playground. */
export function PlaygroundPage() {
  const { query } = usePlace()
  const models = useResource('/models').data?.models ?? []
  const served = models.filter(({ route }) => route?.configured === true).map(({ id }) => id)
  const wanted = query.get('model') ?? exampleOf(models)
  const model = served.includes(wanted) || served.length === 0 ? wanted : (served[0] ?? wanted)
  const [draft, setDraft] = useState<Draft>({ system: '', temperature: '', maxTokens: '' })
  const [text, setText] = useState('')
  const [code, setCode] = useState(false)
  const [formats, setFormats] = useState(false)
  const conversation = useConversation()
  const { turns, busy, problem } = conversation
  const send = (): void => {
    if (busy || text.trim() === '') return
    void conversation.send(bodyOf(draft, model, turns, text), text)
    setText('')
  }
  return (
    <Page
      title="Playground"
      purpose="It runs as your account, metered like a key, and needs none."
      action={
        <>
          <Button disabled={turns.length === 0} onClick={conversation.clear}>
            Clear
          </Button>
          <Button icon="copy" onClick={() => setFormats(true)}>
            Formats
          </Button>
          <Button icon="copy" onClick={() => setCode(true)}>
            Copy as code
          </Button>
        </>
      }
    >
      <div className="playground">
        <Settings served={served} model={model} draft={draft} setDraft={setDraft} />
        <div className="playground-talk">
          <div className="turns" aria-busy={busy}>
            {turns.length === 0 ? (
              <p className="soft">Write something, and the answer appears here as it comes.</p>
            ) : (
              turns.map((turn, index) => (
                <Answer key={turn.id} turn={turn} busy={busy && index === turns.length - 1} />
              ))
            )}
            {problem === null ? null : <ProblemLine problem={problem} />}
          </div>
          <Composer
            text={text}
            setText={setText}
            busy={busy}
            send={send}
            stop={conversation.stop}
          />
        </div>
      </div>
      {code ? (
        <CodeDialog body={bodyOf(draft, model, turns, text)} onClose={() => setCode(false)} />
      ) : null}
      {formats ? (
        <FormatDialog body={bodyOf(draft, model, turns, text)} onClose={() => setFormats(false)} />
      ) : null}
    </Page>
  )
}

interface ComposerProps {
  readonly text: string
  readonly setText: (text: string) => void
  readonly busy: boolean
  readonly send: () => void
  readonly stop: () => void
}

function Composer({ text, setText, busy, send, stop }: ComposerProps) {
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
        <span className="soft">enter sends, shift enter begins a line</span>
        {busy ? (
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

const EXAMPLE: readonly Message[] = [{ role: 'user', content: 'Name three rivers.' }]

/** The request in each format that clients may speak. */
function FormatDialog({
  body,
  onClose,
}: {
  readonly body: ChatBody
  readonly onClose: () => void
}) {
  const { session } = useSession()
  const { model, messages, temperature, max_completion_tokens: maxTokens } = body
  return (
    <Dialog
      title="The request in each format"
      description={`Any model can be asked in any of them, with a key of yours in the place of ${KEY_PLACE}.`}
      wide
      onClose={onClose}
    >
      <FormatTabs
        target={{ base: baseOf(session.publicUrl), model, key: KEY_PLACE }}
        request={{ messages: messages.length === 0 ? EXAMPLE : messages, temperature, maxTokens }}
      />
    </Dialog>
  )
}

function CodeDialog({ body, onClose }: { readonly body: ChatBody; readonly onClose: () => void }) {
  const { session } = useSession()
  const { model, messages, temperature, max_completion_tokens: maxTokens } = body
  const asked = messages.length === 0 ? [{ role: 'user', content: 'Name three rivers.' }] : messages
  return (
    <Dialog
      title="Copy as code"
      description={`The same call with a key of yours in the place of ${KEY_PLACE}.`}
      wide
      onClose={onClose}
    >
      <SnippetTabs
        target={{ base: baseOf(session.publicUrl), model, key: KEY_PLACE }}
        body={{
          messages: asked,
          ...(temperature === undefined ? {} : { temperature }),
          ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
        }}
      />
    </Dialog>
  )
}
