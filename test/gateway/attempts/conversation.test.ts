/**
 * Goal: a tool loop of the OpenAI SDK that starts on Claude continues on GPT and then on Gemini when the
 * previous provider fails. Reasoning state of one provider never reaches another, and lost fields are
 * reported.
 * Method: the SDK's own loop, every message sent back unchanged; the emulator refuses state that it did not
 * sign.
 */
import OpenAI from 'openai'
import t from 'tap'
import type { Test } from 'tap'
import type { TestGateway } from '../../helpers/gateway.js'
import { breakProvider, entryOf, startWith } from './fixtures.js'

type Message = OpenAI.Chat.ChatCompletionMessageParam

const TOOLS: OpenAI.Chat.ChatCompletionTool[] = ['alpha_step', 'beta_step', 'gamma_step'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: `Does the ${name}.`,
    parameters: {
      type: 'object',
      properties: { place: { type: 'string' } },
      required: ['place'],
    },
  },
}))

const ROUTE =
  'model: agent, targets: [ { upstream: anthropic, model: claude-sonnet-4-5 } ], fallback: [ { upstream: openai, model: gpt-5.4-mini }, { upstream: google, model: gemini-2.5-flash } ]'

/** Sends one turn with the SDK; returns the message and the headers of the reply. */
async function turn(
  gateway: TestGateway,
  messages: readonly Message[],
  stream: boolean,
): Promise<{ message: OpenAI.Chat.ChatCompletionMessage; headers: Headers }> {
  const heads: Headers[] = []
  const client = new OpenAI({
    apiKey: gateway.secret,
    baseURL: gateway.baseUrl,
    maxRetries: 0,
    fetch: async (url, init) => {
      const reply = await fetch(url, init)
      heads.push(reply.headers)
      return reply
    },
  })
  const body: OpenAI.Chat.ChatCompletionCreateParamsNonStreaming = {
    model: 'agent',
    messages: [...messages],
    tools: TOOLS,
    reasoning_effort: 'medium',
  }
  const completion = stream
    ? await client.chat.completions.stream({ ...body, stream: true }).finalChatCompletion()
    : await client.chat.completions.create(body)
  const [headers] = heads
  const message = completion.choices[0]?.message
  if (headers === undefined || message === undefined) throw new Error('no reply')
  return { message, headers }
}

function answered(message: OpenAI.Chat.ChatCompletionMessage, text: string): Message[] {
  const results = (message.tool_calls ?? []).map((call): Message => ({
    role: 'tool',
    tool_call_id: call.id,
    content: text,
  }))
  return [message, ...results]
}

function nameOf(message: OpenAI.Chat.ChatCompletionMessage): string {
  const [call] = message.tool_calls ?? []
  return call?.type === 'function' ? call.function.name : ''
}

/** All signatures in a provider's replies that the client received. */
function signaturesIn(message: unknown): string[] {
  const text = JSON.stringify(message)
  return [...text.matchAll(/"(?:signature|thought_signature|data|encrypted_content)":"([^"]{16,})"/g)].map(
    ([, signature = '']) => signature,
  )
}

async function loop(t: Test, stream: boolean): Promise<void> {
  const gateway = await startWith(t, [ROUTE])
  const { emulator } = gateway
  const messages: Message[] = [
    { role: 'user', content: 'Use alpha_step, then beta_step, then gamma_step, then answer.' },
  ]
  const first = await turn(gateway, messages, stream)
  t.equal(first.headers.get('x-sluice-upstream'), 'anthropic')
  t.equal(nameOf(first.message), 'alpha_step')
  t.ok(signaturesIn(first.message).length > 0, 'Claude signed its reasoning')
  messages.push(...answered(first.message, 'alpha is done'))

  breakProvider(gateway, 'anthropic', { fault: { kind: 'status', code: 529 } })
  const second = await turn(gateway, messages, stream)
  t.equal(second.headers.get('x-sluice-attempts'), 'anthropic:upstream_busy, openai:ok')
  t.equal(nameOf(second.message), 'beta_step', 'the conversation continues')
  const upstreamBody = JSON.stringify(emulator.ledger.at(-1)?.body)
  for (const signature of signaturesIn(first.message))
    t.notMatch(upstreamBody, signature, 'no state of Claude')
  t.match(upstreamBody, /alpha is done/)
  messages.push(...answered(second.message, 'beta is done'))

  breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 503 } })
  const third = await turn(gateway, messages, stream)
  t.equal(third.headers.get('x-sluice-attempts'), 'anthropic:upstream_busy, openai:upstream_busy, google:ok')
  t.equal(nameOf(third.message), 'gamma_step')
  const last = JSON.stringify(emulator.ledger.at(-1)?.body)
  for (const message of [first.message, second.message]) {
    for (const signature of signaturesIn(message)) t.notMatch(last, signature, 'no foreign state')
  }
  messages.push(...answered(third.message, 'gamma is done'))

  emulator.reset()
  const fourth = await turn(gateway, messages, stream)
  t.equal(
    fourth.headers.get('x-sluice-attempts'),
    null,
    'Claude accepts the history of all providers after its recovery',
  )
  t.equal(fourth.headers.get('x-sluice-upstream'), 'anthropic')
  t.ok((fourth.message.content ?? '') !== '', 'it answers')
  const entry = await entryOf(gateway, third.headers.get('x-request-id') ?? '')
  t.match(entry, { attempts: 3, upstream: 'google', model: 'agent', outcome: 'ok' })
  for (const { headers } of [second, third]) {
    t.equal(headers.get('x-sluice-lost'), 'messages.reasoning', 'the losses are named')
  }
  t.same(
    entry.losses.filter((path) => !path.startsWith('reply.')),
    ['messages.reasoning'],
  )
}

void t.test('a tool loop over three providers, whole replies', (t) => loop(t, false))
void t.test('a tool loop over three providers, streams', (t) => loop(t, true))
