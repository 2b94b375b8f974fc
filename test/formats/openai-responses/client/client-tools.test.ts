/**
 * Goal: tools of OpenAI's types that the client runs work with models of every vendor: they are offered as
 * functions, their calls are items of their types, and calls and results that are sent back reach the model.
 * Method: requests to a gateway whose upstreams of each format call the tools with scripted arguments.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../../helpers/gateway.js'
import { startRawUpstream, type Canned, type RawUpstream } from '../../../helpers/raw-upstream.js'

/** A call that the upstream's model makes. */
interface Scripted {
  readonly name: string
  readonly json: string
}

const typeOf = ({ type }: JsonObject): string => stringOf(type) ?? ''
const frames = (...events: JsonObject[]): string[] =>
  events.map((event) => `event: ${typeOf(event)}\ndata: ${JSON.stringify(event)}\n\n`)

/** The reply of a model that makes the call, in the format and form of the request. */
function replyTo(url: string, body: JsonObject, { name, json }: Scripted): Canned {
  const streams = body['stream'] === true || url.includes(':streamGenerateContent')
  if (url.includes('/messages')) return streams ? claudeStream(name, json) : claudeWhole(name, json)
  if (url.includes(':')) {
    const part = { functionCall: { name, args: JSON.parse(json) as JsonValue } }
    const candidates = [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }]
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 3, totalTokenCount: 8 }
    const whole = JSON.stringify({ candidates, usageMetadata, modelVersion: 'm' })
    if (!streams) return { type: 'application/json', chunks: [whole] }
    return { type: 'text/event-stream', chunks: [`data: ${whole}\n\n`] }
  }
  return streams ? chatStream(name, json) : chatWhole(name, json)
}

function claudeWhole(name: string, json: string): Canned {
  const content = [{ type: 'tool_use', id: 'toolu_1', name, input: JSON.parse(json) as JsonValue }]
  const usage = { input_tokens: 5, output_tokens: 3 }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content, usage }
  return { type: 'application/json', chunks: [JSON.stringify({ ...message, stop_reason: 'tool_use' })] }
}

function claudeStream(name: string, json: string): Canned {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] }
  const block = { type: 'tool_use', id: 'toolu_1', name, input: {} }
  const half = Math.floor(json.length / 2)
  const delta = (text: string): JsonObject => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json: text },
  })
  return {
    type: 'text/event-stream',
    chunks: frames(
      { type: 'message_start', message: { ...message, usage: { input_tokens: 5, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: block },
      delta(json.slice(0, half)),
      delta(json.slice(half)),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } },
      { type: 'message_stop' },
    ),
  }
}

function chatWhole(name: string, json: string): Canned {
  const call = { id: 'call_1', type: 'function', function: { name, arguments: json } }
  const message = { role: 'assistant', content: null, tool_calls: [call] }
  const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
  const head = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
  return { type: 'application/json', chunks: [JSON.stringify({ ...head, choices, usage })] }
}

function chatStream(name: string, json: string): Canned {
  const chunk = (members: JsonObject): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...members })}\n\n`
  const delta = (call: JsonObject): JsonObject => ({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null }],
  })
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }
  return {
    type: 'text/event-stream',
    chunks: [
      chunk(delta({ id: 'call_1', type: 'function', function: { name, arguments: '' } })),
      chunk(delta({ function: { arguments: json } })),
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
      chunk({ choices: [], usage }),
      'data: [DONE]\n\n',
    ],
  }
}

const MODELS = ['chat-model', 'claude-haiku-4-5', 'gemini-2.5-flash']

interface Scene {
  readonly gateway: TestGateway
  readonly upstream: RawUpstream
  script: Scripted
}

async function startScene(t: Test): Promise<Scene> {
  const scene = { script: { name: '', json: '{}' } }
  const upstream = await startRawUpstream(t, ({ url, body }) =>
    replyTo(url, objectOf(JSON.parse(body.toString())), scene.script),
  )
  const { origin } = upstream
  const gateway = await startGateway(t, {
    upstreams: { anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
    cloud: `dialect: openai-chat, base_url: ${origin}/v1, api_key: emulated`,
    routes: '  - { model: chat-model, upstream: cloud }',
  })
  return Object.assign(scene, { gateway, upstream })
}

async function ask({ gateway }: Scene, body: JsonObject): Promise<{ status: number; text: string }> {
  const response = await fetch(`${gateway.origin}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ store: false, max_output_tokens: 500, ...body }),
  })
  return { status: response.status, text: await response.text() }
}

