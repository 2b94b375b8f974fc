/**
 * Goal: the schemas of tools reach each vendor in a form that it takes, what is lost is reported, and calls
 * have the client's names of properties.
 * Method: requests of a chat client through upstreams of each format, to a server that records requests and
 * answers with calls.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type Canned } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, json, MESSAGE, usualReply } from '../platforms/capture.js'

const BEDROCK = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
/** Upstreams and models by name. */
const UPSTREAMS: Readonly<Record<string, readonly [settings: string, model: string]>> = {
  chat: ['dialect: openai-chat, api_key: k', 'm'],
  responses: ['dialect: openai-responses, api_key: k', 'm'],
  anthropic: ['dialect: anthropic, api_key: k', 'claude-haiku-4-5'],
  gemini: ['dialect: gemini, api_key: k', 'gemini-2.5-flash'],
  claude: [BEDROCK, 'anthropic.claude-haiku-4-5-20251001-v1:0'],
  nova: [BEDROCK, 'us.amazon.nova-2-lite-v1:0'],
}

const upstream = await startRawUpstream(t, usualReply)
const gateway = await startGateway(t)
const names = Object.keys(UPSTREAMS)
const lines = Object.entries(UPSTREAMS).map(
  ([name, [settings]]) => `  t-${name}: { base_url: "${upstream.origin}", ${settings} }\n`,
)
const routes = Object.entries(UPSTREAMS).map(
  ([name, [, model]]) => `  - { model: to-${name}, targets: [{ upstream: t-${name}, model: "${model}" }] }\n`,
)
gateway.add(lines.join(''), routes.join(''))

interface Outcome {
  readonly lost: string
  readonly reply: JsonObject
  readonly sent: JsonObject
  /** The schema of the first tool as the upstream got it. */
  readonly schema: JsonObject
}

