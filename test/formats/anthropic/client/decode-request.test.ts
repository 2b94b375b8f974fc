/**
 * Goal: each rule of a Messages request accepts values within its limits, names the field of others, and
 * decodes valid requests to canonical ones. Method: one row per rule with valid and invalid values.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { reportNative } from '../../../../src/formats/dialect.js'
import { clientCodecOf } from '../../../../src/formats/index.js'
import { GatewayError } from '../../../../src/errors.js'

const clientCodec = clientCodecOf('anthropic')
const HELLO: JsonValue[] = [{ role: 'user', content: 'Hello' }]
const PLAIN: JsonObject = { model: 'm', max_tokens: 10, messages: HELLO }
const TOOL: JsonObject = { name: 'f', input_schema: { type: 'object' } }

function decode(members: JsonObject, headers: Record<string, string> = {}): ChatRequest {
  return clientCodec.decodeRequest({ ...PLAIN, ...members }, { operation: 'chat' }, headers)
}

function refusal(members: JsonObject, headers: Record<string, string> = {}): GatewayError {
  try {
    reportNative(decode(members, headers), { drop: () => undefined })
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error(`taken: ${JSON.stringify(members).slice(0, 200)}`)
}

const user = (...content: JsonObject[]): JsonValue[] => [{ role: 'user', content }]
const call = (id: string): JsonObject => ({ type: 'tool_use', id, name: 'f', input: {} })
const result = (id: string): JsonObject => ({ type: 'tool_result', tool_use_id: id, content: 'r' })
const turns = (...contents: JsonObject[][]): JsonValue[] =>
  contents.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }))
const text = (value: string): JsonObject => ({ type: 'text', text: value })

/** Members of an invalid request, and the path that the error names. */
const BAD: readonly (readonly [param: string, members: JsonObject])[] = [
  ['model', { model: 1 }],
  ['max_tokens', { max_tokens: null }],
  ['max_tokens', { max_tokens: -1 }],
  ['max_tokens', { max_tokens: 1.5 }],
  ['messages', { messages: [] }],
  ['messages[0].role', { messages: [{ role: 'tool', content: 'x' }] }],
  ['messages', { messages: [{ role: 'user', content: '' }] }],
  ['messages', { messages: [{ role: 'user', content: [] }] }],
  ['messages', { messages: user(text('')) }],
  ['messages[0].content', { messages: [{ role: 'user', content: 7 }] }],
  ['messages[0].content[0]', { messages: [{ role: 'user', content: ['x'] }] }],
  ['messages[0].content[0].type', { messages: user({ text: 'x' }) }],
  ['messages[0].content[0].text', { messages: user({ type: 'text', text: 1 }) }],
  ['messages[0].content[0].source', { messages: user({ type: 'image' }) }],
  ['messages[0].content[0].source.type', { messages: user({ type: 'image', source: { type: 'x' } }) }],
  [
    'messages[0].content[0].source.media_type',
    {
      messages: user({
        type: 'image',
        source: { type: 'base64', media_type: 'image/tiff', data: 'aa' },
      }),
    },
  ],
  [
    'messages[0].content[0].source.data',
    {
      messages: user({
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: '' },
      }),
    },
  ],
  [
    'messages[0].content[0].source.url',
    { messages: user({ type: 'image', source: { type: 'url', url: 'ftp://a' } }) },
  ],
  ['messages[0].content[0].tool_use_id', { messages: user(result('t1')) }],
  ['messages[1].content[0]', { messages: turns([text('a')], [call('t1')]) }],
  ['messages[1].content[0]', { messages: turns([text('a')], [call('t1')], [text('b')]) }],
  ['messages[1].content[0]', { messages: turns([text('a')], [call('t1'), call('t1')]) }],
  [
    'messages[2].content[1].tool_use_id',
    { messages: turns([text('a')], [call('t1')], [result('t1'), result('t1')]) },
  ],
  ['messages[1].content[0].input', { messages: turns([text('a')], [{ ...call('t1'), input: '{}' }]) }],
  ['messages[1].content[0].name', { messages: turns([text('a')], [{ ...call('t1'), name: '' }]) }],
  [
    'messages[0].content[0].cache_control.type',
    { messages: user({ ...text('a'), cache_control: { type: 'x' } }) },
  ],
  ['system', { system: 1 }],
  ['system[0].text', { system: [{ type: 'text' }] }],
  ['stream', { stream: 'true' }],
  ['temperature', { temperature: 1.1 }],
  ['top_p', { top_p: -0.1 }],
  ['top_k', { top_k: 0.5 }],
  ['stop_sequences', { stop_sequences: 'x' }],
  ['stop_sequences[1]', { stop_sequences: ['a', 1] }],
  ['tools', { tools: {} }],
  ['tools[0].name', { tools: [{ ...TOOL, name: 'x'.repeat(513) }] }],
  ['tools[0].input_schema', { tools: [{ name: 'f' }] }],
  ['tools[0].strict', { tools: [{ ...TOOL, strict: 1 }] }],
  ['tool_choice.type', { tool_choice: { type: 'x' } }],
  ['tool_choice', { tool_choice: { type: 'any' } }],
  ['tool_choice', { tools: [TOOL], tool_choice: { type: 'tool', name: 'g' } }],
  ['thinking.type', { thinking: {} }],
  ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 1023 } }],
  ['thinking.display', { thinking: { type: 'adaptive', display: 'x' } }],
  ['output_config.effort', { output_config: { effort: 'none' } }],
  ['output_config.format.schema', { output_config: { format: { type: 'json_schema' } } }],
  ['metadata.user_id', { metadata: { user_id: 1 } }],
  ['metadata.user_id', { metadata: { user_id: 'x'.repeat(513) } }],
  ['service_tier', { service_tier: 'priority' }],
  ['speed', { speed: 'slow' }],
  ['fallbacks', { fallbacks: [{ model: 'other' }] }],
  ['api_base', { api_base: 'http://a' }],
  ['MODEL', { MODEL: 'other' }],
  ['Max_Tokens', { Max_Tokens: 1_000_000 }],
]

