/**
 * Goal: clients of every format use models behind Converse through a whole gateway, and a stream that is cut
 * or fails is never complete.
 * Method: the emulated Bedrock behind a gateway, with tools, reasoning, token counts and faults, then raw
 * replies that the emulator does not send.
 */
import t, { type Test } from 'tap'
import { startEmulator, type Emulator } from '../../../src/emulator/server.js'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { textUntilEnd } from '../../helpers/collect.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startCloud } from './capture.js'

const NOVA = 'us.amazon.nova-lite-v1:0'
const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
const SETTINGS = 'platform: bedrock, dialect: converse, region: us-east-1'

interface Scene {
  readonly bedrock: Emulator
  readonly gateway: TestGateway
}

async function scene(t: Test, more = '', settings = ''): Promise<Scene> {
  const bedrock = await startEmulator()
  t.teardown(() => bedrock.close())
  const gateway = await startGateway(t, {
    cloud: `base_url: '${bedrock.baseUrls.bedrock}', ${SETTINGS}, auth: { aws: { access_key_id: AKIDEXAMPLE, secret_access_key: example } }${settings}`,
    routes: `  - { prefix: us., upstream: cloud }\n${more}`,
  })
  return { bedrock, gateway }
}

function post({ origin, secret }: TestGateway, path: string, body: object): Promise<Response> {
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
  }
  return fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function jsonOf(reply: Response): Promise<JsonObject> {
  return objectOf(JSON.parse(await reply.text()) as unknown)
}

function user(content: string): JsonObject {
  return { role: 'user', content }
}

/** A request in each client format. */
const CLIENTS: Readonly<
  Record<string, (gateway: TestGateway, text: string, stream: boolean) => Promise<Response>>
