/**
 * Goal: requests and replies between a client and an upstream of the Messages format change only where
 * necessary, and errors keep the provider's own type.
 * Method: plain requests against a whole gateway, with an emulated provider.
 */
import t from 'tap'
import { textUntilEnd } from '../../helpers/collect.js'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { writeReasoningToken } from '../../../src/formats/wire/reasoning-token.js'
import { failing } from '../../conformance/client-scenarios.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const MODEL = 'claude-haiku-4-5'
const HELLO = [{ role: 'user', content: 'Hello' }]

function post(gateway: TestGateway, members: object, headers: object = {}): Promise<Response> {
  return fetch(`${gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: MODEL, max_tokens: 100, messages: HELLO, ...members }),
  })
}

function sentOf({ emulator }: TestGateway): JsonObject {
  return emulator.ledger.at(-1)?.body ?? {}
}

function token(origin: string, signature: string): string {
  return writeReasoningToken({ origin, thoughts: [{ signature }] })
}

void t.test('reasoning and ids of other models do not reach Anthropic', async (t) => {
  const gateway = await startGateway(t)
  const tools = [{ name: 'f', input_schema: { type: 'object' } }]
  const messages = [
    ...HELLO,
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: token('gemini', 'c2ln') },
        { type: 'redacted_thinking', data: token('openai-responses', 'rs_1:x') },
        { type: 'tool_use', id: 'functions.f:0', name: 'f', input: { n: 1 } },
      ],
    },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'functions.f:0', content: 'done' }],
    },
    {
      role: 'assistant',
      content: [{ type: 'thinking', thinking: 'x', signature: token('gemini', '') }],
    },
    ...HELLO,
  ]
  const response = await post(gateway, { messages, tools })
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-sluice-lost'), 'messages.thinking')
  const sent = arrayOf(sentOf(gateway)['messages']).map(objectOf)
  t.equal(sent.length, 4, 'a message without other content is left out')
  const [call] = arrayOf(sent[1]?.['content']).map(objectOf)
  const [result] = arrayOf(sent[2]?.['content']).map(objectOf)
  t.match(call?.['id'], /^[A-Za-z0-9_-]+$/)
  t.equal(result?.['tool_use_id'], call?.['id'])
})

void t.test('`allow_betas` names the beta features that pass', async (t) => {
  const gateway = await startGateway(t, { upstreamOptions: 'allow_betas: [one, two]' })
  const betas = { 'anthropic-beta': 'one, three', 'anthropic-version': '2023-06-01' }
  const response = await post(gateway, {}, betas)
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-sluice-lost'), 'anthropic-beta.three')
  const { headers = {} } = gateway.emulator.ledger.at(-1) ?? {}
  t.equal(headers['anthropic-beta'], 'one')
  t.equal(headers['anthropic-version'], '2023-06-01')
  const none = await startGateway(t, {
    upstreamOptions: 'allow_betas: []',
    more: 'on_loss: reject',
  })
  const refused = await post(none, {}, betas)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { type: 'error', error: { message: /anthropic-beta\.one/ } })
})

void t.test(
  "fields that other upstreams do not support are reported by their names in the client's format",
  async (t) => {
    const gateway = await startGateway(t)
    const response = await post(gateway, {
      model: 'gemini-2.5-flash',
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    })
    t.equal(response.headers.get('x-sluice-lost'), 'tool_choice.disable_parallel_tool_use')
    const many = await post(gateway, { model: 'gpt-4o', stop_sequences: ['1', '2', '3', '4', '5'] })
    t.match(await many.json(), { error: { param: 'stop_sequences', message: /at most 4/ } })
    const refused = await post(gateway, { model: 'gpt-4.1', stop_sequences: ['END'] })
    t.equal(refused.status, 400)
    t.match(await refused.json(), {
      error: { param: 'stop_sequences', message: /^stop_sequences: / },
    })
  },
)

void t.test('a missing version is accepted', async (t) => {
  const gateway = await startGateway(t)
  t.equal((await post(gateway, {})).status, 200)
  t.equal(gateway.emulator.ledger.at(-1)?.headers['anthropic-version'], '2026-10-21')
  t.equal((await post(gateway, { temperature: 0.5 })).status, 200)
  t.equal(gateway.emulator.ledger.at(-1)?.headers['anthropic-version'], '2023-06-01')
})

void t.test("errors keep the provider's type and message, and have the gateway's kind", async (t) => {
  const gateway = await startGateway(t)
  const rejected = await post(gateway, { invented: 1 })
  t.equal(rejected.status, 400)
  const body = objectOf(await rejected.json())
  t.match(body, {
    type: 'error',
    error: { type: 'invalid_request_error', message: /invented/, kind: 'upstream_rejected' },
  })
  t.equal(body['request_id'], rejected.headers.get('x-request-id'))
  t.equal(rejected.headers.get('request-id'), rejected.headers.get('x-request-id'))
  await failing(gateway.emulator, { kind: 'status', code: 529, type: 'overloaded_error' }, async () => {
    const busy = await post(gateway, {})
    t.match(await busy.json(), { error: { type: 'overloaded_error', kind: 'upstream_busy' } })
  })
})

void t.test('an error inside a stream is one event, and no end follows it', async (t) => {
  for (const model of [MODEL, 'gpt-4o']) {
    const gateway = await startGateway(t)
    const prompt = [{ role: 'user', content: 'talk [[words: 50]]' }]
    const text = await failing(gateway.emulator, { kind: 'error', event: 20 }, async () => {
      const response = await post(gateway, { model, messages: prompt, stream: true })
      t.equal(response.status, 200)
      return textUntilEnd(response)
    })
    const event = /event: error\ndata: ([^\n]*)\n\n$/.exec(text)?.[1] ?? '{}'
    t.match(JSON.parse(event), { type: 'error', error: { kind: /^upstream_/ }, request_id: /./ }, model)
    t.notMatch(text, /message_stop/)
  }
})

void t.test('the ledger has the counts and the format of a passed-through reply', async (t) => {
  const gateway = await startGateway(t)
  for (const stream of [false, true]) await (await post(gateway, { stream })).text()
  const lines = gateway.lines.filter(({ msg }) => msg === 'exchange')
  for (const line of lines) {
    t.match(line, { outcome: 'ok', finish_reason: 'stop', upstream: 'anthropic' })
    t.ok(Number(line['input_tokens']) > 0 && Number(line['output_tokens']) > 0)
  }
  t.equal(lines.length, 2)
})
