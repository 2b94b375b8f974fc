/**
 * Goal: a loop of tools with thinking on works over every dialect, whether the client keeps the reasoning
 * state or drops it, as most do.
 * Method: the official SDK through a whole gateway over emulated providers, which refuse
 * missing or wrong state like the real ones; three turns, whole and streamed.
 */
import type OpenAI from 'openai'
import t, { type Test } from 'tap'
import { arrayOf, type JsonObject, objectOf, stringOf } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { clientOf, failureOf, WEATHER } from '../clients/sdk.js'

type Turn = OpenAI.ChatCompletionMessageParam

/**
 * Budget; adaptive and bound to its prefix; levels with checked signatures; budget; encrypted items of the
 * Responses API; no state.
 */
const MODELS = [
  'claude-haiku-4-5',
  'claude-opus-5-5',
  'gemini-3.5-flash',
  'gemini-2.5-flash',
  'gpt-5.6-sol',
  'gpt-4o',
] as const
/** Models whose provider needs state back. */
const STATEFUL = MODELS.slice(0, -1)

const keeping = await startGateway(t)
const forgetful = await startGateway(t, { more: 'escrow: { enabled: false }' })

/** How the client keeps a message. */
type Client = 'keeps everything' | 'keeps standard members'

interface Asking {
  readonly gateway: TestGateway
  readonly model: string
  readonly stream: boolean
  readonly client: Client
}

/** One more turn: the reply as the client keeps it, and the losses that the gateway reported. */
async function next(
  { gateway, model, stream, client }: Asking,
  messages: readonly Turn[],
): Promise<{ message: Turn; lost: string | null }> {
  const effort = model === 'gpt-4o' ? {} : { reasoning_effort: 'high' as const }
  const ask = { model, messages: [...messages], tools: [WEATHER], ...effort }
  const { completions } = clientOf(gateway).chat
  if (!stream) {
    const { data, response } = await completions.create(ask).withResponse()
    const message = data.choices[0]?.message ?? { role: 'assistant', content: null }
    const kept = client === 'keeps everything' ? message : known(message)
    return { message: kept as Turn, lost: response.headers.get('x-sluice-lost') }
  }
  const { data, response } = await completions.create({ ...ask, stream }).withResponse()
  const message: JsonObject = { role: 'assistant', content: '' }
  for await (const chunk of data) gather(message, JSON.parse(JSON.stringify(chunk)) as JsonObject)
  const kept = client === 'keeps everything' ? message : known(message)
  return { message: kept as unknown as Turn, lost: response.headers.get('x-sluice-lost') }
}

/** All members of a stream's deltas: texts and lists grow, calls by their index. */
function gather(message: JsonObject, chunk: JsonObject): void {
  const { tool_calls, ...delta } = objectOf(objectOf(arrayOf(chunk.choices)[0]).delta)
  for (const [key, value] of Object.entries(delta)) {
    const before = message[key]
    if (key === 'role') continue
    if (typeof value === 'string') message[key] = (stringOf(before) ?? '') + value
    else if (Array.isArray(value)) message[key] = [...arrayOf(before), ...value]
    else if (value !== null && value !== undefined) message[key] = value
  }
  for (const fragment of arrayOf(tool_calls).map(objectOf)) {
    const calls = arrayOf(message.tool_calls).map(objectOf)
    const call = calls[Number(fragment.index)] ?? { function: { name: '', arguments: '' } }
    const { name, arguments: json } = objectOf(fragment.function)
    const inner = objectOf(call.function)
    inner.name = (stringOf(inner.name) ?? '') + (stringOf(name) ?? '')
    inner.arguments = (stringOf(inner.arguments) ?? '') + (stringOf(json) ?? '')
    const { id, type, extra_content } = fragment
    if (id !== undefined) Object.assign(call, { id, type })
    if (extra_content !== undefined) Object.assign(call, { extra_content })
    calls[Number(fragment.index)] = { ...call, function: inner }
    message.tool_calls = calls
  }
}

/** The members of a message that OpenAI's types have. */
function known(value: unknown): JsonObject {
  const { role, content, tool_calls } = objectOf(value)
  const calls = arrayOf(tool_calls).map((call) => {
    const { id, type, function: inner } = objectOf(call)
    return { id: id ?? '', type: type ?? '', function: inner ?? {} }
  })
  const message = { role: role ?? '', content: content ?? null }
  return calls.length === 0 ? message : { ...message, tool_calls: calls }
}

function results(message: Turn): Turn[] {
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }))
}

/** The last request body of the upstream, as text. */
function sent({ emulator }: TestGateway): string {
  return JSON.stringify(emulator.ledger.at(-1)?.body)
}

const STATE =
  /"signature":"[\w+/=]{40,}"|"thoughtSignature":"[\w+/=]{40,}"|"encrypted_content":"[\w+/=]{40,}"/g

