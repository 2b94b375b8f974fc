/**
 * Goal: a client's own body reaches an upstream of the same format unchanged, except for fields that the
 * upstream's model refuses; removed fields are reported.
 * Method: hand-written bodies and facts; the edited bytes and the reported losses are compared.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { Losses } from '../../../../src/formats/dialect.js'
import { GatewayError } from '../../../../src/errors.js'
import { parseObject } from '../../../../src/formats/wire/json/parse-body.js'
import { splice } from '../../../../src/formats/wire/json/splice.js'
import { upstreamCodec, refusalOf } from '../driver.js'

/** A model without facts, as of any other vendor. */
const FACTS: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0 }
/** A model of OpenAI. */
const OWN: ModelFacts = { ...FACTS, endpoints: ['chat'], reasoning: false }
const REASONS: ModelFacts = {
  ...OWN,
  reasoning: true,
  reasoningEfforts: ['none', 'low', 'medium', 'high'],
  samplingParams: 'effort-none-only',
}

/** The body that the upstream receives, and the losses. */
function passed(body: JsonObject, facts: ModelFacts): { text: string; lost: string[] } {
  const bytes = Buffer.from(JSON.stringify({ model: 'm', ...body }))
  const lost: string[] = []
  const { value, members } = parseObject(bytes)
  const losses: Losses = { drop: (path, why) => void lost.push(`${path} ${why}`) }
  const edits = upstreamCodec.edits(value, 'm', { model: facts, losses })
  return { text: splice(bytes, members, edits).toString(), lost }
}

function sent(body: JsonObject, facts: ModelFacts): unknown[] {
  const { text, lost } = passed(body, facts)
  const { model, ...rest } = JSON.parse(text) as JsonObject
  return model === 'm' ? [rest, lost] : ['another model']
}

const edited = (body: JsonObject, model = 'm'): unknown =>
  upstreamCodec.edits(body, model, {
    model: FACTS,
    losses: {
      drop: (path) => {
        throw new Error(path)
      },
    },
  })

void t.test('a plain body is not changed for any model', (t) => {
  const body: JsonObject = {
    model: 'm',
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: [{ type: 'text', text: 'T' }] },
      { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'a', content: '' },
    ],
    tools: [{ type: 'function', function: { name: 'f', strict: true } }],
    temperature: 1,
    some_new_field: { a: 1 },
  }
  const losses = { drop: (): void => undefined }
  t.same(upstreamCodec.edits(body, 'm', { model: FACTS, losses }), [])
  t.same(upstreamCodec.edits(body, 'm', { model: OWN, losses }), [])
  t.end()
})

void t.test("the model gets the upstream's name, and cache markers of other vendors are removed", (t) => {
  t.same(edited({ model: 'a' }), [{ key: 'model', json: '"m"' }])
  const marked = { model: 'm', cache_control: { type: 'ephemeral' } }
  t.same(edited(marked), [{ key: 'cache_control', json: null }])
  t.end()
})

void t.test('stream_options: usage is requested, other members stay', (t) => {
  const usage = { key: 'stream_options', json: '{"include_usage":true}' }
  t.same(edited({ model: 'm', stream: true }), [usage])
  t.same(edited({ model: 'm', stream: true, stream_options: { include_usage: true } }), [])
  const kept = { include_obfuscation: false, include_usage: false }
  t.same(edited({ model: 'm', stream: true, stream_options: kept }), [
    { key: 'stream_options', json: '{"include_obfuscation":false,"include_usage":true}' },
  ])
  t.same(sent({ stream: true, stream_options: null }, FACTS), [
    { stream: true, stream_options: { include_usage: true } },
    [],
  ])
  t.end()
})

void t.test('null members are removed', (t) => {
  const { text } = passed({ stop: null, seed: 1, tools: null, user: null }, FACTS)
  t.equal(text, '{"model":"m","seed":1}')
  t.end()
})

