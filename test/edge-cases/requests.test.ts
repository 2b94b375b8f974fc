/**
 * Goal: known bugs of other gateways in requests do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a chat client's body through the codecs.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import { openAiEndpoint } from '../../src/gateway/upstreams/choose-openai-endpoint.js'
import { chatRequest, factsOf, refused, sent, tool, turnOf } from './drive-codecs.js'

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const CALLS = ['a', 'b', 'c'].map((name) => ({ id: `call_${name}`, name, json: '{}' }))
const TOOLS = CALLS.map(({ name }) => tool(name))

/** The messages of a body for Claude or Gemini: role, and its blocks or parts. */
function turns(body: JsonObject): [role: unknown, parts: JsonObject[]][] {
  return arrayOf(body['messages'] ?? body['contents'])
    .map(objectOf)
    .map((turn) => [turn['role'], arrayOf(turn['content'] ?? turn['parts']).map(objectOf)])
}

void t.test('40: the results of parallel calls were user messages each', (t) => {
  // https://github.com/rowboatlabs/rowboat/issues/378; https://github.com/agentscope-ai/agentscope/issues/1894; https://github.com/agentjido/req_llm/issues/250; https://github.com/MoonshotAI/kosong/issues/45
  const { go, assistantTurn, results } = turnOf(CALLS)
  const messages = [go, assistantTurn, ...results.toReversed(), { role: 'user', content: 'And?' }]
  const claude = turns(sent('anthropic', { messages, tools: TOOLS }).body)
  t.same(
    claude.map(([role]) => role),
    ['user', 'assistant', 'user'],
  )
  t.same(
    claude[2]?.[1].map((it) => it['tool_use_id'] ?? it['text']),
    ['call_a', 'call_b', 'call_c', 'And?'],
    'in the order of the calls, before the text of the user',
  )
  const gemini = turns(sent('gemini', { messages, tools: TOOLS }).body)
  const responses = gemini[2]?.[1].map((it) => objectOf(it['functionResponse'])['name'])
  t.same(responses?.slice(0, 3), ['a', 'b', 'c'])
  t.end()
})

void t.test('41: images between the results separated them', (t) => {
  // https://github.com/Zoo-Code-Org/Zoo-Code/issues/1705
  const { go, assistantTurn, results } = turnOf(CALLS)
  const picture = [
    { type: 'text', text: 'see' },
    { type: 'image_url', image_url: { url: PIXEL } },
  ]
  const shown = results.map((result) => ({ ...result, content: picture }))
  const body = { messages: [go, assistantTurn, ...shown], tools: TOOLS }
  const blocks = turns(sent('anthropic', body).body)[2]?.[1] ?? []
  t.same(
    blocks.map(({ type }) => type),
    ['tool_result', 'tool_result', 'tool_result'],
  )
  for (const { content } of blocks) {
    t.same(
      arrayOf(content).map((it) => objectOf(it)['type']),
      ['text', 'image'],
      'each has its own',
    )
  }
  const { body: chat } = sent('openai-chat', body)
  t.same(
    arrayOf(chat['messages']).map((it) => objectOf(it)['role']),
    ['user', 'assistant', 'tool', 'tool', 'tool', 'user'],
    'if results are text only, the images follow all of them',
  )
  t.end()
})

void t.test('42: empty text blocks were refused', (t) => {
  // https://github.com/aliasrobotics/cai/issues/182
  const empty = [
    { type: 'text', text: '' },
    { type: 'text', text: 'Hi' },
  ]
  const messages = [
    { role: 'system', content: '' },
    { role: 'user', content: empty },
    { role: 'assistant', content: '' },
    { role: 'user', content: 'Well?' },
  ]
  for (const dialect of ['anthropic', 'gemini'] as const) {
    const { body } = sent(dialect, { messages })
    t.notMatch(JSON.stringify(body), '"text":""', dialect)
    t.match(JSON.stringify(body), '"text":"Hi"')
    t.ok(turns(body).every(([, parts]) => parts.length > 0))
  }
  t.end()
})