async function send(
  name: string,
  parameters: JsonObject,
  messages: JsonValue[] = [],
  more: JsonObject = {},
): Promise<Outcome> {
  const response = await fetch(`${gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: `to-${name}`, max_tokens: 99, ...bodyOf(parameters, messages), ...more }),
  })
  const reply = objectOf(JSON.parse(await response.text()) as JsonValue)
  t.equal(response.status, 200, `${name} ${JSON.stringify(reply)}`)
  const sent = objectOf(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '{}') as JsonValue)
  return { lost: response.headers.get('x-sluice-lost') ?? '', reply, sent, schema: schemaIn(sent) }
}

function bodyOf(parameters: JsonObject, messages: JsonValue[]): JsonObject {
  const tools = [{ name: 'find', input_schema: parameters }]
  return { tools, messages: [{ role: 'user', content: 'Hi' }, ...messages] }
}

function schemaIn(sent: JsonObject): JsonObject {
  const first = (list: JsonValue | undefined): JsonObject => objectOf(arrayOf(list)[0])
  const tool = first(sent['tools'] ?? objectOf(sent['toolConfig'])['tools'])
  const declared = first(tool['functionDeclarations'])
  const spec = objectOf(tool['toolSpec'])
  return objectOf(
    objectOf(tool['function'])['parameters'] ??
      tool['parameters'] ??
      tool['input_schema'] ??
      declared['parametersJsonSchema'] ??
      objectOf(spec['inputSchema'])['json'],
  )
}

const TEXT = { type: 'string' }

void t.test('tools that Anthropic defines and the client runs are functions elsewhere', async (t) => {
  const tools = [
    { type: 'bash_20250124', name: 'bash', cache_control: { type: 'ephemeral' } },
    { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9 },
    { type: 'text_editor_20250124', name: 'str_replace_editor' },
    { type: 'memory_20250818', name: 'memory' },
  ]
  const turns = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'bash', input: { command: 'ls' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'a.txt' }] },
  ]
  for (const name of names) {
    const more = { tools, tool_choice: { type: 'tool', name: 'bash' } }
    const { lost, sent } = await send(name, {}, turns, more)
    const all = JSON.stringify(sent)
    for (const tool of tools) t.match(all, `"name":"${tool.name}"`, name)
    t.match(all, 'a.txt')
    if (name === 'anthropic') {
      t.same([sent['tools'], lost], [tools, ''])
      continue
    }
    t.match(schemaIn(sent), { type: 'object', properties: { command: TEXT, restart: { type: 'boolean' } } })
    for (const word of ['undo_edit', 'insert_text', 'old_path', 'view_range']) t.match(all, `"${word}"`, name)
    t.match(lost, 'tools.max_characters')
    t.notMatch(lost, /bash|editor|memory/)
  }
})

void t.test(
  'a tool is strict for OpenAI only if each object is closed, also one without a type',
  async (t) => {
    const open: JsonObject[] = [
      { properties: { a: TEXT } },
      { type: ['object', 'null'], properties: { a: TEXT } },
      { type: 'object', properties: { type: { properties: { a: TEXT } } }, required: ['type'] },
    ]
    const closed = {
      type: 'object',
      properties: { properties: TEXT, type: { enum: [{ type: 'object' }] } },
      required: ['properties', 'type'],
      additionalProperties: false,
    }
    for (const schema of [...open, closed]) {
      const tools = [{ name: 'find', strict: true, input_schema: schema }]
      const { lost, sent } = await send('responses', {}, [], { tools })
      const isStrict = objectOf(arrayOf(sent['tools'])[0])['strict']
      t.equal(isStrict, schema === closed, JSON.stringify(schema))
      t.equal(lost.includes('tools.strict'), schema !== closed)
    }
  },
)

void t.test(
  'keywords with a value that they do not have are left out, and reported if they matter',
  async (t) => {
    const parameters = {
      type: 'object',
      properties: { a: { type: 'String' }, b: { type: 'any' }, c: { type: ['STRING', 'null'] }, type: TEXT },
    }
    for (const name of ['chat', 'responses', 'claude']) {
      const { lost, schema } = await send(name, parameters)
      t.same(schema['properties'], { a: TEXT, b: {}, c: { type: ['string', 'null'] }, type: TEXT }, name)
      t.equal(lost, '', name)
      const old = await send(name, { type: 'object', properties: { a: { type: 'string', required: true } } })
      t.same(objectOf(old.schema['properties'])['a'], TEXT, name)
      t.match(old.lost, 'tools.parameters', name)
    }
  },
)

void t.test('variants at the root are merged and reported for vendors that refuse them', async (t) => {
  const variants = ['a', 'b'].map((name) => ({ type: 'object', properties: { [name]: TEXT } }))
  for (const name of names) {
    if (name === 'anthropic') continue
    const { schema, lost } = await send(name, { anyOf: variants })
    if (name === 'gemini') {
      t.match(schema, { anyOf: Array }, name)
      t.equal(lost, '', name)
    } else {
      t.match(schema, { type: 'object', properties: { a: TEXT, b: TEXT }, anyOf: undefined }, name)
      t.match(lost, 'tools.parameters', name)
    }
  }
})

void t.test('Gemini reports what its subset has not, and nothing else', async (t) => {
  const of = (property: JsonObject): JsonObject => ({ type: 'object', properties: { k: property } })
  for (const property of [
    { ...TEXT, pattern: '^a' },
    { ...TEXT, minLength: 1 },
    { ...TEXT, default: 'x' },
    { not: TEXT },
    { type: 'object', patternProperties: { '^a': TEXT } },
    { enum: ['a', true] },
    { $ref: '#/$defs/None' },
  ]) {
    t.match((await send('gemini', of(property))).lost, 'tools.parameters', JSON.stringify(property))
  }
  const kept = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...of({
      anyOf: [{ enum: ['a', 'b'] }, { type: 'array', items: TEXT, minItems: 1 }, { $ref: '#/$defs/T' }],
    }),
    required: ['k'],
    additionalProperties: false,
    $defs: { T: { const: 'c' } },
  }
  t.equal((await send('gemini', kept)).lost, '')
  const tuple = of({ type: 'array', items: [TEXT], additionalItems: false })
  const { schema, lost } = await send('gemini', tuple)
  t.match(schema, { properties: { k: { prefixItems: [TEXT], maxItems: 1 } } })
  t.equal(lost, '')
})

void t.test('Nova takes three keywords at the root, and no references', async (t) => {
  const parameters = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Find',
    type: 'object',
    properties: { a: { $ref: '#/$defs/Number' }, b: { $ref: '#/$defs/Tree' } },
    required: ['a'],
    additionalProperties: false,
    $defs: {
      Number: { type: 'number', minimum: 1 },
      Tree: { type: 'object', properties: { next: { $ref: '#/$defs/Tree' } } },
    },
  }
  const { schema, lost } = await send('nova', parameters)
  t.same(schema, {
    type: 'object',
    properties: { a: { type: 'number', minimum: 1 }, b: { type: 'object', properties: { next: {} } } },
    required: ['a'],
  })
  t.match(lost, 'tools.parameters')
  t.same((await send('claude', parameters)).schema, parameters)
})

void t.test('a schema that the vendor takes is not changed', async (t) => {
  const plain = { type: 'object', properties: { k: TEXT, 'x.y-z_1': { type: 'integer' } }, required: ['k'] }
  for (const name of names) {
    const { schema, lost } = await send(name, plain)
    t.same(schema, plain, name)
    t.equal(lost, '', name)
  }
})

const FOREIGN = '$filter[name]'
const NESTED = {
  type: 'object',
  properties: { [FOREIGN]: { type: 'object', properties: { ['é']: TEXT } }, k: TEXT },
  required: [FOREIGN, 'k'],
}

/** A call with the names of the schema that the upstream got. */
function callOf(path: string, schema: JsonObject): Canned {
  const [outer = ''] = arrayOf(schema['required']).map((name) => stringOf(name) ?? '')
  const inner = Object.keys(objectOf(objectOf(objectOf(schema['properties'])[outer])['properties']))[0] ?? ''
  const input = { [outer]: { [inner]: 'x' }, k: 'y' }
  if (!path.includes('converse')) {
    const content = [{ type: 'tool_use', id: 'toolu_1', name: 'find', input }]
    return json({ ...MESSAGE, content, stop_reason: 'tool_use' })
  }
  const message = { role: 'assistant', content: [{ toolUse: { toolUseId: 't1', name: 'find', input } }] }
  const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
  return json({ output: { message }, stopReason: 'tool_use', usage, metrics: { latencyMs: 1 } })
}

void t.test('names of properties that Claude refuses are changed, and changed back in calls', async (t) => {
  upstream.answer = ({ url, body }) =>
    callOf(url, schemaIn(objectOf(JSON.parse(body.toString()) as JsonValue)))
  t.teardown(() => (upstream.answer = usualReply))
  const input = { [FOREIGN]: { ['é']: 'x' }, k: 'y' }
  for (const name of ['claude', 'nova']) {
    const used = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'find', input }] }
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] }
    const { schema, reply, sent, lost } = await send(name, NESTED, [used, result])
    t.equal(lost, '', name)
    const keys = [schema, objectOf(Object.values(objectOf(schema['properties']))[0])].flatMap((each) =>
      Object.keys(objectOf(each['properties'])),
    )
    t.equal(keys.length, 3)
    for (const key of keys) t.match(key, /^[a-zA-Z0-9_.-]{1,64}$/)
    t.match(arrayOf(reply['content'])[0], { type: 'tool_use', name: 'find', input }, name)
    t.notMatch(JSON.stringify(sent), FOREIGN, 'the calls before have the same names')
  }
})

void t.test('a chat client of Claude gets its own names, whole and streamed', async (t) => {
  const own = await startGateway(t)
  const tools = [{ type: 'function', function: { name: 'find', parameters: NESTED } }]
  const messages = [{ role: 'user', content: 'Call find' }]
  const whole = await own.chat({ model: 'claude-haiku-4-5', tools, tool_choice: 'required', messages })
  t.equal(whole.status, 200, await whole.text())
  const schema = schemaIn(own.emulator.ledger.at(-1)?.body ?? {})
  const wire = stringOf(arrayOf(schema['required'])[0]) ?? ''
  t.not(wire, FOREIGN)
  const parts = ['{"', `${wire}":{},`, '"k":"y"}']
  const deltas = parts.map((partial_json) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json },
  }))
  const block = { type: 'tool_use', id: 'toolu_1', name: 'find', input: {} }
  const events: JsonObject[] = [
    { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas,
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
  own.emulator.replay({
    status: 200,
    response_headers: { 'content-type': 'text/event-stream' },
    response_body: events
      .map((each) => `event: ${stringOf(each['type']) ?? ''}\ndata: ${JSON.stringify(each)}\n\n`)
      .join(''),
  })
  const streamed = await own.chat({ model: 'claude-haiku-4-5', tools, messages, stream: true })
  const chunks = [...(await streamed.text()).matchAll(/^data: (\{.*)$/gm)].map(([, data]) =>
    objectOf(JSON.parse(data ?? '') as JsonValue),
  )
  const calls = chunks.flatMap((chunk) =>
    arrayOf(objectOf(objectOf(arrayOf(chunk['choices'])[0])['delta'])['tool_calls']).map(objectOf),
  )
  const args = calls.map((call) => stringOf(objectOf(call['function'])['arguments']) ?? '').join('')
  t.same(JSON.parse(args), { [FOREIGN]: {}, k: 'y' })
})