void t.test('max_tokens: a reasoning model gets max_completion_tokens', (t) => {
  const reasons = { ...FACTS, reasoning: true }
  t.same(sent({ max_tokens: 5 }, reasons), [{ max_completion_tokens: 5 }, []])
  const both = { max_tokens: 5, max_completion_tokens: 7 }
  t.same(sent(both, reasons), [{ max_completion_tokens: 7 }, []])
  t.same(sent({ max_tokens: null }, reasons), [{}, []])
  t.same(sent({ max_tokens: 5 }, FACTS), [{ max_tokens: 5 }, []])
  t.same(sent({ max_tokens: 5 }, { ...reasons, family: 'google' }), [{ max_tokens: 5 }, []])
  t.end()
})

void t.test('sampling: fields that a reasoning model refuses are dropped and reported', (t) => {
  const sampling: JsonObject = {
    temperature: 0.5,
    top_p: 0.9,
    logprobs: true,
    top_logprobs: 2,
    frequency_penalty: 1,
    presence_penalty: -1,
    logit_bias: { '5': 1 },
  }
  const names = [
    'temperature',
    'top_p',
    'logprobs',
    'frequency_penalty',
    'presence_penalty',
    'logit_bias',
    'top_logprobs',
  ]
  const lost = (list: string[]): string[] => list.map((name) => `${name} no-equivalent`)
  t.same(sent(sampling, REASONS), [{}, lost(names)])
  const { temperature, top_p, logprobs } = sampling
  const free: JsonObject = { temperature, top_p, logprobs, reasoning_effort: 'none' }
  t.same(sent({ ...sampling, reasoning_effort: 'none' }, REASONS), [free, lost(names.slice(3))])
  const never: ModelFacts = { ...REASONS, samplingParams: 'never' }
  t.same(sent({ temperature: 0, reasoning_effort: 'none' }, never), [
    { reasoning_effort: 'none' },
    ['temperature no-equivalent'],
  ])
  t.same(sent(sampling, { ...OWN, samplingParams: 'always' }), [sampling, []])
  t.same(
    sent(sampling, { ...FACTS, reasoning: true }),
    [sampling, []],
    'a model of another vendor is not edited',
  )
  t.end()
})

void t.test('sampling: a default value is dropped without a loss', (t) => {
  const plain: JsonObject = {
    temperature: 1,
    top_p: 1,
    logprobs: false,
    top_logprobs: 0,
    frequency_penalty: 0,
    presence_penalty: 0,
    logit_bias: {},
  }
  t.same(sent(plain, REASONS), [{}, []])
  t.end()
})

void t.test('reasoning_effort: the supported effort, the nearest lower one, or none', (t) => {
  const effort = (value: string, facts = REASONS): unknown[] => sent({ reasoning_effort: value }, facts)
  t.same(effort('high'), [{ reasoning_effort: 'high' }, []])
  t.same(effort('max'), [{ reasoning_effort: 'high' }, ['reasoning_effort approximated']])
  t.same(effort('minimal'), [{ reasoning_effort: 'none' }, ['reasoning_effort approximated']])
  const o3: ModelFacts = { ...REASONS, reasoningEfforts: ['low', 'medium'] }
  t.same(effort('none', o3), [{ reasoning_effort: 'low' }, ['reasoning_effort approximated']])
  t.same(effort('high', OWN), [{}, ['reasoning_effort no-equivalent']])
  t.same(effort('none', OWN), [{}, []])
  t.same(effort('max', FACTS), [{ reasoning_effort: 'max' }, []], 'a model of another vendor is not edited')
  t.end()
})

void t.test('a reasoning object becomes the flat field, because the endpoint refuses the object', (t) => {
  const flat = { reasoning_effort: 'low' }
  t.same(sent({ reasoning: { effort: 'low' } }, REASONS), [flat, []])
  t.same(sent({ reasoning: { effort: 'high' }, ...flat }, REASONS), [flat, []])
  const more = { reasoning: { effort: 'low', summary: 'auto' } }
  t.same(sent(more, REASONS), [flat, ['reasoning no-equivalent']])
  t.same(sent(more, FACTS), [more, []], 'OpenRouter accepts the object')
  t.end()
})

