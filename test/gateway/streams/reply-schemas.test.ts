/**
 * Goal: the schema of a reply reaches each vendor in a form that it takes, what is lost is reported, and the
 * reply has the client's names of properties.
 * Method: requests of a chat client through upstreams of each format, to a server that records requests and
 * answers with JSON of the schema that it got.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type Arrived, type Canned } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, json, MESSAGE, usualReply } from '../platforms/capture.js'

const BEDROCK = `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`
/** Upstreams and models by name; `tool` has no structured output, and replies by a call. */
const UPSTREAMS: Readonly<Record<string, readonly [settings: string, model: string]>> = {
  anthropic: ['dialect: anthropic, api_key: k', 'claude-haiku-4-5'],
  tool: ['dialect: anthropic, api_key: k', 'claude-older'],
  gemini: ['dialect: gemini, api_key: k', 'gemini-2.5-flash'],
  claude: [BEDROCK, 'anthropic.claude-haiku-4-5-20251001-v1:0'],
}
const CLAUDE = ['anthropic', 'tool', 'claude']

const upstream = await startRawUpstream(t, usualReply)
const gateway = await startGateway(t)
const lines = Object.entries(UPSTREAMS).map(
  ([name, [settings]]) => `  t-${name}: { base_url: "${upstream.origin}", ${settings} }\n`,
)
const routes = Object.entries(UPSTREAMS).map(
  ([name, [, model]]) => `  - { model: to-${name}, targets: [{ upstream: t-${name}, model: "${model}" }] }\n`,
)
const text = readFileSync(gateway.configFile, 'utf8')
writeFileSync(gateway.configFile, text.replace('routes:\n', `${lines.join('')}routes:\n${routes.join('')}`))
const models = `${gateway.folder}/models.yaml`
const OLDER =
  '  - { id: claude-older, family: anthropic, structured_output: false, forced_tool_choice: true }\n'
writeFileSync(models, `${readFileSync(models, 'utf8')}${OLDER}`)
gateway.reload()

interface Outcome {
  readonly status: number
  readonly lost: string
  /** The text of the reply, and the number of its fragments. */
  readonly text: string
  readonly deltas: number
  /** The schema as the upstream got it. */
  readonly schema: JsonObject
}

async function send(name: string, schema: JsonObject, stream = false): Promise<Outcome> {
  const response = await gateway.chat({
    model: `to-${name}`,
    stream,
    messages: [{ role: 'user', content: 'Hi' }],
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
  })
  const body = await response.text()
  const frames = stream ? [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data ?? '') : [body]
  const parts = frames.flatMap((frame) => {
    const choice = objectOf(arrayOf(objectOf(JSON.parse(frame) as JsonValue)['choices'])[0])
    return stringOf(objectOf(choice['delta'] ?? choice['message'])['content']) ?? []
  })
  return {
    status: response.status,
    lost: response.headers.get('x-sluice-lost') ?? '',
    text: parts.join(''),
    deltas: parts.filter((part) => part !== '').length,
    schema: schemaIn(parsed(upstream.requests.at(-1))),
  }
}

function parsed(request: Arrived | undefined): JsonObject {
  return objectOf(JSON.parse(request?.body.toString() ?? '{}') as JsonValue)
}

function schemaIn(sent: JsonObject): JsonObject {
  const native = objectOf(objectOf(sent['output_config'])['format'])['schema']
  const config = objectOf(sent['generationConfig'])['responseJsonSchema']
  const structure = objectOf(objectOf(objectOf(sent['outputConfig'])['textFormat'])['structure'])
  const converse = stringOf(objectOf(structure['jsonSchema'])['schema'])
  const tool = objectOf(arrayOf(sent['tools']).at(-1))['input_schema']
  return objectOf(native ?? config ?? (converse === undefined ? tool : (JSON.parse(converse) as JsonValue)))
}

const TEXT = { type: 'string' }
const closed = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

void t.test('what a vendor cannot enforce is reported, and nothing else', async (t) => {
  const lossy: readonly JsonObject[] = [
    closed({ k: { ...TEXT, pattern: '^a' } }),
    closed({ k: { ...TEXT, minLength: 2 } }),
    closed({ k: { oneOf: [TEXT, { type: 'integer' }] } }),
    closed({ k: { type: 'number', multipleOf: 0.5 } }),
  ]
  for (const name of ['anthropic', 'claude', 'gemini']) {
    for (const schema of lossy) {
      const { status, lost } = await send(name, schema)
      t.equal(status, 200, name)
      t.match(lost, 'response_format', `${name} ${JSON.stringify(schema)}`)
    }
    const kept = closed({ k: { anyOf: [TEXT, { enum: ['a', 'b'] }] }, n: { type: 'integer' } })
    const { schema, lost } = await send(name, kept)
    t.same(schema, kept, name)
    t.equal(lost, '', name)
  }
})