/** Each object with a member `name` in the request that the upstream has received, by that name. */
function toolsOf(upstream: RawUpstream): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit)
    else if (typeof value === 'object' && value !== null) {
      const object = objectOf(value)
      const { name } = object
      if (typeof name === 'string') found.set(name, object)
      for (const key of ['function', 'functionDeclarations']) visit(object[key])
    }
  }
  visit(bodyOf(upstream)['tools'])
  return found
}

function bodyOf(upstream: RawUpstream): JsonObject {
  return objectOf(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? 'null'))
}

const SEARCH: JsonObject = {
  type: 'tool_search',
  execution: 'client',
  description: 'Looks for tools of connected apps.',
  parameters: { type: 'object', properties: { query: { type: 'string' }, limit: { type: 'integer' } } },
}

const EXEC = { type: 'exec', command: ['ls', '-l'], env: {}, working_directory: '/srv' }
const LINES = { commands: ['ls', 'pwd'], timeout_ms: 500, max_output_length: null }
const UPDATE = { type: 'update_file', path: 'a.txt', diff: '@@\n-a\n+b\n' }
const QUERY = { query: 'calendar', limit: 3 }

/** A tool, the arguments of a call, and the members of the item for the client. */
const CALLS: readonly {
  readonly tool: JsonObject
  readonly args: JsonObject
  readonly item: JsonObject
}[] = [
  {
    tool: { type: 'local_shell' },
    args: { command: ['ls', '-l'], working_directory: '/srv' },
    item: { type: 'local_shell_call', action: EXEC },
  },
  {
    tool: { type: 'shell' },
    args: { commands: ['ls', 'pwd'], timeout_ms: 500 },
    item: { type: 'shell_call', action: LINES, environment: { type: 'local' } },
  },
  {
    tool: { type: 'apply_patch' },
    args: UPDATE,
    item: { type: 'apply_patch_call', operation: UPDATE },
  },
  { tool: SEARCH, args: QUERY, item: { type: 'tool_search_call', execution: 'client', arguments: QUERY } },
]

void t.test('calls become items of their types, whole and streamed', async (t) => {
  const scene = await startScene(t)
  for (const { tool, args, item } of CALLS) {
    const name = typeOf(tool)
    scene.script = { name, json: JSON.stringify(args) }
    for (const model of MODELS) {
      const title = `${name} of ${model}`
      const whole = await ask(scene, { model, input: 'Go', tools: [tool] })
      t.equal(whole.status, 200, whole.text)
      const offered = toolsOf(scene.upstream).get(name)
      t.ok(offered, `${title} is offered`)
      t.match(JSON.stringify(offered), new RegExp(Object.keys(args)[0] ?? ''), 'with its schema')
      const output = arrayOf(objectOf(JSON.parse(whole.text))['output']).map(objectOf)
      t.match(output.at(-1), { ...item, status: 'completed' }, title)
      t.match(output.at(-1), { id: /^(?:apc|lsh|sh|tsc)_/, call_id: /./ })
      const streamed = await ask(scene, { model, input: 'Go', tools: [tool], stream: true })
      const events = eventsIn(streamed.text)
      const done = events.filter(({ type }) => type === 'response.output_item.done').at(-1)
      t.match(done, { item: { ...item, status: 'completed' } }, `${title}, streamed`)
      const added = events.filter(({ type }) => type === 'response.output_item.added').at(-1)
      t.match(added, { item: { ...item, status: 'in_progress' }, output_index: done?.['output_index'] })
      t.equal(objectOf(added?.['item'])['id'], objectOf(done?.['item'])['id'])
      const end = objectOf(events.at(-1)?.['response'])
      t.same(arrayOf(end['output']).at(-1), done?.['item'], 'the last event repeats the item')
      const numbers = events.map(({ sequence_number: number }) => number)
      t.same(numbers, [...numbers.keys()], 'the events are numbered')
      t.equal(events.at(-1)?.['type'], 'response.completed')
    }
  }
})

