/**
 * Names of tools that a vendor refuses: each client format to each upstream format, in tools, choice and
 * history, and back in whole replies and streams.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { Fold } from '../../src/formats/chat/fold.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import {
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  type ChatRequest,
} from '../../src/formats/codecs.js'
import { ordinaryModel } from '../../src/formats/dialect.js'
import { upstreamCodecOf } from '../../src/formats/index.js'

const CLIENTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini'] as const
type Client = (typeof CLIENTS)[number]
const UPSTREAMS = [...CLIENTS, 'converse'] as const
type Upstream = (typeof UPSTREAMS)[number]

const LONG = `mcp__${'server_with_a_long_name_'.repeat(6)}`
/** Any two of these must stay different; the last is what a changed name of the first could be. */
const NAMES = [
  'server.tool',
  'server/tool',
  'server tool',
  'server:tool',
  'prüfen',
  '🙂',
  '2nd_tool',
  '-dash',
  `${LONG}a`,
  `${LONG}b`,
  'fits',
  '_2nd_tool',
]
const PATTERNS: Readonly<Record<Upstream, RegExp>> = {
  'openai-chat': /^[a-zA-Z0-9_-]{1,64}$/,
  'openai-responses': /^[a-zA-Z0-9_-]{1,64}$/,
  anthropic: /^[a-zA-Z0-9_-]{1,128}$/,
  gemini: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/,
  converse: /^[a-zA-Z0-9_-]{1,64}$/,
}
const PARAMETERS = { type: 'object', properties: { q: { type: 'string' } } }
const CALLED = 'server.tool'

/** A conversation with a call of one tool, its result, and the choice of it. */
const BODIES: Readonly<Record<Client, (names: readonly string[], called: string) => JsonObject>> = {
  'openai-chat': (names, called) => ({
    model: 'm',
    messages: [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: called, arguments: '{"q":"x"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'found' },
    ],
    tools: names.map((name) => ({ type: 'function', function: { name, parameters: PARAMETERS } })),
    tool_choice: { type: 'function', function: { name: called } },
  }),
  'openai-responses': (names, called) => ({
    model: 'm',
    input: [
      { role: 'user', content: 'hi' },
      { type: 'function_call', call_id: 'c1', name: called, arguments: '{"q":"x"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'found' },
    ],
    tools: names.map((name) => ({ type: 'function', name, parameters: PARAMETERS })),
    tool_choice: { type: 'function', name: called },
  }),
  anthropic: (names, called) => ({
    model: 'm',
    max_tokens: 100,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: called, input: { q: 'x' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'found' }] },
    ],
    tools: names.map((name) => ({ name, input_schema: PARAMETERS })),
    tool_choice: { type: 'tool', name: called },
  }),
  gemini: (names, called) => ({
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: called, args: { q: 'x' } } }] },
      { role: 'user', parts: [{ functionResponse: { name: called, response: { output: 'found' } } }] },
    ],
    tools: [{ functionDeclarations: names.map((name) => ({ name, parameters: PARAMETERS })) }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [called] } },
  }),
}

function decoded(dialect: Client, names: readonly string[], called: string): ChatRequest {
  const body = BODIES[dialect](names, called)
  return decodeRequest({ dialect, body, ...(dialect === 'gemini' && { model: 'm' }) })
}

/** The values of these members anywhere in the body. */
function valuesOf(value: unknown, keys: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => valuesOf(each, keys))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, each]) => {
    if (keys.includes(key) && typeof each === 'string') return [each]
    if (keys.includes(key) && Array.isArray(each)) return each.filter((one) => typeof one === 'string')
    return valuesOf(each, keys)
  })
}

interface Sent {
  readonly tools: string[]
  readonly all: string[]
}

/** The names in a body: of tools, in order, and of all. */
function sent(to: Upstream, from: Client, request: ChatRequest): Sent {
  // Without a forced choice, some formats leave out all other tools.
  const model = { ...ordinaryModel('m', to), forcedToolChoice: true }
  const body = JSON.parse(encodeRequest({ from, to, request, model }).body) as JsonObject
  const keys = ['name', 'allowedFunctionNames']
  const tools = isObject(body['toolConfig']) ? (body['toolConfig']['tools'] ?? body['tools']) : body['tools']
  return { tools: valuesOf(tools, keys), all: valuesOf(body, keys) }
}