void t.test('vendor fields of other formats do not reach OpenAI', (t) => {
  const foreign = { thinking: { type: 'adaptive' }, extra_body: {}, extra_content: { google: {} } }
  t.same(sent(foreign, OWN), [
    {},
    ['thinking no-equivalent', 'extra_body no-equivalent', 'extra_content no-equivalent'],
  ])
  t.same(sent(foreign, FACTS), [foreign, []])
  t.end()
})

void t.test('tools on a model that cannot reason and call tools in one request', (t) => {
  const facts: ModelFacts = { ...REASONS, chatToolsWithReasoning: false }
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const off = [{ tools, reasoning_effort: 'none' }, ['reasoning_effort approximated']]
  t.same(sent({ tools }, facts), off)
  t.same(sent({ tools, reasoning_effort: 'none' }, facts), [off[0], []])
  const functions = [{ name: 'f' }]
  t.match(sent({ functions }, facts), [{ functions, reasoning_effort: 'none' }])
  t.same(sent({ tools: [] }, facts), [{ tools: [] }, []])
  const refused = { kind: 'untranslatable', param: 'tools' }
  const body = { tools, reasoning_effort: 'high' }
  t.match(
    refusalOf(() => passed(body, facts)),
    refused,
  )
  const always: ModelFacts = { ...facts, reasoningEfforts: ['low', 'high'] }
  t.match(
    refusalOf(() => passed({ tools }, always)),
    refused,
  )
  t.end()
})

void t.test('stop is refused for a model without stop sequences', (t) => {
  const o3: ModelFacts = { ...REASONS, stop: false }
  t.throws(() => passed({ stop: ['x'] }, o3), GatewayError)
  t.match(
    refusalOf(() => passed({ stop: 'x' }, o3)),
    { kind: 'untranslatable', param: 'stop' },
  )
  for (const stop of [[], '', ['', '']]) t.same(sent({ stop }, o3), [{}, []], 'an empty stop')
  t.same(sent({ stop: 'x' }, REASONS), [{ stop: 'x' }, []])
  t.end()
})

void t.test('prompt_cache_retention is sent only to models that accept it', (t) => {
  const body = { prompt_cache_retention: '24h', prompt_cache_key: 'k' }
  t.same(sent(body, { ...REASONS, promptCacheRetention: false }), [{ prompt_cache_key: 'k' }, []])
  t.same(sent(body, REASONS), [body, []])
  t.end()
})

void t.test('prompt_cache_options and breakpoints are sent only to models that accept them', (t) => {
  const text = { type: 'text', text: 'T' }
  const marked = { ...text, prompt_cache_breakpoint: { mode: 'explicit' } }
  const actual = (part: JsonObject): JsonObject => ({
    messages: [{ role: 'user', content: [part] }],
  })
  const body = { ...actual(marked), prompt_cache_options: { mode: 'implicit' } }
  t.same(sent(body, { ...REASONS, promptCacheBreakpoints: true }), [body, []])
  t.same(sent(body, REASONS), [actual(text), []])
  t.same(sent(body, FACTS), [body, []], 'a model of another vendor is not edited')
  t.end()
})

const LONG = `toolu_${'x'.repeat(60)}`

