/**
 * Goal: every field of a Responses request is validated, errors name the path, and valid fields are decoded
 * to their canonical form.
 * Method: tables of valid and invalid values; requests of real clients.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { reportNative } from '../../../../src/formats/dialect.js'
import { clientCodecOf } from '../../../../src/formats/index.js'
import { GatewayError } from '../../../../src/errors.js'
import { writeReasoningToken } from '../../../../src/formats/wire/reasoning-token.js'

const clientCodec = clientCodecOf('openai-responses')

function decode(body: JsonObject): ChatRequest {
  const whole = { model: 'm', input: 'Hello', ...body }
  return clientCodec.decodeRequest(whole, { operation: 'chat' })
}

function refusal(body: JsonObject): GatewayError {
  try {
    reportNative(decode(body), { drop: () => undefined })
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error(`taken: ${JSON.stringify(body)}`)
}

const TOOL = { type: 'function', name: 'f', parameters: { type: 'object' } }

/**
 * A field, values that pass, and values that fail with the path that is named (the field itself if empty).
 */
const RULES: readonly (readonly [string, JsonValue[], [JsonValue, string][], JsonObject?])[] = [
  [
    'model',
    ['x'],
    [
      [1, ''],
      ['', ''],
      ['x'.repeat(257), ''],
    ],
  ],
  [
    'input',
    ['x', [{ role: 'user', content: 'x' }]],
    [
      [1, ''],
      [[1], 'input[0]'],
    ],
  ],
  ['instructions', ['Be brief.', ''], [[1, '']]],
  ['stream', [true, false], [['true', '']]],
  ['store', [true, false], [[1, '']]],
  [
    'background',
    [false],
    [
      [true, ''],
      ['x', ''],
    ],
  ],
  [
    'conversation',
    [],
    [
      ['conv_1', ''],
      [{ id: 'conv_1' }, ''],
    ],
  ],
  [
    'previous_response_id',
    ['resp_1'],
    [
      [1, ''],
      ['', ''],
    ],
  ],
  [
    'temperature',
    [0, 1.5, 2],
    [
      [2.1, ''],
      ['1', ''],
    ],
  ],
  ['top_p', [0, 1], [[1.1, '']]],
  ['top_logprobs', [0, 20], [[21, '']]],
  [
    'max_output_tokens',
    [1, 100],
    [
      [0, ''],
      [1.5, ''],
    ],
  ],
  ['max_tool_calls', [1], [[0, '']]],
  ['parallel_tool_calls', [true], [['x', '']]],
  ['truncation', ['auto', 'disabled'], [['x', '']]],
  ['service_tier', ['auto', 'flex', 'priority'], [['x', '']]],
  [
    'metadata',
    [{ a: 'b' }],
    [
      [{ a: 1 }, 'metadata.a'],
      ['x', ''],
    ],
  ],
  ['safety_identifier', ['x'], [['x'.repeat(129), '']]],
  ['user', ['x'], [[1, '']]],
  ['prompt_cache_key', ['x'], [[1, '']]],
  ['prompt', [{ id: 'pmpt_1' }], [['x', '']]],
  [
    'stream_options',
    [{ include_obfuscation: false }],
    [[{ include_obfuscation: 1 }, 'stream_options.include_obfuscation']],
  ],
  [
    'include',
    [['reasoning.encrypted_content'], []],
    [
      ['x', ''],
      [[1], 'include[0]'],
    ],
  ],
  [
    'reasoning',
    [{ effort: 'low', summary: 'auto' }, { effort: null }],
    [
      [{ effort: 'x' }, 'reasoning.effort'],
      [{ summary: 'x' }, 'reasoning.summary'],
      ['x', ''],
    ],
  ],
  [
    'text',
    [{ format: { type: 'text' }, verbosity: 'low' }, { format: { type: 'json_object' } }],
    [
      [{ format: { type: 'x' } }, 'text.format.type'],
      [{ format: { type: 'json_schema', name: '', schema: {} } }, 'text.format.name'],
      [{ format: { type: 'json_schema', name: 'a', schema: [] } }, 'text.format.schema'],
      [{ verbosity: 'x' }, 'text.verbosity'],
    ],
  ],
  [
    'tools',
    [
      [TOOL],
      [{ type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'x' } }],
      [{ type: 'web_search' }],
    ],
    [
      [[1], 'tools[0]'],
      [[{ type: 'function', name: '' }], 'tools[0].name'],
      [[{ type: 'function', name: 'a', parameters: [] }], 'tools[0].parameters'],
      [[{ type: 'custom', name: 'a', format: { type: 'x' } }], 'tools[0].format.type'],
      [[{ type: 'Web Search' }], 'tools[0].type'],
      [[{}], 'tools[0].type'],
    ],
  ],
  [
    'tool_choice',
    [
      'auto',
      'none',
      'required',
      { type: 'function', name: 'f' },
      { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
    ],
    [
      ['x', ''],
      [{ type: 'function', name: 'g' }, ''],
      [{ type: 'allowed_tools', mode: 'x', tools: [] }, 'tool_choice.mode'],
      [{ type: 'allowed_tools', mode: 'auto', tools: [] }, 'tool_choice.tools'],
    ],
    { tools: [TOOL] },
  ],
  ['api_base', [], [['http://evil', '']]],
]