function eventsIn(text: string): JsonObject[] {
  return text
    .split('\n\n')
    .flatMap((frame) => /^data: (.*)$/m.exec(frame)?.[1] ?? [])
    .map((data) => objectOf(JSON.parse(data)))
}

void t.test(
  'arguments that do not fit the type are a call of a function, which the client refuses',
  async (t) => {
    const scene = await startScene(t)
    const unfit: readonly (readonly [JsonObject, JsonObject])[] = [
      [{ type: 'apply_patch' }, { type: 'rename_file', path: 'a' }],
      [{ type: 'apply_patch' }, { type: 'create_file', path: 'a' }],
      [{ type: 'local_shell' }, { command: [] }],
      [{ type: 'shell' }, { commands: [1] }],
    ]
    for (const [tool, args] of unfit) {
      scene.script = { name: typeOf(tool), json: JSON.stringify(args) }
      const expected = { type: 'function_call', name: tool['type'], arguments: scene.script.json }
      const whole = await ask(scene, { model: 'chat-model', input: 'Go', tools: [tool] })
      t.match(objectOf(JSON.parse(whole.text)), { output: [expected] })
      const streamed = await ask(scene, { model: 'chat-model', input: 'Go', tools: [tool], stream: true })
      t.match(objectOf(eventsIn(streamed.text).at(-1)?.['response']), { output: [expected] })
    }
    scene.script = { name: 'local_shell', json: '{"command":"ls | wc"}' }
    const text = await ask(scene, { model: 'chat-model', input: 'Go', tools: [{ type: 'local_shell' }] })
    const command = ['bash', '-lc', 'ls | wc']
    t.match(objectOf(JSON.parse(text.text)), { output: [{ type: 'local_shell_call', action: { command } }] })
  },
)

/** A call, its result, and what the model must read of both. */
const TURNS: readonly (readonly [call: JsonObject, result: JsonObject, words: RegExp[]])[] = [
  [
    { type: 'local_shell_call', id: 'lsh_1', call_id: 'c1', status: 'completed', action: EXEC },
    { type: 'function_call_output', call_id: 'c1', output: 'total 7' },
    [/\/srv/, /total 7/],
  ],
  [
    { type: 'local_shell_call', id: 'lsh_1', call_id: 'c1', status: 'completed', action: EXEC },
    { type: 'local_shell_call_output', id: 'c1', output: 'total 8', status: 'completed' },
    [/\/srv/, /total 8/],
  ],
  [
    { type: 'local_shell_call', id: 'lsh_1', call_id: 'c1', status: 'completed', action: EXEC },
    { type: 'local_shell_call_output', id: 'lsh_1', output: 'total 9', status: 'completed' },
    [/\/srv/, /total 9/],
  ],
  [
    { type: 'shell_call', call_id: 'c1', status: 'completed', action: LINES },
    {
      type: 'shell_call_output',
      call_id: 'c1',
      output: [
        { stdout: 'a.txt', stderr: 'no b.txt', outcome: { type: 'exit', exit_code: 2 } },
        { stdout: '', stderr: '', outcome: { type: 'timeout' } },
      ],
    },
    [/pwd/, /a\.txt/, /no b\.txt/, /exit code 2/, /timed out/],
  ],
  [
    { type: 'apply_patch_call', call_id: 'c1', status: 'completed', operation: UPDATE },
    { type: 'apply_patch_call_output', call_id: 'c1', status: 'failed', output: 'no such line' },
    [/update_file/, /a\.txt/, /failed: no such line/],
  ],
  [
    { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: QUERY },
    { type: 'function_call_output', call_id: 'c1', output: 'nothing fits' },
    [/calendar/, /nothing fits/],
  ],
]