/** A whole reply with a call of the tool. */
const REPLIES: Readonly<Record<Upstream, (name: string) => JsonObject>> = {
  'openai-chat': (name) => ({
    id: 'r',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c2', type: 'function', function: { name, arguments: '{"q":"y"}' } }],
        },
      },
    ],
  }),
  'openai-responses': (name) => ({
    id: 'r',
    status: 'completed',
    output: [{ type: 'function_call', id: 'fc_1', call_id: 'c2', name, arguments: '{"q":"y"}' }],
  }),
  anthropic: (name) => ({
    id: 'r',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'c2', name, input: { q: 'y' } }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
  gemini: (name) => ({
    candidates: [
      {
        content: { role: 'model', parts: [{ functionCall: { name, args: { q: 'y' } } }] },
        finishReason: 'STOP',
      },
    ],
  }),
  converse: (name) => ({
    output: {
      message: { role: 'assistant', content: [{ toolUse: { toolUseId: 'c2', name, input: { q: 'y' } } }] },
    },
    stopReason: 'tool_use',
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  }),
}

/** The frames of a stream with the call. */
const STREAMS: Readonly<Record<Upstream, (name: string) => readonly [string, string | JsonObject][]>> = {
  'openai-chat': (name) => [
    [
      '',
      {
        choices: [
          {
            index: 0,
            delta: {
              tool_calls: [{ index: 0, id: 'c2', type: 'function', function: { name, arguments: '' } }],
            },
            finish_reason: null,
          },
        ],
      },
    ],
    [
      '',
      {
        choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"q":"y"}' } }] } }],
      },
    ],
    ['', { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }],
    ['', '[DONE]'],
  ],
  'openai-responses': (name) => {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'c2', name, arguments: '' }
    const done = { ...item, arguments: '{"q":"y"}' }
    const events = [
      { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      {
        type: 'response.function_call_arguments.delta',
        output_index: 0,
        item_id: 'fc_1',
        delta: '{"q":"y"}',
      },
      { type: 'response.output_item.done', output_index: 0, item: done },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [done] } },
    ]
    return events.map((event) => [event.type, event])
  },
  anthropic: (name) => {
    const events = [
      {
        type: 'message_start',
        message: { id: 'r', content: [], usage: { input_tokens: 1, output_tokens: 0 } },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 'c2', name, input: {} },
      },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"q":"y"}' },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]
    return events.map((event) => [event.type, event])
  },
  gemini: (name) => [['', REPLIES.gemini(name)]],
  converse: (name) => [
    ['messageStart', { role: 'assistant' }],
    ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 'c2', name } } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input: '{"q":"y"}' } } }],
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ['messageStop', { stopReason: 'tool_use' }],
    ['metadata', { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }],
  ],
}

function streamedCall(from: Upstream, request: ChatRequest, name: string): unknown {
  const fold = new Fold()
  const decoder = upstreamCodecOf(from)?.newDecoder(request, new Grammar(fold))
  for (const [event, data] of STREAMS[from](name)) {
    decoder?.frame(event, typeof data === 'string' ? data : JSON.stringify(data))
  }
  decoder?.end()
  return fold.reply()?.blocks
}

for (const from of CLIENTS) {
  for (const to of UPSTREAMS) {
    void t.test(`${from} to ${to}: names that the vendor takes, and back`, (t) => {
      for (const called of NAMES) {
        const request = decoded(from, NAMES, called)
        const { tools, all } = sent(to, from, request)
        const wire = tools[NAMES.indexOf(called)] ?? ''
        t.equal(new Set(tools).size, NAMES.length, 'two tools never have one name')
        for (const name of all) t.match(name, PATTERNS[to], `${called}: ${name}`)
        if (PATTERNS[to].test(called)) t.equal(wire, called, 'a name that fits is unchanged')
        const uses = all.filter((name) => name === wire).length
        const isNamed = to === 'gemini' || to === 'converse' ? 3 : 2
        t.ok(uses >= isNamed, `the history and the choice have the name of the tool (${uses})`)

        const reply = decodeReply(to, REPLIES[to](wire), request)
        const block = { type: 'tool', name: called, json: '{"q":"y"}' }
        t.match(reply.blocks, [block], 'a whole reply')
        t.match(streamedCall(to, request, wire), [block], 'a stream')
        const seed = { id: 'x', createdAtSeconds: 1, model: 'm' }
        const text = encodeReply(from, reply, { request, seed })
        t.ok(text.includes(`"name":${JSON.stringify(called)}`), 'the client reads its own name')
      }
      t.end()
    })
  }
}