for (const [field, good, bad, members] of RULES) {
  void t.test(`${field} is checked`, (t) => {
    for (const value of good) t.ok(decode({ ...members, [field]: value }), JSON.stringify(value))
    for (const [value, path] of bad) {
      const error = refusal({ ...members, [field]: value })
      t.equal(error.kind, 'malformed_request')
      t.equal(error.wire.param, path === '' ? field : path)
      t.ok(error.message.startsWith(path === '' ? field : path), error.message)
    }
    t.end()
  })
}

void t.test('null is absent for every field', (t) => {
  const nulls = Object.fromEntries(RULES.map(([field]) => [field, null]))
  t.same(decode({ ...nulls, model: 'm', input: 'Hello' }), decode({}))
  t.end()
})

/** The canonical turns of an input. */
function turns(input: JsonValue): ChatRequest['messages'] {
  return decode({ input }).messages
}

const user = (content: JsonValue): JsonObject => ({ role: 'user', content })
const call = (id: string): JsonObject => {
  return { type: 'function_call', call_id: id, name: 'f', arguments: '{}' }
}
const output = (id: string): JsonObject => {
  return { type: 'function_call_output', call_id: id, output: `done ${id}` }
}

void t.test('items become turns, and results follow the turn of their calls', (t) => {
  const messages = turns([
    user('Go'),
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Hm.' }],
      encrypted_content: 'sealed',
    },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Now.' }] },
    call('a'),
    call('b'),
    output('b'),
    user('Meanwhile'),
    output('a'),
    call('c'),
    output('c'),
  ])
  t.same(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'tool', 'user', 'assistant', 'tool'],
  )
  t.match(messages[1], {
    parts: [
      { type: 'thinking', text: 'Hm.', signature: 'rs_1:sealed', origin: 'openai-responses' },
      { type: 'text', text: 'Now.' },
    ],
    toolCalls: [{ id: 'a' }, { id: 'b' }],
  })
  t.match(messages.slice(2, 4), [{ callId: 'a' }, { callId: 'b' }], 'in the order of the calls')
  t.end()
})

void t.test('only an upstream of the format gets a call or result without its counterpart', (t) => {
  const cases: readonly (readonly [JsonValue[], string])[] = [
    [[user('Go'), call('a')], 'input[1]'],
    [[user('Go'), output('a')], 'input[1].call_id'],
    [[user('Go'), call('a'), output('a'), output('a')], 'input[3].call_id'],
    [[user('Go'), { type: 'local_shell_call', call_id: 'a' }, output('b')], 'input[2].call_id'],
  ]
  for (const [input, path] of cases) {
    t.match(decode({ model: 'm', input }).native, [{ path, isMalformed: true }], path)
  }
  t.end()
})

void t.test('only an upstream of the format gets an empty conversation, and instructions are one', (t) => {
  const inputs: JsonValue[] = ['', [], [user('')], [user([])], [{ role: 'assistant', content: '' }]]
  for (const input of inputs) {
    t.match(decode({ input }).native, [{ path: 'input', isMalformed: true }], JSON.stringify(input))
    const instructed = decode({ input, instructions: 'Tell a joke.' })
    t.same(instructed.native, undefined, JSON.stringify(input))
    t.match(instructed.messages, [{ role: 'system' }])
  }
  t.end()
})

void t.test('invalid items are refused with their path', (t) => {
  const cases: readonly (readonly [JsonValue[], string])[] = [
    [[{ type: 'function_call', call_id: 'a', name: '', arguments: '' }], 'input[0].name'],
    [[{ type: 'item_reference' }], 'input[0].id'],
    [[{ role: 'robot', content: 'x' }], 'input[0].role'],
    [[user([{ type: 'input_image' }])], 'input[0].content[0]'],
    [[user([{ type: 'input_image', image_url: 'ftp://x' }])], 'input[0].content[0].image_url'],
    [[user([{ type: 'input_file', file_data: 'x' }])], 'input[0].content[0].file_data'],
  ]
  for (const [input, path] of cases) t.equal(refusal({ input }).wire.param, path, path)
  t.end()
})

