/**
 * Goal: an OpenAI upstream gets requests at the endpoint that model and request need, unless the
 * configuration forces one; the client needs no change.
 * Method: a whole gateway with an emulated OpenAI that refuses the same requests as the real one and records
 * the requests that it receives.
 */
import t, { type Test } from 'tap'
import { readFileSync, writeFileSync } from 'node:fs'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const WEATHER = [{ role: 'user', content: 'Use get_weather for Paris' }]

interface Answered {
  status: number
  body: JsonObject
  /** The path of the request at the upstream; empty if it did not arrive. */
  path: string
  sent: JsonObject
}

async function ask(gateway: TestGateway, body: object): Promise<Answered> {
  const { emulator } = gateway
  const before = emulator.ledger.at(-1)
  const response = await gateway.chat(body)
  const last = emulator.ledger.at(-1)
  const entry = last === before ? undefined : last
  return {
    status: response.status,
    body: objectOf(await response.json()),
    path: entry?.path ?? '',
    sent: objectOf(entry?.body),
  }
}

function messageOf({ body }: Answered): JsonObject {
  return objectOf(objectOf(arrayOf(body['choices'])[0])['message'])
}

function force(gateway: TestGateway, dialect: string): void {
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replace('dialect: openai,', `dialect: ${dialect},`))
  gateway.reload()
}

void t.test('by model and request', async (t: Test) => {
  const gateway = await startGateway(t)
  const hello = [{ role: 'user', content: 'Hello' }]
  const rows: [fields: object, path: RegExp][] = [
    [{ model: 'gpt-4o', messages: WEATHER, tools: [TOOL] }, /chat\/completions$/],
    [{ model: 'gpt-5-pro', messages: hello }, /responses$/],
    [{ model: 'gpt-5.6-sol', messages: hello }, /chat\/completions$/],
    [{ model: 'gpt-5.6-sol', messages: WEATHER, tools: [TOOL] }, /responses$/],
    [
      { model: 'gpt-5.6-sol', messages: WEATHER, tools: [TOOL], reasoning_effort: 'none' },
      /chat\/completions$/,
    ],
    [{ model: 'gpt-6-astra', messages: WEATHER, tools: [TOOL], reasoning_effort: 'none' }, /responses$/],
  ]
  for (const [fields, path] of rows) {
    const answered = await ask(gateway, fields)
    t.equal(answered.status, 200, JSON.stringify(fields))
    t.match(answered.path, path, JSON.stringify(fields))
    t.equal(answered.body['object'], 'chat.completion')
  }
})

void t.test('a turn with tools keeps its ids, its effort and its reasoning over Responses', async (t) => {
  const gateway = await startGateway(t)
  const fields = { model: 'gpt-5.6-sol', tools: [TOOL], reasoning_effort: 'high' }
  const first = await ask(gateway, { ...fields, messages: WEATHER })
  const message = messageOf(first)
  const call = objectOf(arrayOf(message['tool_calls'])[0])
  t.match(first.sent, {
    reasoning: { effort: 'high' },
    store: false,
    include: ['reasoning.encrypted_content'],
    tools: [{ type: 'function', name: 'get_weather', strict: false }],
  })
  const result = { role: 'tool', tool_call_id: call['id'], content: 'rain' }
  const then = await ask(gateway, { ...fields, messages: [...WEATHER, message, result] })
  t.equal(then.status, 200)
  t.match(messageOf(then)['content'], /get_weather returned: “rain”/)
  const items = arrayOf(then.sent['input']).map(objectOf)
  t.match(items, [
    { role: 'user' },
    { type: 'reasoning', encrypted_content: /./ },
    { type: 'function_call', call_id: call['id'] },
    { type: 'function_call_output', call_id: call['id'], output: 'rain' },
  ])
})

void t.test('`openai-responses` and `openai-chat` force an endpoint', async (t) => {
  const gateway = await startGateway(t)
  force(gateway, 'openai-responses')
  const plain = await ask(gateway, { model: 'gpt-4o', messages: WEATHER, temperature: 0.5 })
  t.match(plain, { status: 200, path: /responses$/, sent: { temperature: 0.5 } })
  t.notOk('include' in plain.sent, 'a model that does not think has nothing to seal')
  const stopped = await ask(gateway, { model: 'gpt-4o', messages: WEATHER, stop: ['x'] })
  t.match(stopped, { status: 400, path: '', body: { error: { param: 'stop' } } })

  const other = await startGateway(t)
  force(other, 'openai-chat')
  const refused = await ask(other, { model: 'gpt-5-pro', messages: WEATHER })
  t.match(refused.path, /chat\/completions$/)
  t.match(refused, { status: 404, body: { error: { kind: 'unknown_model' } } })
})

void t.test('a failure after response.in_progress keeps its status', async (t) => {
  const gateway = await startGateway(t)
  const messages = [{ role: 'user', content: 'Hello [[fault: error event=2 type=rate_limit_exceeded]]' }]
  const response = await gateway.chat({ model: 'gpt-5-pro', messages, stream: true })
  t.equal(response.status, 429)
  t.match(await response.json(), { error: { kind: 'upstream_busy' } })
})