> = {
  chat: (gateway, text, stream) => gateway.chat({ model: NOVA, stream, messages: [user(text)] }),
  messages: (gateway, text, stream) =>
    post(gateway, '/v1/messages', { model: NOVA, max_tokens: 99, stream, messages: [user(text)] }),
  responses: (gateway, text, stream) => post(gateway, '/v1/responses', { model: NOVA, input: text, stream }),
  gemini: (gateway, text, stream) =>
    post(
      gateway,
      `/v1beta/models/${encodeURIComponent(NOVA)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      { contents: [{ role: 'user', parts: [{ text }] }] },
    ),
}

void t.test('every client format, whole and streamed', async (t) => {
  const { bedrock, gateway } = await scene(t)
  for (const [format, ask] of Object.entries(CLIENTS)) {
    for (const stream of [false, true]) {
      const reply = await ask(gateway, 'Tell me of Rome', stream)
      t.equal(reply.status, 200, format)
      const text = await reply.text()
      t.match(text, 'Rome', format)
      t.notMatch(text, /"error"\s*:\s*\{/, format)
      const entry = bedrock.ledger.at(-1)
      t.equal(entry?.provider, 'bedrock')
      t.match(entry?.path, stream ? /%3A0\/converse-stream$/ : /%3A0\/converse$/)
    }
  }
})

void t.test('a loop with a tool', async (t) => {
  const { gateway } = await scene(t)
  const tools = [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    },
  ]
  const messages = [user('Use get_weather for Rome')]
  const first = await jsonOf(await gateway.chat({ model: CLAUDE, tools, messages }))
  const message = objectOf(objectOf(arrayOf(first.choices)[0]).message)
  const [call] = arrayOf(message.tool_calls).map(objectOf)
  t.equal(objectOf(call?.function).name, 'get_weather')
  const result = { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny' }
  const next = await gateway.chat({
    model: CLAUDE,
    tools,
    messages: [...messages, message, result],
  })
  t.equal(next.status, 200)
  t.match(await next.text(), /get_weather returned: “sunny”/)
})

void t.test("Claude's reasoning moves between Anthropic and Converse", async (t) => {
  const routes = `  - { model: moving, targets: [{ upstream: cloud, model: '${CLAUDE}' }] }\n  - { model: home, targets: [{ upstream: anthropic, model: claude-sonnet-4-5 }] }\n`
  const { bedrock, gateway } = await scene(t, routes)
  const ask = async (model: string, messages: JsonObject[]): Promise<JsonObject> => {
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    const body = { model, max_tokens: 8000, thinking, messages }
    const reply = await post(gateway, '/v1/messages', body)
    const answer = await jsonOf(reply)
    t.equal(reply.status, 200, JSON.stringify(answer))
    return answer
  }
  for (const [from, to] of [
    ['home', 'moving'],
    ['moving', 'moving'],
    ['moving', 'home'],
  ] as const) {
    const messages = [user('Think about Rome.')]
    const { content = [] } = await ask(from, messages)
    const [block] = arrayOf(content).map(objectOf)
    t.equal(block?.type, 'thinking', from)
    t.notMatch(block?.signature, /^sluice/, "it is the model's own")
    await ask(to, [...messages, { role: 'assistant', content }, user('And now?')])
    const sent = to === 'home' ? gateway.emulator.ledger.at(-1)?.body : bedrock.ledger.at(-1)?.body
    t.match(JSON.stringify(sent), stringOf(block?.signature) ?? 'none', `${from} to ${to}`)
  }
})

void t.test('tokens are counted for the foundation model', async (t) => {
  const { bedrock, gateway } = await scene(t)
  const reply = await post(gateway, '/v1/messages/count_tokens', {
    model: NOVA,
    messages: [user('Hello there')],
  })
  t.equal(reply.status, 200)
  t.ok(Number((await jsonOf(reply)).input_tokens) > 0)
  t.equal(bedrock.ledger.at(-1)?.path, '/model/amazon.nova-lite-v1%3A0/count-tokens')
})

void t.test('embeddings of Titan', async (t) => {
  const { bedrock, gateway } = await scene(t, '  - { prefix: amazon., upstream: cloud }\n')
  const body = { model: 'amazon.titan-embed-text-v2:0', input: 'Hello', dimensions: 256 }
  const reply = await jsonOf(await post(gateway, '/v1/embeddings', body))
  t.equal(arrayOf(objectOf(arrayOf(reply.data)[0]).embedding).length, 256)
  t.ok(Number(objectOf(reply.usage).prompt_tokens) > 0)
  t.same(bedrock.ledger.at(-1)?.body, { inputText: 'Hello', dimensions: 256 })
  t.equal((await post(gateway, '/v1/embeddings', { ...body, input: ['a', 'b'] })).status, 400)
})

void t.test('the ledger has the format of the upstream', async (t) => {
  const { gateway } = await scene(t)
  await (await gateway.chat({ model: NOVA, messages: [user('Hi')] })).text()
  const [entry] = await rowsOf(gateway)
  t.match(entry, { dialect: 'converse', upstream: 'cloud', outcome: 'ok' })
})

void t.test('members of Converse from a client of chat completions', async (t) => {
  const closed = await scene(t)
  const guardrailConfig = { guardrailIdentifier: 'g', guardrailVersion: '1' }
  const body = { model: NOVA, messages: [user('Hi')], guardrailConfig, top_k: 5 }
  const refused = await closed.gateway.chat(body)
  t.equal(refused.status, 400)
  t.match(await refused.text(), /guardrailConfig.*allow_tools/)
  t.equal(closed.bedrock.ledger.length, 0)
  const { bedrock, gateway } = await scene(t, '', ', allow_tools: [guardrail_config]')
  const reply = await gateway.chat(body)
  t.equal(reply.status, 200)
  t.same(bedrock.ledger.at(-1)?.body?.guardrailConfig, guardrailConfig)
})

const FAULTS: readonly [directive: string, error: RegExp][] = [
  ['unterminated', /upstream_truncated/],
  ['cut event=3 mode=eof', /upstream_truncated/],
  ['cut bytes=400 mode=eof', /upstream_truncated/],
  ['error event=3 type=throttlingException', /upstream_busy/],
  ['error event=3 type=modelStreamErrorException', /upstream_failed/],
  ['error event=3 type=validationException', /upstream_rejected/],
  ['garbage event=3', /upstream_malformed/],
  ['garbage event=3 mode=bytes', /upstream_malformed/],
]

void t.test('a stream with a fault is never complete', async (t) => {
  const { gateway } = await scene(t)
  for (const [directive, error] of FAULTS) {
    const content = `Hello to all of you in Rome [[fault: ${directive}]]`
    const reply = await gateway.chat({ model: NOVA, stream: true, messages: [user(content)] })
    const text = await textUntilEnd(reply)
    t.match(text, error, directive)
    t.notMatch(text, /\[DONE\]/, directive)
  }
})

void t.test('exceptions before the first content have a status', async (t) => {
  const { bedrock, gateway } = await scene(t)
  const statusOf = async (type: string): Promise<number> => {
    bedrock.script({ times: 3, fault: { kind: 'error', event: 1, type } })
    const reply = await gateway.chat({ model: NOVA, stream: true, messages: [user('Hi')] })
    await reply.text()
    bedrock.reset()
    return reply.status
  }
  t.equal(await statusOf('throttlingException'), 429)
  t.equal(await statusOf('validationException'), 400)
  t.equal(await statusOf('internalServerException'), 502)
})

void t.test('HTTP errors', async (t) => {
  const { bedrock, gateway } = await scene(t)
  const expected: readonly [code: number, status: number][] = [
    [400, 400],
    [403, 502],
    [404, 404],
    [408, 504],
    [424, 502],
    [429, 429],
    [500, 502],
    [503, 429],
  ]
  for (const [code, status] of expected) {
    bedrock.script({ times: 5, fault: { kind: 'status', code } })
    const reply = await gateway.chat({ model: NOVA, messages: [user('Hi')] })
    t.equal(reply.status, status, `${code}: ${await reply.text()}`)
    bedrock.reset()
  }
})

void t.test('a 200 that carries an unknown operation is a failure', async (t) => {
  const { cloud, gateway } = await startCloud(t, 'us.', `${SETTINGS}, api_key: key`)
  const body = '{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}'
  cloud.answer = () => ({ type: 'application/json', chunks: [body] })
  for (const [format, ask] of Object.entries(CLIENTS)) {
    for (const stream of [false, true]) {
      const reply = await ask(gateway, 'Hi', stream)
      t.equal(reply.status, 502, `${format} ${stream ? 'streamed' : 'whole'}`)
      await reply.text()
    }
  }
  t.equal(cloud.requests.at(-1)?.headers.authorization, 'Bearer key')
})