const STRICT: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  additionalProperties: false,
  properties: {
    n: { type: 'number', exclusiveMinimum: 0 },
    kind: { const: 'x' },
    who: { $ref: '#/$defs/who', description: 'A person' },
  },
  $defs: { who: { type: 'object', properties: { name: { type: 'string' } } } },
}

/** All objects below `value`. */
function* nodes(value: JsonValue | undefined): Generator<JsonObject> {
  if (Array.isArray(value)) for (const each of value) yield* nodes(each)
  else if (typeof value === 'object' && value !== null) {
    yield value
    for (const each of Object.values(value)) yield* nodes(each)
  }
}

void t.test("43: a tool's schema went to Gemini's older field, which refuses most keywords", (t) => {
  // https://github.com/pizza-bot-app/pizza-bot/issues/62; https://github.com/Wei-Shaw/sub2api/issues/3143; https://github.com/router-for-me/CLIProxyAPI/issues/97
  const { body } = sent('gemini', { tools: [tool('f', STRICT)] })
  const declared = objectOf(arrayOf(objectOf(arrayOf(body['tools'])[0])['functionDeclarations'])[0])
  t.equal(declared['parameters'], undefined)
  const schema = objectOf(declared['parametersJsonSchema'])
  t.match(schema, { type: 'object', properties: { kind: { enum: ['x'] } } })
  for (const node of nodes(schema)) {
    for (const word of ['$schema', 'const', 'exclusiveMinimum']) t.notOk(word in node, word)
  }
  t.end()
})

void t.test('44: a node with $ref and more was refused', (t) => {
  // https://github.com/su-kaka/gcli2api/issues/374
  const { body } = sent('gemini', { tools: [tool('f', STRICT)] })
  const referring = [...nodes(body['tools'])].filter((node) => '$ref' in node)
  t.ok(referring.length > 0)
  for (const node of referring) t.same(Object.keys(node), ['$ref'])
  t.end()
})

void t.test('45: a forced tool_choice reached a model that refuses it', (t) => {
  // https://github.com/can1357/oh-my-pi/issues/12939; https://github.com/BerriAI/litellm/issues/42721
  for (const choice of ['required', { type: 'function', function: { name: 'b' } }]) {
    const body = { tools: TOOLS, tool_choice: choice }
    const { body: newest, lost } = sent('anthropic', body, 'claude-opus-5-5')
    t.notMatch(JSON.stringify(newest['tool_choice'] ?? null), /"any"|"tool"/)
    t.ok(lost.includes('tool_choice'), 'and it is reported')
    const offered = arrayOf(newest['tools']).length
    t.equal(offered, typeof choice === 'string' ? 3 : 1, 'only the named tool is offered')
    const { body: older } = sent('anthropic', body, 'claude-haiku-4-5')
    t.match(JSON.stringify(older['tool_choice']), /"any"|"tool"/)
  }
  t.end()
})

void t.test('46: a temperature was sent with an API version that lacks it', (t) => {
  // https://github.com/braintrustdata/lingua/issues/196
  for (const model of ['claude-opus-5-5', 'claude-sonnet-5', 'claude-haiku-4-5']) {
    for (const body of [{}, { temperature: 0.3 }, { top_p: 0.5 }, { temperature: 1 }]) {
      const received = sent('anthropic', body, model)
      const samples = 'temperature' in received.body || 'top_p' in received.body
      const version = received.headers['anthropic-version']
      t.equal(samples, version === '2023-06-01', `${model} ${JSON.stringify(body)}: ${version ?? ''}`)
      const wanted = Object.values(body).some((value) => value !== 1)
      t.equal(samples || received.lost.length > 0, wanted, 'sent or reported')
    }
  }
  t.end()
})

