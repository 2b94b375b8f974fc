/** The playground: a conversation with one model or two, with files, tools, cost and timing. */
import { useEffect, useState, useSyncExternalStore } from 'react'
import type { ModelsReply } from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { Button } from '../../components/button.js'
import { Dialog } from '../../components/dialog.js'
import { exampleOf, RequestCode } from '../../components/request-code.js'
import { baseOf, FORMATS, HELLO, KEY_PLACEHOLDER } from '../../format/request-formats.js'
import { useLocation } from '../../routing.js'
import { Page } from '../../shell/page.js'
import { useSession } from '../../shell/session.js'
import { Composer, isEmpty } from './composer.js'
import { NOTHING, requestFor, useConversation, type Conversation, type Run } from './conversation.js'
import type { Draft, Turn } from './turns.js'
import { keep, kept } from './kept-state.js'
import { requestIn } from './request-body.js'
import { errorsIn, SettingsColumn } from './settings.js'
import { TurnView } from './turn.js'
import './playground.css'

/** The available ids: aliases, then models with a configured upstream. */
function servedIds(data: ModelsReply | null): string[] {
  const models = (data?.models ?? []).filter(({ route }) => route?.configured === true)
  return [...(data?.aliases ?? []), ...models].map(({ id }) => id)
}

/** The models of the address: one, or two to compare. */
function useModels(served: readonly string[], data: ModelsReply | null): string[] {
  const { query } = useLocation()
  const wanted = query.get('model') ?? exampleOf(data?.models ?? [])
  const first = served.includes(wanted) || served.length === 0 ? wanted : (served[0] ?? wanted)
  const second = query.get('with')
  return second === null || (served.length > 0 && !served.includes(second)) ? [first] : [first, second]
}

export function PlaygroundPage() {
  const { query } = useLocation()
  const { data } = useResource('/models')
  const user = useSession().session.user?.email ?? ''
  const served = servedIds(data)
  const models = useModels(served, data)
  const format = FORMATS.find(({ id }) => id === query.get('format'))?.id ?? 'chat'
  const [settings, setSettings] = useState(() => kept(user).settings)
  const [draft, setDraft] = useState(() => kept(user).draft)
  useEffect(() => keep(user, { settings, draft }), [user, settings, draft])
  const [isCode, setCode] = useState(false)
  const conversation = useConversation(user)
  const isNarrow = useNarrow()
  const run = { models, format, settings }
  const isBlocked = Object.keys(errorsIn(settings)).length > 0
  const send = (): void => {
    if (conversation.isRunning || isBlocked || isEmpty(draft)) return
    conversation.send(draft, run)
    setDraft(NOTHING)
  }
  const column = <SettingsColumn {...{ served, models, format, settings, setSettings }} />
  const turnList = <Turns conversation={conversation} run={run} />
  const composer = (
    <Composer
      {...{ draft, setDraft, isBlocked, send }}
      isBusy={conversation.isRunning}
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
        <div className="playground-talk panel">
          {isNarrow ? composer : turnList}
          {isNarrow ? turnList : composer}
        </div>
        {isNarrow ? column : null}
      </div>
      {isCode ? (
        <CodeDialog run={run} turns={nextTurns(conversation.turns, draft)} onClose={() => setCode(false)} />
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

function Turns({ conversation, run }: { readonly conversation: Conversation; readonly run: Run }) {
  const { turns, isRunning, rerun, edit, remove, answer } = conversation
  return (
    <div className="turns stack" aria-busy={isRunning}>
      {turns.length === 0 ? (
        <p className="soft">No messages yet. Send one to see the reply, its cost and timing.</p>
      ) : (
        turns.map((turn, at) => (
          <TurnView
            key={turn.id}
            turn={turn}
            number={at + 1}
            isLocked={isRunning}
            answered={answeredIn(turns.slice(at + 1))}
            rerun={() => rerun(turn.id, run)}
            edit={(text) => edit(turn.id, text)}
            remove={() => remove(turn.id)}
            answer={(reply, results) => answer(reply, results, run)}
          />
        ))
      )}
    </div>
  )
}

/** The columns that have a later turn: their calls can no longer be answered. */
function answeredIn(later: readonly Turn[]): number[] {
  return later.flatMap(({ replies }) => replies.map(({ column }) => column))
}

/** The turns of the next request; without a draft, those of the last one. */
function nextTurns(turns: readonly Turn[], draft: Draft): readonly Turn[] {
  const [hello] = HELLO.messages
  if (isEmpty(draft) && turns.length > 0) return turns
  const asked = isEmpty(draft) ? { text: hello?.content ?? '', files: [] } : draft
  const next: Turn = { id: '', format: 'chat', asked, results: [], replies: [], isEdited: false }
  return [...turns, next]
}

interface CodeProps {
  readonly run: Run
  readonly turns: readonly Turn[]
  readonly onClose: () => void
}

/** The request to the first model in each language and client format. */
function CodeDialog({ run: { models, format, settings }, turns, onClose }: CodeProps) {
  const { session } = useSession()
  return (
    <Dialog
      title="Copy as code"
      description={`The same request, with a key of yours in the variable ${KEY_PLACEHOLDER.slice(1)}.`}
      wide
      onClose={onClose}
    >
      <RequestCode
        target={{ base: baseOf(session.publicUrl), model: models[0] ?? '', key: KEY_PLACEHOLDER }}
        make={(chosen, target) => requestIn(chosen, target, requestFor(settings, turns, 0))}
        format={format}
      />
    </Dialog>
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