void t.test('a conversation that began with another provider loses cache markers and long ids', (t) => {
  const call = { id: LONG, type: 'function', function: { name: 'f', arguments: '{"n":1e400}' } }
  const messages = [
    { role: 'system', content: 'S', cache_control: { type: 'ephemeral' } },
    {
      role: 'user',
      content: [{ type: 'text', text: 'T', cache_control: { type: 'ephemeral' } }],
    },
    {
      role: 'assistant',
      content: 'A',
      reasoning_content: 'hm',
      reasoning_details: [{ type: 'reasoning.text' }],
      thinking_blocks: [],
      tool_calls: [{ ...call, extra_content: { google: { thought_signature: 's' } } }],
    },
    { role: 'tool', tool_call_id: LONG, content: 'R' },
    { role: 'user', content: 'U' },
  ]
  const [body, lost] = sent({ messages }, OWN)
  t.same(lost, ['messages.reasoning no-equivalent'], 'the loss is reported')
  t.match(body, {
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: [{ type: 'text', text: 'T' }] },
      { role: 'assistant', content: 'A' },
      { role: 'tool', tool_call_id: /^toolu_x{25}_[0-9a-f]{8}$/, content: 'R' },
      { role: 'user', content: 'U' },
    ],
  })
  const text = JSON.stringify(body)
  t.notMatch(text, /cache_control|reasoning|thinking|extra_content/)
  t.equal(text.split(LONG).length, 1, 'call and result get a shorter id')
  const ids = [...text.matchAll(/"(?:tool_call_)?id":"([^"]+)"/g)].map((it) => it[1])
  t.equal(ids.length, 2)
  t.equal(ids[0], ids[1], 'call and result have the same id')
  t.match(text, String.raw`{\"n\":1e400}`, 'arguments keep their text')
  t.same(sent({ messages }, FACTS), [{ messages }, []], 'a model of another vendor receives all members')
  t.end()
})

void t.test('thinking parts are removed, and the message remains', (t) => {
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }
  const output = (content: JsonObject[]): unknown =>
    sent({ messages: [{ role: 'assistant', content }] }, OWN)[0]
  const text = { type: 'text', text: 'A' }
  t.same(output([thinking, text]), { messages: [{ role: 'assistant', content: [text] }] })
  t.same(output([thinking]), { messages: [{ role: 'assistant', content: '' }] })
  t.end()
})

void t.test('cache markers on tools are removed; a tool parameter of that name is not', (t) => {
  const parameters = { type: 'object', properties: { cache_control: { type: 'string' } } }
  const inner = { name: 'f', parameters }
  const mark = { cache_control: { type: 'ephemeral' } }
  const tools = [
    { type: 'function', function: inner, ...mark },
    { type: 'function', function: { ...inner, ...mark } },
    { type: 'custom', custom: { name: 'c' } },
  ]
  const plain = { type: 'function', function: inner }
  t.same(sent({ tools }, OWN), [{ tools: [plain, plain, tools[2]] }, []])
  t.end()
})

void t.test('a call without arguments has an empty object, for every model', (t) => {
  const turn = (inner: JsonObject): JsonObject => ({
    role: 'assistant',
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', ...inner } }],
  })
  const custom = {
    role: 'assistant',
    tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: '' } }],
  }
  for (const facts of [FACTS, OWN]) {
    for (const inner of [
      {},
      { arguments: null },
      { arguments: '' },
      { arguments: ' ' },
      { arguments: 'null' },
    ]) {
      t.same(sent({ messages: [turn(inner)] }, facts), [{ messages: [turn({ arguments: '{}' })] }, []])
    }
    t.same(sent({ messages: [custom] }, facts), [{ messages: [custom] }, []])
  }
  t.end()
})

void t.test('a choice among tools is not sent without tools', (t) => {
  const choice = { tool_choice: 'auto', parallel_tool_calls: false }
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const functions = [{ name: 'f' }]
  for (const facts of [FACTS, OWN]) {
    t.same(sent(choice, facts), [{}, []])
    t.same(sent({ ...choice, tools: [] }, facts), [{ tools: [] }, []])
    t.same(sent({ function_call: 'auto' }, facts), [{}, []])
    t.same(sent({ ...choice, tools }, facts), [{ ...choice, tools }, []])
    t.same(sent({ function_call: 'auto', functions }, facts), [{ function_call: 'auto', functions }, []])
  }
  t.end()
})