void t.test('47: tools with reasoning on the newest models went to the chat endpoint', (t) => {
  // https://github.com/danny-avila/LibreChat/issues/14231; https://github.com/itzcrazykns/vane/issues/1173
  for (const model of ['gpt-5.6-sol', 'gpt-6-astra', 'gpt-6.1-terra']) {
    const request = chatRequest({ model, tools: TOOLS })
    t.equal(openAiEndpoint(request, factsOf(model)), 'openai-responses', model)
  }
  const body = { tools: TOOLS, reasoning_effort: 'high' }
  const received = sent('openai-responses', body, 'gpt-5.6-sol').body
  t.match(received, { reasoning: { effort: 'high' }, tools: [{ type: 'function', name: 'a' }] })
  t.end()
})

void t.test('48: a reasoning object went to the chat endpoint, which lacks it', (t) => {
  // https://github.com/editor-code-assistant/eca/issues/609
  const { body } = sent('openai-chat', { reasoning_effort: 'low' }, 'gpt-5.4')
  t.equal(body['reasoning_effort'], 'low')
  t.notOk('reasoning' in body)
  const received = sent('openai-chat', { reasoning: { effort: 'low' } }, 'gpt-5.4')
  t.notOk('reasoning' in received.body)
  t.ok(received.body['reasoning_effort'] === 'low' || received.lost.includes('reasoning'), 'used or reported')
  t.end()
})

void t.test('49: allowed_tools and parallel_tool_calls were lost silently', (t) => {
  // https://github.com/maximhq/bifrost/issues/7348
  const tools = [{ type: 'function', function: { name: 'b' } }]
  const allowed_tools = { mode: 'required', tools }
  const body = { tools: TOOLS, tool_choice: { type: 'allowed_tools', allowed_tools } }
  t.match(sent('openai-chat', body).body['tool_choice'], { type: 'allowed_tools', allowed_tools })
  t.match(sent('openai-responses', body).body['tool_choice'], {
    type: 'allowed_tools',
    mode: 'required',
    tools: [{ type: 'function', name: 'b' }],
  })
  const claude = sent('anthropic', body).body
  t.match(claude, { tools: [{ name: 'b' }], tool_choice: { type: 'any' } })
  t.equal(arrayOf(claude['tools']).length, 1)
  t.match(sent('gemini', body).body, {
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['b'] } },
  })
  const one = { tools: TOOLS, parallel_tool_calls: false }
  t.equal(sent('openai-chat', one).body['parallel_tool_calls'], false)
  t.equal(sent('openai-responses', one).body['parallel_tool_calls'], false)
  t.match(sent('anthropic', one).body, { tool_choice: { disable_parallel_tool_use: true } })
  t.ok(sent('gemini', one).lost.includes('parallel_tool_calls'), 'Gemini cannot: it is reported')
  t.end()
})

void t.test('52: images with gs:// URLs disappeared', (t) => {
  // https://github.com/maximhq/bifrost/issues/4402
  const content = [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: 'gs://bucket/cat.png' } },
  ]
  const messages = [{ role: 'user', content }]
  // Vertex AI reads them, if the upstream allows the bucket.
  const fileData = { fileUri: 'gs://bucket/cat.png', mimeType: 'image/png' }
  t.match(sent('gemini', { messages }).body, { contents: [{ parts: [{}, { fileData }] }] })
  for (const dialect of ['openai-chat', 'anthropic'] as const) {
    const error = refused(() => sent(dialect, { messages }))
    t.match(error.param, /^messages\[0\]\.content/, `${dialect}: refused by name`)
  }
  t.end()
})

void t.test('64: null for an optional field went upstream as null', (t) => {
  // Clients with typed requests write null for members that were not set.
  const names =
    'temperature top_p stop tools tool_choice response_format max_tokens max_completion_tokens seed ' +
    'user metadata logprobs top_logprobs n parallel_tool_calls reasoning_effort stream_options ' +
    'frequency_penalty presence_penalty logit_bias service_tier store functions function_call'
  const nulls = Object.fromEntries(names.split(' ').map((name) => [name, null]))
  t.same(chatRequest(nulls), chatRequest(), 'null is absent')
  for (const dialect of ['openai-chat', 'anthropic', 'gemini'] as const) {
    const received = sent(dialect, nulls)
    t.same(received, sent(dialect, {}), dialect)
    t.notMatch(JSON.stringify(received.body), 'null')
  }
  t.end()
})