void t.test('reasoning state that the gateway issued is restored', (t) => {
  const token = (state: Parameters<typeof writeReasoningToken>[0]): JsonObject => {
    return {
      type: 'reasoning',
      id: 'rs_1',
      summary: [],
      encrypted_content: writeReasoningToken(state),
    }
  }
  const messages = turns([
    user('Go'),
    token({ origin: 'anthropic', thoughts: [{ signature: 'sig' }] }),
    token({ origin: 'anthropic', thoughts: [{ redacted: 'gone' }] }),
    { role: 'assistant', content: 'Stated.' },
    token({ origin: 'gemini', thoughts: [{ signature: 'of text' }], of: 'text' }),
    call('a'),
    token({ origin: 'gemini', thoughts: [{ signature: 'of call' }], of: { call: 'a' } }),
    output('a'),
  ])
  t.match(messages[1], {
    parts: [
      { type: 'thinking', origin: 'anthropic', signature: 'sig' },
      { type: 'thinking', origin: 'anthropic', redacted: 'gone' },
      { type: 'text', text: 'Stated.', signature: 'of text' },
    ],
    toolCalls: [{ id: 'a', signature: 'of call' }],
  })
  t.end()
})

void t.test('hosted tools of OpenAI are sent only to its upstreams', (t) => {
  const request = decode({
    tools: [TOOL, { type: 'web_search' }, { type: 'mcp', server_label: 'x' }],
  })
  t.same(request.native, [{ path: 'tools.web_search' }, { path: 'tools.mcp' }])
  const forced = decode({ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } })
  t.match(forced.native, [{ path: 'tools.web_search' }, { path: 'tool_choice', refusal: /only OpenAI/ }])
  t.end()
})

void t.test('tools in a namespace have a joined name for other formats, and both names in calls', (t) => {
  const tools = [{ type: 'namespace', name: 'mcp', tools: [TOOL, { type: 'custom', name: 'c' }] }, TOOL]
  const history = [
    user('Go'),
    { ...call('a'), namespace: 'mcp' },
    { ...call('b'), namespace: 'f' },
    output('a'),
    output('b'),
  ]
  const request = decode({ tools, input: history })
  t.same(
    request.tools.map(({ name }) => name),
    ['mcp__f', 'mcp__c', 'f'],
  )
  t.match(request.messages[1], { toolCalls: [{ name: 'mcp__f' }, { name: 'f' }] })
  t.same(request.native, undefined, 'no field is lost')
  const reply = {
    id: 'x',
    model: 'm',
    blocks: [{ type: 'tool' as const, id: 'call_1', name: 'mcp__f', json: '{}' }],
    usage: {},
    reason: 'tool-use' as const,
    raw: null,
  }
  const seed = { id: 'resp_1', createdAtSeconds: 0, model: 'm' }
  const body = JSON.parse(clientCodec.encodeReply(reply, request, seed).text) as JsonObject
  t.match(body, {
    output: [{ type: 'function_call', namespace: 'mcp', name: 'f', call_id: 'call_1' }],
  })
  const encoder = clientCodec.newEncoder(request, seed)
  encoder.event({ type: 'start', id: 'x', model: 'm' })
  encoder.event({ type: 'tool-start', index: 0, id: 'call_1', name: 'mcp__f' })
  encoder.event({ type: 'tool-end', index: 0 })
  const frames = encoder.take()
  t.match(frames, /"response\.output_item\.added".*"name":"f","namespace":"mcp"/)
  t.match(frames, /"response\.function_call_arguments\.done".*"name":"f"/)
  t.match(frames, /"response\.output_item\.done".*"name":"f","namespace":"mcp"/)
  t.end()
})

void t.test('the number of references to items is bounded', (t) => {
  const input = Array.from({ length: 1_025 }, (_, at) => ({
    type: 'item_reference',
    id: `msg_${at}`,
  }))
  t.match(refusal({ input }), { message: /^input must name at most 1024 items/ })
  t.ok(decode({ input: input.slice(1) }))
  t.end()
})

void t.test('the settings that a reply repeats are bounded', (t) => {
  const long = 'word '.repeat(100_000)
  const { repeated } = decode({
    instructions: long,
    tools: [{ ...TOOL, description: long }],
    temperature: 0.5,
  })
  t.match(repeated, { instructions: null, tools: [], temperature: 0.5 })
  t.end()
})
