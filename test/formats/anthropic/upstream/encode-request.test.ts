/**
 * Goal: every field of a request is encoded, reported, ignored or refused as specified.
 * Method: one field at a time, for a model of the newest generation and an older one.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { ChatRequest, ToolChoice } from '../../../../src/formats/chat/request.js'
import { GatewayError } from '../../../../src/errors.js'
import { upstreamCodec, encode, facts, OLDER, user } from '../driver.js'

/** The field that the error of an untranslatable request names. */
function refusal(over: Partial<ChatRequest>, model: Partial<ModelFacts> = {}): string | undefined {
  try {
    encode(over, model)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'untranslatable') {
      return error.message.includes(error.wire.param ?? '?') ? error.wire.param : error.message
    }
    throw error
  }
  return undefined
}

function rest(field: string, value: JsonValue): string[] {
  return encode({ rest: { [field]: value } }).lost
}

void t.test('a minimal request', (t) => {
  const { body, lost } = encode({})
  t.same(body, {
    model: 'claude-test',
    max_tokens: 64_000,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
  })
  t.same(lost, [])
  t.equal(encode({ stream: true }).body.stream, true)
  t.end()
})

void t.test('target, credential, edits and version', (t) => {
  t.same(upstreamCodec.target('m', true), { path: '/messages', accept: 'text/event-stream' })
  t.same(upstreamCodec.target('m', false), { path: '/messages', accept: 'application/json' })
  t.same(upstreamCodec.credential('k'), { 'x-api-key': 'k' })
  t.same(upstreamCodec.edits({}, 'a"b', { model: facts(), losses: { drop: () => undefined } }), [
    { key: 'model', json: '"a\\"b"' },
  ])
  t.same(upstreamCodec.headers({}), { 'anthropic-version': '2026-10-21' })
  for (const field of ['temperature', 'top_p', 'top_k']) {
    t.same(upstreamCodec.headers({ [field]: 0 }), { 'anthropic-version': '2023-06-01' }, field)
  }
  const bound = upstreamCodec.headers({ thinking: { type: 'adaptive', block_binding: {} } })
  t.match(bound, { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' })
  t.end()
})

void t.test('max_tokens: requested, of the model, clamped or unknown', (t) => {
  t.equal(encode({ maxOutputTokens: 9 }).body.max_tokens, 9)
  t.equal(encode({}, { maxOutputTokens: 128_000 }).body.max_tokens, 128_000)
  const clamped = encode({ maxOutputTokens: 500_000 }, { maxOutputTokens: 64_000 })
  t.equal(clamped.body.max_tokens, 64_000)
  t.same(clamped.lost, ['max_completion_tokens: approximated'])
  t.end()
})

void t.test('at most one sampling parameter is sent, and only to models that accept it', (t) => {
  const sampled = (over: Partial<ChatRequest>, model: Partial<ModelFacts>): unknown[] => {
    const { body, lost } = encode(over, model)
    return [body.temperature, body.top_p, lost]
  }
  const none = undefined
  t.same(sampled({ temperature: 0.3 }, {}), [none, none, ['temperature: no-equivalent']])
  t.same(sampled({ temperature: 1, topP: 1 }, {}), [none, none, []])
  t.same(sampled({ topP: 0.5 }, {}), [none, none, ['top_p: no-equivalent']])
  t.same(sampled({ temperature: 0.3 }, OLDER), [0.3, none, []])
  t.same(sampled({ temperature: 0 }, OLDER), [0, none, []])
  t.same(sampled({ temperature: 1.7 }, OLDER), [none, none, ['temperature: approximated']])
  t.same(sampled({ topP: 0.5 }, OLDER), [none, 0.5, []])
  t.same(sampled({ temperature: 1, topP: 0.5 }, OLDER), [none, 0.5, []])
  t.same(sampled({ temperature: 0.3, topP: 0.5 }, OLDER), [0.3, none, ['top_p: no-equivalent']])
  const unset = { ...OLDER }
  delete unset.thinkingDefault
  t.same(sampled({ temperature: 0.3 }, unset), [none, none, ['temperature: no-equivalent']])
  const thinking: Partial<ChatRequest> = { temperature: 0.3, reasoningEffort: 'low' }
  t.same(sampled(thinking, OLDER), [none, none, ['temperature: no-equivalent']])
  t.same(sampled({ temperature: 0.3, reasoningEffort: 'none' }, OLDER), [0.3, none, []])
  t.end()
})

void t.test('reasoning effort on adaptive models', (t) => {
  const encoded = (effort: ChatRequest['reasoningEffort'], model: Partial<ModelFacts> = {}): unknown[] => {
    const { body, lost } = encode(effort === undefined ? {} : { reasoningEffort: effort }, model)
    return [objectOf(body.thinking).type, objectOf(body.output_config).effort, lost]
  }
  const approximated = ['reasoning_effort: approximated']
  t.same(encoded(undefined), [undefined, undefined, []])
  t.same(encoded('minimal'), ['adaptive', 'low', []])
  t.same(encoded('medium'), ['adaptive', 'medium', []])
  t.same(encoded('xhigh'), ['adaptive', 'xhigh', []])
  const four = { efforts: ['low', 'medium', 'high', 'max'] }
  t.same(encoded('xhigh', four), ['adaptive', 'high', approximated])
  t.same(encoded('max', four), ['adaptive', 'max', []])
  t.same(encoded('none'), [undefined, 'low', approximated])
  t.same(encoded('none', { thinkingTypes: ['adaptive', 'disabled'] }), ['disabled', undefined, []])
  t.same(encoded('none', { thinkingTypes: ['adaptive', 'between_tools'] }), ['between_tools', undefined, []])
  t.same(encoded('high', { reasoning: false }), [undefined, undefined, ['reasoning_effort: no-equivalent']])
  t.same(encoded('none', { reasoning: false }), [undefined, undefined, []])
  t.match(encode({ reasoningEffort: 'high' }).body, { thinking: { display: 'summarized' } })
  t.end()
})

void t.test('reasoning effort as a budget stays below max_tokens', (t) => {
  const encoded = (over: Partial<ChatRequest>): unknown[] => {
    const { body, lost } = encode(over, OLDER)
    return [body.thinking, lost]
  }
  const enabled = (budget_tokens: number): JsonObject => ({ type: 'enabled', budget_tokens })
  t.same(encoded({ reasoningEffort: 'minimal' }), [enabled(1024), []])
  t.same(encoded({ reasoningEffort: 'max' }), [enabled(49_152), []])
  t.same(encoded({ reasoningEffort: 'high', maxOutputTokens: 4096 }), [enabled(3072), []])
  t.same(encoded({ reasoningEffort: 'low', maxOutputTokens: 2047 }), [
    undefined,
    ['reasoning_effort: approximated'],
  ])
  t.same(encoded({ reasoningEffort: 'none' }), [{ type: 'disabled' }, []])
  t.end()
})

void t.test("a client's own thinking object is sent unchanged unless an effort is set", (t) => {
  const thinking = { type: 'enabled', budget_tokens: 2000, display: 'omitted' }
  t.same(encode({ rest: { thinking } }).body.thinking, thinking)
  const both = encode({ rest: { thinking }, reasoningEffort: 'low' })
  t.equal(objectOf(both.body.thinking).type, 'adaptive')
  t.same(both.lost, ['thinking: no-equivalent'])
  t.end()
})

void t.test('stop sequences', (t) => {
  t.same(encode({ stop: ['a', '', 'b '] }).body.stop_sequences, ['a', 'b '])
  t.equal(encode({ stop: [''] }).body.stop_sequences, undefined)
  t.equal(refusal({ stop: ['a', '\n'] }), 'stop')
  t.end()
})

void t.test("the end user's id is sent, hashed if it may be personal data", (t) => {
  const id = (userId: string): unknown => objectOf(encode({ userId }).body.metadata).user_id
  t.equal(id('account-7'), 'account-7')
  for (const personal of ['ann@example.test', '+44 20 7946 0000', '(020) 7946-0000', 'x'.repeat(300)]) {
    t.match(id(personal), /^[0-9a-f]{64}$/)
    t.equal(id(personal), id(personal))
  }
  t.equal(encode({ userId: ' ' }).body.metadata, undefined)
  t.end()
})

void t.test('service tier', (t) => {
  t.equal(encode({ serviceTier: 'auto' }).body.service_tier, 'auto')
  t.equal(encode({ serviceTier: 'default' }).body.service_tier, 'standard_only')
  const flex = encode({ serviceTier: 'flex' })
  t.equal(flex.body.service_tier, undefined)
  t.same(flex.lost, ['service_tier: no-equivalent'])
  t.end()
})

const NUMBER = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const OPEN = { type: 'object', properties: { m: { type: 'object' } } }

function withSchema(schema: JsonObject): Partial<ChatRequest> {
  return { responseFormat: { type: 'json-schema', name: 'answer', schema } }
}

void t.test('a JSON schema is requested natively if possible', (t) => {
  const { body, lost } = encode({ ...withSchema(NUMBER), reasoningEffort: 'low' })
  const schema = { ...NUMBER, additionalProperties: false }
  t.same(body.output_config, { effort: 'low', format: { type: 'json_schema', schema } })
  t.same(lost, [])
  t.end()
})

void t.test('a schema that the API cannot enforce becomes a forced tool or is refused', (t) => {
  const { body } = encode(withSchema(OPEN), OLDER)
  t.equal(body.output_config, undefined)
  t.match(body.tools, [{ name: 'json_response', input_schema: OPEN }])
  t.same(body.tool_choice, {
    type: 'tool',
    name: 'json_response',
    disable_parallel_tool_use: true,
  })
  const withTool = encode({ ...withSchema(OPEN), tools: [{ name: 'json_response' }] }, OLDER).body
  t.match(withTool.tools, [{ name: 'json_response' }, { name: 'json_response_' }])
  t.match(withTool.tool_choice, { type: 'any' })
  const tools = [{ name: 'f' }, { name: 'g' }]
  const some: ToolChoice = { mode: 'allowed', required: false, names: ['g'] }
  const allowed = encode({ ...withSchema(OPEN), tools, toolChoice: some }, OLDER).body
  t.match(allowed.tools, [{ name: 'g' }, { name: 'json_response' }])
  const path = 'response_format.json_schema.schema'
  t.equal(refusal(withSchema(OPEN)), path)
  t.equal(refusal({ ...withSchema(OPEN), reasoningEffort: 'high' }, OLDER), path)
  t.equal(refusal(withSchema({ type: 'array' }), OLDER), path)
  t.equal(encode(withSchema(NUMBER), { ...OLDER, structuredOutput: false }).body.output_config, undefined)
  t.end()
})

void t.test("a forced call of the client's tool replaces the response format", (t) => {
  const tools = [{ name: 'f' }]
  const choices: ToolChoice[] = [
    { mode: 'required' },
    { mode: 'named', name: 'f' },
    { mode: 'allowed', required: true, names: ['f'] },
  ]
  for (const toolChoice of choices) {
    const { body, lost } = encode({ ...withSchema(OPEN), tools, toolChoice }, OLDER)
    t.same(arrayOf(body.tools).length, 1, 'no synthetic tool')
    t.same(lost, ['response_format: approximated'])
  }
  t.end()
})

void t.test('JSON mode becomes an instruction and is reported', (t) => {
  const messages = [
    { role: 'system' as const, index: 0, parts: [{ type: 'text' as const, text: 'S' }] },
    user(1, 'q'),
  ]
  const noSchema = { type: 'json-schema' as const, name: 'any', schema: {} }
  for (const responseFormat of [{ type: 'json-object' as const }, noSchema]) {
    const { body, lost } = encode({ messages, responseFormat })
    t.match(body.system, [{ text: 'S' }, { text: /JSON/ }])
    t.equal(body.output_config, undefined)
    t.same(lost, ['response_format: approximated'])
  }
  t.same(encode({ responseFormat: { type: 'text' } }).lost, [])
  t.end()
})

void t.test('dropped fields are reported unless they do not affect the reply', (t) => {
  const reported: Partial<ChatRequest>[] = [
    { frequencyPenalty: 0.1 },
    { presencePenalty: -1 },
    { seed: 7 },
    { verbosity: 'high' },
  ]
  const names = ['frequency_penalty', 'presence_penalty', 'seed', 'verbosity']
  t.same(
    reported.flatMap((over) => encode(over).lost),
    names.map((name) => `${name}: no-equivalent`),
  )
  const silent: Partial<ChatRequest> = {
    frequencyPenalty: 0,
    presencePenalty: 0,
    verbosity: 'medium',
    logprobs: false,
    topLogprobs: 0,
    candidates: 1,
  }
  t.same(encode(silent).lost, [])
  t.same(rest('logit_bias', {}), [])
  t.same(rest('logit_bias', { 50256: -100 }), ['logit_bias: no-equivalent'])
  t.same(rest('store', false), [])
  t.same(rest('store', true), ['store: no-equivalent'])
  t.same(rest('modalities', ['text']), [])
  t.same(rest('anything', 1), ['anything: no-equivalent'])
  t.same(rest('anything', null), [])
  for (const field of ['metadata', 'prediction', 'prompt_cache_key', 'stream_options']) {
    t.same(rest(field, { a: 1 }), [], field)
    t.notOk(field in encode({ rest: { [field]: { a: 1 } } }).body)
  }
  t.end()
})

void t.test('fields that must not be dropped are refused by name', (t) => {
  t.equal(refusal({ candidates: 2 }), 'n')
  t.equal(refusal({ logprobs: true }), 'logprobs')
  t.equal(refusal({ topLogprobs: 3 }), 'top_logprobs')
  for (const [field, value] of Object.entries({
    audio: { voice: 'x' },
    modalities: ['text', 'audio'],
    moderation: { policy: 'x' },
    web_search_options: {},
  })) {
    t.equal(refusal({ rest: { [field]: value } }), field)
  }
  t.end()
})

void t.test('the last four cache marks are sent with their blocks', (t) => {
  const marked = Array.from({ length: 6 }, (_, i) => ({
    type: 'text' as const,
    text: `t${i}`,
    cache: { ttl: i === 5 ? ('1h' as const) : ('5m' as const) },
  }))
  const { body, lost } = encode({ messages: [{ role: 'user', index: 0, parts: marked }] })
  const five = { type: 'ephemeral' }
  t.same(body.messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 't0' },
        { type: 'text', text: 't1' },
        ...['t2', 't3', 't4'].map((text) => ({ type: 'text', text, cache_control: five })),
        { type: 'text', text: 't5', cache_control: { type: 'ephemeral', ttl: '1h' } },
      ],
    },
  ])
  t.same(lost, ['cache_control: approximated'])
  const cache = { ttl: '5m' as const }
  const block = { type: 'server_tool_use', cache_control: five }
  const nested = encode({
    messages: [
      user(0, 'q'),
      {
        role: 'assistant',
        index: 1,
        parts: [{ type: 'opaque', provider: 'anthropic', block }],
        toolCalls: [{ id: 'c', name: 'look', arguments: '', cache }],
      },
      { role: 'tool', index: 2, callId: 'c', parts: marked.slice(0, 3), cache },
    ],
    tools: [{ name: 'look', cache }],
  }).body
  t.equal(JSON.stringify(nested).split('cache_control').length - 1, 4)
  t.same(block, { type: 'server_tool_use', cache_control: five }, 'the request is not changed')
  const implicit = { prompt_cache_options: { mode: 'implicit' } }
  t.same(encode({ rest: implicit }).body.cache_control, five)
  t.equal(encode({ rest: { prompt_cache_options: { mode: 'explicit' } } }).body.cache_control, undefined)
  t.end()
})