void t.test('a changed name does not depend on the other tools', (t) => {
  for (const to of UPSTREAMS) {
    const few = sent(to, 'openai-chat', decoded('openai-chat', ['server.tool', 'prüfen'], CALLED)).tools
    const many = sent(to, 'openai-chat', decoded('openai-chat', NAMES, CALLED)).tools
    t.strictSame(few, [many[0], many[4]], to)
  }
  t.end()
})

void t.test('a tool whose name is that of a changed one keeps it', (t) => {
  for (const to of UPSTREAMS) {
    const [changed = ''] = sent(to, 'openai-chat', decoded('openai-chat', [`${LONG}a`], `${LONG}a`)).tools
    const request = decoded('openai-chat', [`${LONG}a`, changed], `${LONG}a`)
    const { tools } = sent(to, 'openai-chat', request)
    t.equal(tools[1], changed, to)
    t.not(tools[0], changed, to)
    for (const [at, name] of tools.entries()) {
      t.match(name, PATTERNS[to], to)
      const client = [`${LONG}a`, changed][at]
      t.match(decodeReply(to, REPLIES[to](name), request).blocks, [{ name: client }], to)
    }
  }
  t.end()
})

void t.test('allowed tools, and calls of tools that are in the history alone', (t) => {
  const body = BODIES['openai-chat'](['server.tool', 'prüfen', 'fits'], 'gone.tool')
  const named = (name: string): JsonObject => ({ type: 'function', function: { name } })
  body['tool_choice'] = {
    type: 'allowed_tools',
    allowed_tools: { mode: 'required', tools: [named('server.tool'), named('fits')] },
  }
  const request = decodeRequest({ dialect: 'openai-chat', body })
  for (const to of UPSTREAMS) {
    const { all } = sent(to, 'openai-chat', request)
    for (const name of all) t.match(name, PATTERNS[to], `${to}: ${name}`)
    const gone = all.find((name) => name.startsWith('gone')) ?? ''
    t.match(decodeReply(to, REPLIES[to](gone), request).blocks, [{ name: 'gone.tool' }], to)
  }
  t.end()
})

void t.test('tools of a namespace get their namespace back', (t) => {
  const namespace = 'mcp.server-with-a-long-name-that-is-joined'
  const name = 'tool/with.a.long.name.of.its.own'
  const body = {
    model: 'm',
    input: [
      { role: 'user', content: 'hi' },
      { type: 'function_call', call_id: 'c1', namespace, name, arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'found' },
    ],
    tools: [
      {
        type: 'namespace',
        name: namespace,
        description: 'x',
        tools: [{ type: 'function', name, parameters: PARAMETERS }],
      },
    ],
  }
  const request = decodeRequest({ dialect: 'openai-responses', body })
  for (const to of UPSTREAMS.filter((each) => each !== 'openai-responses')) {
    const { tools, all } = sent(to, 'openai-responses', request)
    for (const each of all) t.match(each, PATTERNS[to], `${to}: ${each}`)
    const reply = decodeReply(to, REPLIES[to](tools[0] ?? ''), request)
    const seed = { id: 'x', createdAtSeconds: 1, model: 'm' }
    const text = JSON.parse(encodeReply('openai-responses', reply, { request, seed })) as JsonObject
    const item = objectOf(arrayOf(text['output'])[0])
    t.equal(stringOf(item['name']), name, to)
    t.equal(stringOf(item['namespace']), namespace, to)
  }
  t.end()
})