void t.test('calls and results that are sent back reach the model', async (t) => {
  const scene = await startScene(t)
  const tools = [...CALLS.map(({ tool }) => tool), { type: 'function', name: 'stop', parameters: {} }]
  scene.script = { name: 'stop', json: '{}' }
  for (const [call, result, words] of TURNS) {
    for (const model of MODELS) {
      const body = { model, tools, input: [{ role: 'user', content: 'Go' }, call, result] }
      const { status, text } = await ask(scene, body)
      t.equal(status, 200, text)
      const { tools: offered, ...sent } = bodyOf(scene.upstream)
      t.ok(offered)
      for (const word of words) t.match(JSON.stringify(sent), word, `${typeOf(call)} to ${model}`)
    }
  }
})

void t.test('tools that a search has found are offered, once', async (t) => {
  const scene = await startScene(t)
  scene.script = { name: 'mcp__diary__add', json: '{"day":1}' }
  const known = { type: 'function', name: 'known', parameters: {} }
  const add = { type: 'function', name: 'add', parameters: { type: 'object', properties: {} } }
  const found = [{ type: 'namespace', name: 'mcp__diary', description: 'A diary', tools: [add] }, known]
  const input = [
    { role: 'user', content: 'Go' },
    { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: QUERY },
    { type: 'tool_search_output', call_id: 'c1', execution: 'client', status: 'completed', tools: found },
    { type: 'additional_tools', role: 'developer', tools: [{ ...add, name: 'more' }] },
    { role: 'user', content: 'Go on' },
  ]
  for (const model of MODELS) {
    const { status, text } = await ask(scene, { model, input, tools: [SEARCH, known] })
    t.equal(status, 200, text)
    t.same([...toolsOf(scene.upstream).keys()], ['tool_search', 'known', 'mcp__diary__add', 'more'], model)
    const { tools, ...sent } = bodyOf(scene.upstream)
    t.ok(tools)
    t.match(JSON.stringify(sent), /Tools found: mcp__diary__add, known/)
    const output = arrayOf(objectOf(JSON.parse(text))['output']).map(objectOf)
    t.match(output.at(-1), { type: 'function_call', namespace: 'mcp__diary', name: 'add' })
  }
})

void t.test('a function of the same name stays apart, and a choice names the tool by its type', async (t) => {
  const scene = await startScene(t)
  const shell = { type: 'function', name: 'shell', parameters: { type: 'object', properties: {} } }
  const tools = [{ type: 'shell' }, shell]
  const ordinary = { model: 'chat-model', input: 'Go', tools, tool_choice: { type: 'shell' } }
  scene.script = { name: 'shell', json: '{}' }
  const one = await ask(scene, ordinary)
  t.match(objectOf(JSON.parse(one.text)), { output: [{ type: 'function_call', name: 'shell' }] }, one.text)
  const { tool_choice: choice } = bodyOf(scene.upstream)
  t.same(choice, { type: 'function', function: { name: 'shell_tool' } })
  scene.script = { name: 'shell_tool', json: '{"commands":["ls"]}' }
  const other = await ask(scene, ordinary)
  t.match(objectOf(JSON.parse(other.text)), { output: [{ type: 'shell_call' }] }, other.text)
})

void t.test('what the provider runs stays with the provider', async (t) => {
  const scene = await startScene(t)
  scene.script = { name: 'stop', json: '{}' }
  const stop = { type: 'function', name: 'stop', parameters: {} }
  const hosted = { type: 'tool_search' }
  const items = [
    { role: 'user', content: 'Go' },
    { type: 'computer_call', id: 'cu_1', call_id: 'c1', status: 'completed', action: { type: 'wait' } },
    { type: 'function_call_output', call_id: 'c1', output: 'done' },
    { role: 'user', content: 'Go on' },
  ]
  const { status, text } = await ask(scene, { model: 'chat-model', input: items, tools: [hosted, stop] })
  t.equal(status, 200, text)
  t.same([...toolsOf(scene.upstream).keys()], ['stop'])
})
