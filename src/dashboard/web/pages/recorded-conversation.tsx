/** The recorded conversation of a request, loaded on demand, since each reading is audited. */
import { useState } from 'react'
import type { RecordingReply, RequestRow } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { urlOf } from '../api/client.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { DrawerSection } from '../components/facts.js'
import { Confirm } from '../components/dialog.js'
import { report } from '../components/notices.js'
import { Loaded } from '../components/loading-states.js'
import { go } from '../routing.js'
import { useRights, useSession } from '../shell/session.js'
import { keepRecording, objectsIn } from './playground/from-recording.js'

/** One message of the conversation as text. */
interface Turn {
  readonly who: string
  readonly text: string
}

/** Nothing for roles that may not read recordings. */
export function RecordedConversation({ row }: { readonly row: RequestRow }) {
  const { readsMembers, changesMembers, isAdmin } = useRights()
  const [isOpen, setOpen] = useState(false)
  const [asking, setAsking] = useState(false)
  const [isGone, setGone] = useState(false)
  if (!readsMembers) return null
  const query = { account: row.accountId }
  const remove = async (): Promise<void> => {
    await change('DELETE /recordings/{id}', undefined, row.requestId, query)
    setGone(true)
    report('Deleted. The recording of this request is gone.')
  }
  return (
    <DrawerSection title="Conversation">
      {isGone ? (
        <p className="soft">The recording was deleted.</p>
      ) : isOpen ? (
        <Text id={row.requestId} account={row.accountId} />
      ) : (
        <p className="soft">Recorded. Each reading is noted in the audit log.</p>
      )}
      {isGone ? null : (
        <p className="row">
          {isOpen ? null : <Button onClick={() => setOpen(true)}>Show conversation</Button>}
          {changesMembers || isAdmin ? (
            <Button icon="bin" onClick={() => setAsking(true)}>
              Delete recording
            </Button>
          ) : null}
        </p>
      )}
      {asking ? (
        <Confirm
          title="Delete the recording of this request?"
          description="Its prompt and reply cannot be read or replayed any more. The ledger entry stays."
          verb="Delete"
          send={remove}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </DrawerSection>
  )
}

function Text({ id, account }: { readonly id: string; readonly account: string }) {
  const resource = useResource('/recordings/{id}', { id, account })
  const { makesKeys } = useRights()
  const user = useSession().session.user?.email ?? ''
  const tryAgain = (recording: RecordingReply): void => {
    keepRecording(user, recording)
    go(urlOf('/playground', { account, model: recording.model }))
  }
  return (
    <Loaded resource={resource} what="The conversation">
      {(recording) => (
        <>
          <ol className="conversation stack gap-12">
            {turnsIn(recording).map(({ who, text }, at) => (
              <li key={at}>
                <h4>{who}</h4>
                <pre>{text}</pre>
              </li>
            ))}
          </ol>
          {makesKeys ? (
            <p>
              <Button icon="playground" onClick={() => tryAgain(recording)}>
                Try it in the playground
              </Button>
            </p>
          ) : null}
        </>
      )}
    </Loaded>
  )
}

/** The messages of the request and the reply. */
function turnsIn({ request, reply }: RecordingReply): readonly Turn[] {
  const messages = objectsIn(request['messages']).map((message) => {
    const parts = objectsIn(message['parts']).map(partText)
    const calls = objectsIn(message['toolCalls']).map(callText)
    const call = message['callId']
    const who = typeof call === 'string' ? `result of ${call}` : String(message['role'])
    return { who, text: [...parts, ...calls].join('\n') }
  })
  if (reply === null) return [...messages, { who: 'assistant', text: '(no complete reply)' }]
  const blocks = objectsIn(reply['blocks']).map((block) => {
    return block['type'] === 'tool' ? callText(block) : partText(block)
  })
  return [...messages, { who: 'assistant', text: blocks.join('\n') }]
}

/** A part as text; what is no text is named. */
function partText(part: Readonly<Record<string, unknown>>): string {
  const { type, text, filename, provider } = part
  if (type === 'thinking') return `(reasoning) ${typeof text === 'string' ? text : ''}`
  if (typeof text === 'string') return text
  const name = [filename, provider].find((each) => typeof each === 'string')
  return `[${String(type)}${typeof name === 'string' ? ` ${name}` : ''}]`
}

function callText({ name, arguments: given, json }: Readonly<Record<string, unknown>>): string {
  const input = [given, json].find((each) => typeof each === 'string')
  return `${String(name)}(${typeof input === 'string' ? input : ''})`
}