/** Three turns: a call, a reply to its result, and another question. */
async function converse(t: Test, asking: Asking, city: string): Promise<void> {
  const { gateway, model } = asking
  const history: Turn[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: `Use get_weather for ${city}` },
  ]
  const first = await next(asking, history)
  history.push(first.message, ...results(first.message))
  t.equal(history.length, 4, 'a call and its result')
  const second = await next(asking, history)
  t.equal(second.lost, null, 'nothing is lost')
  t.match(second.message.content, /sunny/)
  const states = sent(gateway).match(STATE) ?? []
  t.equal(states.length, model === 'gpt-4o' ? 0 : 1, 'the provider got its state back')
  history.push(second.message, { role: 'user', content: 'Thanks. And tomorrow?' })
  const third = await next(asking, history)
  t.equal(third.lost, null)
  t.match(third.message.content, /And tomorrow\?/)
  const all = sent(gateway).match(STATE) ?? []
  t.equal(all.length, model === 'gpt-4o' ? 0 : 2, 'that of both turns')
  t.equal(all[0], states[0], 'the same as before, in the same place')
}

for (const model of MODELS) {
  for (const stream of [false, true]) {
    const form = stream ? 'streamed' : 'whole'
    void t.test(`${model}, ${form}: a client that drops reasoning`, async (t) => {
      const asking = { gateway: keeping, model, stream, client: 'keeps standard members' } as const
      await converse(t, asking, stream ? 'Paris' : 'Rome')
    })
    void t.test(`${model}, ${form}: a client that keeps everything`, async (t) => {
      const asking = { gateway: forgetful, model, stream, client: 'keeps everything' } as const
      await converse(t, asking, stream ? 'Paris' : 'Rome')
    })
    void t.test(`${model}, ${form}: everything kept on both sides is not kept twice`, async (t) => {
      const asking = { gateway: keeping, model, stream, client: 'keeps everything' } as const
      await converse(t, asking, stream ? 'Lima' : 'Oslo')
    })
  }
}

void t.test('without stored state the turn runs without reasoning', async (t) => {
  const expected: Record<string, { lost: string | null; body: RegExp }> = {
    'claude-haiku-4-5': { lost: 'reasoning_effort', body: /"thinking":{"type":"disabled"}/ },
    'claude-opus-5-5': { lost: null, body: /"thinking":{"type":"adaptive"/ },
    'gemini-3.5-flash': {
      lost: null,
      body: /"thoughtSignature":"skip_thought_signature_validator"/,
    },
    'gemini-2.5-flash': { lost: null, body: /"thinkingConfig"/ },
    'gpt-5.6-sol': { lost: null, body: /"type":"function_call"/ },
  }
  for (const model of STATEFUL) {
    const asking = {
      gateway: forgetful,
      model,
      stream: false,
      client: 'keeps standard members',
    } as const
    const history: Turn[] = [{ role: 'user', content: 'Use get_weather for Bonn' }]
    const first = await next(asking, history)
    history.push(first.message, ...results(first.message))
    const second = await next(asking, history)
    t.match(second.message.content, /sunny/, model)
    t.equal(second.lost, expected[model]?.lost, model)
    t.match(sent(forgetful), expected[model]?.body ?? /never/, model)
    t.same(sent(forgetful).match(STATE) ?? [], [])
  }
})

/** A conversation whose instructions changed after the first call. */
async function changed(gateway: TestGateway): Promise<{ asking: Asking; history: Turn[] }> {
  const asking = {
    gateway,
    model: 'claude-opus-5-5',
    stream: false,
    client: 'keeps standard members',
  } as const
  const question: Turn = { role: 'user', content: 'Use get_weather for Kyiv' }
  const first = await next(asking, [{ role: 'system', content: 'It is noon.' }, question])
  const system: Turn = { role: 'system', content: "It is one o'clock." }
  return { asking, history: [system, question, first.message, ...results(first.message)] }
}

void t.test('thinking after a changed prefix is dropped on a retry and reported', async (t) => {
  const { asking, history } = await changed(keeping)
  const before = keeping.emulator.ledger.length
  const { message, lost } = await next(asking, history)
  t.match(message.content, /sunny/)
  t.equal(lost, 'messages.reasoning')
  const tries = keeping.emulator.ledger.slice(before)
  t.same(
    tries.map(({ status }) => status),
    [400, 200],
  )
  t.match(tries[1]?.headers['anthropic-beta'], 'thinking-binding-controls-2026-08-01')
  t.match(await keeping.metrics.text(), /^sluice_reasoning_dropped_total\{upstream="anthropic"\} 1$/m)
})

void t.test('on_loss: reject leaves the decision to the client', async (t) => {
  const strict = await startGateway(t, { more: 'on_loss: reject' })
  const { asking, history } = await changed(strict)
  const error = await failureOf(next(asking, history))
  t.equal(error.status, 400)
  t.equal(error.param, 'messages.reasoning')
})

void t.test('stored state is counted and never logged', async (t) => {
  const answered: Turn[] = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'This is not part of the history.' },
    { role: 'user', content: 'Really?' },
  ]
  await next({ gateway: keeping, model: MODELS[0], stream: false, client: 'keeps everything' }, answered)
  const text = await keeping.metrics.text()
  t.match(text, /^sluice_reasoning_escrow_total\{result="stored"\} [1-9]/m)
  t.match(text, /^sluice_reasoning_escrow_total\{result="hit"\} [1-9]/m)
  t.match(text, /^sluice_reasoning_escrow_total\{result="miss"\} [1-9]/m)
  t.notMatch(JSON.stringify(keeping.lines), /nothing to work out|sunny|Be brief/)
})