void t.test('earlier drafts become the current one, and variants at the root are merged', async (t) => {
  const tuple = closed({ k: { type: 'array', items: [TEXT, TEXT], additionalItems: false } })
  const bound = closed({ k: { type: 'integer', minimum: 1, exclusiveMinimum: true } })
  for (const name of Object.keys(UPSTREAMS)) {
    t.match((await send(name, tuple)).schema, { properties: { k: { prefixItems: [TEXT, TEXT] } } }, name)
    t.notMatch(JSON.stringify((await send(name, bound)).schema), 'true', name)
  }
  const variants = { anyOf: [closed({ a: TEXT }), closed({ b: TEXT })] }
  for (const name of CLAUDE) {
    const { schema, lost } = await send(name, variants)
    t.match(schema, { type: 'object', properties: { a: TEXT, b: TEXT }, anyOf: undefined }, name)
    t.match(lost, 'response_format', name)
  }
})

const FOREIGN = '$filter[name]'
const NESTED = closed({ [FOREIGN]: closed({ ['é']: TEXT }), k: TEXT })
const ANSWER = { [FOREIGN]: { ['é']: 'x' }, k: 'y' }

/** JSON with the names of the schema that the upstream got. */
function answerTo({ url, body }: Arrived): Canned {
  const sent = objectOf(JSON.parse(body.toString()) as JsonValue)
  const schema = schemaIn(sent)
  const [outer = ''] = arrayOf(schema['required']).map((name) => stringOf(name) ?? '')
  const [inner = ''] = Object.keys(objectOf(objectOf(objectOf(schema['properties'])[outer])['properties']))
  const input = { [outer]: { [inner]: 'x' }, k: 'y' }
  const text = JSON.stringify(input)
  if (url.includes('converse')) {
    const message = { role: 'assistant', content: [{ text }] }
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
    return json({ output: { message }, stopReason: 'end_turn', usage, metrics: { latencyMs: 1 } })
  }
  const call = { type: 'tool_use', id: 'toolu_1', name: 'json_response', input }
  const isCall = sent['tools'] !== undefined
  if (sent['stream'] === true) return streamed(isCall, text)
  const content = [isCall ? call : { type: 'text', text }]
  return json({ ...MESSAGE, content, stop_reason: isCall ? 'tool_use' : 'end_turn' })
}

function streamed(isCall: boolean, text: string): Canned {
  const block = isCall
    ? { type: 'tool_use', id: 'toolu_1', name: 'json_response', input: {} }
    : { type: 'text', text: '' }
  const deltas = text.split('').map((part) => ({
    type: 'content_block_delta',
    index: 0,
    delta: isCall ? { type: 'input_json_delta', partial_json: part } : { type: 'text_delta', text: part },
  }))
  const stop_reason = isCall ? 'tool_use' : 'end_turn'
  const events: readonly (JsonObject & { type: string })[] = [
    { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas,
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
  const frames = events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`)
  return { type: 'text/event-stream', chunks: [frames.join('')] }
}

void t.test(
  'names that Claude refuses are changed in the schema, and changed back in the reply',
  async (t) => {
    upstream.answer = answerTo
    t.teardown(() => (upstream.answer = usualReply))
    for (const name of CLAUDE) {
      for (const stream of name === 'claude' ? [false] : [false, true]) {
        const { status, schema, text, lost } = await send(name, NESTED, stream)
        t.equal(status, 200, name)
        t.equal(lost, '', name)
        const inner = objectOf(Object.values(objectOf(schema['properties']))[0])
        const keys = [schema, inner].flatMap((each) => Object.keys(objectOf(each['properties'])))
        t.equal(keys.length, 3)
        for (const key of keys) t.match(key, /^[a-zA-Z0-9_.-]{1,64}$/)
        t.same(JSON.parse(text), ANSWER, `${name} ${String(stream)}`)
      }
    }
    const plain = closed({ a: closed({ b: TEXT }), k: TEXT })
    t.ok((await send('anthropic', plain, true)).deltas > 5, 'other replies stream')
  },
)
