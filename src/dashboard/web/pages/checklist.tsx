/** The first steps on the overview, until all are done or the user hides them. */
import { useState, type ReactNode } from 'react'
import type { ChecklistReply, ChecklistStep } from '../../../control/dashboard/schema/schema.js'
import { call, problemOf, urlOf } from '../api/client.js'
import { read } from '../api/endpoints.js'
import { useLive, useOnTraffic, useResource } from '../api/use-resource.js'
import { Button, Icon } from '../components/button.js'
import { keep, kept } from '../components/kept-text.js'
import { exactDollars } from '../format/number.js'
import { Link } from '../routing.js'
import { Block } from '../shell/page.js'
import { useRights, useScope } from '../shell/session.js'

const HIDDEN = 'sluice-checklist-hidden'
const EVERY_MS = 30_000

const TITLES: Readonly<Record<ChecklistStep['id'], string>> = {
  provider: 'A provider answers',
  account: 'Make an account',
  key: 'Create a key',
  request: 'First request',
  budget: 'Set a budget',
  colleague: 'Invite a colleague',
}

/** Renders nothing once every step is done. */
export function Checklist() {
  const scope = useScope()
  const [hidden, setHidden] = useState(() => kept(HIDDEN) === '1')
  const [isDone, setDone] = useState(false)
  const options = { everyMs: EVERY_MS, enabled: !hidden && !isDone }
  const checklist = useResource('/checklist', { account: scope }, options)
  useOnTraffic(useLive({ account: scope, tree: null }, options.enabled), () => checklist.reload())
  const { data } = checklist
  if (hidden || data === null) return null
  const done = data.steps.filter((step) => step.done).length
  if (done === data.steps.length) {
    if (!isDone) setDone(true)
    return null
  }
  const hide = (): void => {
    setHidden(true)
    keep(HIDDEN, '1')
  }
  return (
    <Block
      title="Get started"
      note={`${done} of ${data.steps.length}`}
      action={
        <Button tone="quiet" onClick={hide}>
          Hide
        </Button>
      }
    >
      <ul className="steps panel">
        {data.steps.map((step) => (
          <li key={step.id} className={step.done ? 'done' : ''}>
            <span className="step-mark">{step.done ? <Icon name="check" /> : null}</span>
            <span className="strong">
              {TITLES[step.id]}
              <span className="unseen">{step.done ? ', done' : ', open'}</span>
            </span>
            <span className="soft cut">{step.text ?? ''}</span>
            <Act step={step} test={data.test} />
          </li>
        ))}
      </ul>
    </Block>
  )
}

interface ActProps {
  readonly step: ChecklistStep
  readonly test: ChecklistReply['test']
}

/** What does the step; nothing for one that is done, except that the test can be repeated. */
function Act({ step: { id, done }, test }: ActProps): ReactNode {
  const scope = useScope()
  const { isAdmin } = useRights()
  if (id === 'provider') return test === null ? <NoProvider /> : <TestCall test={test} isAgain={done} />
  if (done) return null
  switch (id) {
    case 'account':
      return <Link to="/accounts">Create account</Link>
    case 'key':
      return (
        <Link to={urlOf('/keys', { account: scope === 'all' ? null : scope, create: 1 })}>Create key</Link>
      )
    case 'request':
      return <span className="soft">waiting …</span>
    case 'budget':
      return <Link to="/budgets">Set budget</Link>
    case 'colleague':
      return <Link to={isAdmin ? '/users' : urlOf('/members', { account: scope })}>Invite</Link>
  }
}

function NoProvider() {
  return <span className="soft">No provider has a key: set one, such as OPENAI_API_KEY.</span>
}

/** Sends one short request through the playground, and shows its status, time and cost. */
function TestCall({
  test,
  isAgain,
}: {
  readonly test: NonNullable<ChecklistReply['test']>
  readonly isAgain: boolean
}) {
  const [result, setResult] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const send = async (): Promise<void> => {
    setBusy(true)
    try {
      setResult(await answerOf(test.model))
    } catch (thrown) {
      setResult(problemOf(thrown).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <span className="row gap-12">
      {result === null ? null : (
        <span className="soft" role="status">
          {result}
        </span>
      )}
      <Button tone="quiet" disabled={isBusy} onClick={() => void send()}>
        {isAgain ? 'Test again' : `Test ${test.upstream}`}
      </Button>
    </span>
  )
}

async function answerOf(model: string): Promise<string> {
  const startMs = performance.now()
  const response = await call('POST', '/playground/chat', {
    body: { model, max_completion_tokens: 16, messages: [{ role: 'user', content: 'Say OK.' }] },
  })
  await response.arrayBuffer()
  const tookMs = Math.round(performance.now() - startMs)
  const id = response.headers.get('x-request-id')
  const cost = id === null ? null : await costOf(id)
  return [`${response.status}`, `${tookMs} ms`, ...(cost === null ? [] : [exactDollars(cost)])].join(', ')
}

/** The cost in the ledger; null if it is not there yet, or unknown. */
async function costOf(requestId: string): Promise<number | null> {
  const { rows } = await read('/requests', { requestId })
  return rows[0]?.costNanoUsd ?? null
}