void t.test('an invalid field is refused with its path', (t) => {
  for (const [param, members] of BAD) {
    const error = refusal(members)
    t.equal(error.kind, 'malformed_request', param)
    t.equal(error.wire.param, param, error.message)
    t.ok(error.message.startsWith(param), error.message)
  }
  t.equal(refusal({}, { 'anthropic-version': 'a b' }).wire.param, 'anthropic-version')
  t.equal(refusal({}, { 'anthropic-beta': 'a, b c' }).wire.param, 'anthropic-beta')
  t.end()
})

void t.test('null is the same as absent for every optional field', (t) => {
  const names = 'system stream temperature top_p top_k stop_sequences tools tool_choice thinking'
  const more = 'output_config metadata service_tier speed container mcp_servers cache_control'
  const nulls = Object.fromEntries(`${names} ${more}`.split(' ').map((name) => [name, null]))
  t.same(decode(nulls), decode({}))
  t.end()
})

void t.test('messages of one role are one turn, and results come in the order of their calls', (t) => {
  const { messages } = decode({
    tools: [TOOL],
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [text('b'), call('t1')] },
      { role: 'assistant', content: [call('t2')] },
      { role: 'user', content: [result('t2'), result('t1'), text('c')] },
    ],
  })
  t.same(
    messages.map((each) => [each.role, each.role === 'tool' ? each.callId : each.parts.length]),
    [
      ['user', 1],
      ['assistant', 1],
      ['tool', 't1'],
      ['tool', 't2'],
      ['user', 1],
    ],
  )
  t.end()
})

void t.test('thinking budgets and efforts are decoded to a reasoning effort', (t) => {
  const enabled = (budget_tokens: number): JsonObject => ({
    thinking: { type: 'enabled', budget_tokens },
  })
  const efforts: readonly (readonly [JsonObject, string | undefined])[] = [
    [{}, undefined],
    [enabled(1_024), 'low'],
    [enabled(4_000), 'medium'],
    [enabled(10_000), 'high'],
    [enabled(31_999), 'xhigh'],
    [enabled(60_000), 'max'],
    [{ thinking: { type: 'adaptive' } }, 'medium'],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }, 'max'],
    [{ output_config: { effort: 'low' }, thinking: { type: 'adaptive' } }, 'low'],
    [{ output_config: { effort: 'high' }, thinking: { type: 'disabled' } }, 'none'],
    [{ thinking: { type: 'between_tools' } }, 'none'],
  ]
  for (const [members, effort] of efforts) t.equal(decode(members).reasoningEffort, effort)
  t.end()
})

void t.test('a long user id is replaced by a hash that every provider accepts', (t) => {
  t.equal(decode({ metadata: { user_id: 'user-1' } }).userId, 'user-1')
  const { userId } = decode({ metadata: { user_id: 'x'.repeat(300) } })
  t.match(userId, /^[0-9a-f]{64}$/)
  t.end()
})

void t.test('fields that only Anthropic upstreams accept are recorded', (t) => {
  const { native = [] } = decode(
    {
      tools: [TOOL, { type: 'web_search_20250305', name: 'web_search' }],
      messages: user(text('a'), { type: 'container_upload', file_id: 'f' }),
      invented: 1,
    },
    { 'anthropic-beta': 'one,two', 'anthropic-version': '2023-06-01' },
  )
  t.same(
    native.map(({ path, refusal }) => [path, refusal === undefined]),
    [
      ['messages[0].content[1]', false],
      ['tools.web_search_20250305', true],
      ['invented', true],
      ['anthropic-beta.one', true],
      ['anthropic-beta.two', true],
    ],
  )
  t.end()
})

void t.test('the program that called a tool is lost elsewhere, and the client itself is no loss', (t) => {
  const result = { type: 'tool_result', tool_use_id: 'a', content: 'ok' }
  const nativeOf = (caller: JsonObject): unknown =>
    decode({ messages: turns([text('Go')], [{ ...call('a'), caller }], [result]), tools: [TOOL] }).native
  t.match(nativeOf({ type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }), [{ path: 'messages.caller' }])
  t.same(nativeOf({ type: 'direct' }), undefined)
  t.end()
})

void t.test('a tool that a search of the client has found is a line of text', (t) => {
  const content = [
    { type: 'tool_reference', tool_name: 'Read' },
    { type: 'tool_reference', tool_name: 'Write' },
  ]
  const found = { type: 'tool_result', tool_use_id: 'a', content }
  const request = decode({ messages: turns([text('Go')], [call('a')], [found]), tools: [TOOL] })
  const last = { role: 'tool', callId: 'a' }
  const all = { type: 'text', text: 'Tools found: Read, Write' }
  t.match(
    request.messages.at(-1),
    { ...last, parts: [all] },
    'one text, which formats of one text keep apart',
  )
  const one = { type: 'tool_result', tool_use_id: 'a', content: [content[0] ?? {}, text('More')] }
  const mixed = decode({ messages: turns([text('Go')], [call('a')], [one]), tools: [TOOL] })
  const parts = [
    { type: 'text', text: 'Tool found: Read\n' },
    { type: 'text', text: 'More' },
  ]
  t.match(mixed.messages.at(-1), { ...last, parts })
  t.same(request.native, undefined, 'nothing is lost')
  const outside = decode({ messages: user(text('Go'), content[0] ?? {}) })
  t.match(outside.native, [{ path: 'messages.tool_reference' }])
  t.end()
})
