/**
 * Goal: with its preset, clients need no changes for a vendor of the chat-completions format: it accepts
 * every request of a chat client, and its replies, recorded ones included, are chat completions.
 * Method: the gateway with scripted vendors that refuse the same requests as the real ones; a request with
 * every field; each vendor's recorded requests and replies.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { isObject, objectOf, type JsonObject } from '../../src/base/json.js'
import { PRESET_NAMES, type PresetName } from '../../src/config/presets.js'
import { fixtures, skipWithoutFixtures, type Recording } from '../helpers/fixtures.js'
import { startGateway } from '../helpers/gateway.js'
import { until } from '../helpers/upstream.js'
import { collect, faultsOfStream, faultsOfWhole } from './check-completion.js'
import { fromOpenAi, objectsOf, type Gist } from './recordings/recorded.js'
import { Tally } from './run-in-parallel.js'
import { startVendors } from './vendors.js'
import { ofToday } from '../helpers/long-suite.js'

t.setTimeout(120_000)
/** The presets of the chat-completions format. */
type ChatPreset = Exclude<PresetName, 'openai' | 'anthropic' | 'gemini'>
const isChat = (name: PresetName): name is ChatPreset =>
  name !== 'openai' && name !== 'anthropic' && name !== 'gemini'
const NAMES = PRESET_NAMES.filter(isChat)

const vendors = await startVendors(t)
const gateway = await startGateway(t)
const PATHS: Partial<Record<PresetName, string>> = { azure: '/openai/v1' }

/** `NAME:` goes to the vendor behind its preset, `bare-NAME:` to the same without one. */
function install(): void {
  const upstreams = NAMES.map((name) => {
    const to = `base_url: "${vendors.origin}/${name}${PATHS[name] ?? '/v1'}", api_key: vendor-key`
    return `  ${name}: { preset: ${name}, ${to} }\n  bare-${name}: { dialect: openai-chat, ${to} }\n`
  })
  const dated = `  dated: { preset: azure, base_url: "${vendors.origin}/azure/openai", api_key: vendor-key,
    path: "/deployments/{model}/chat/completions", query: { api-version: 2024-10-21 } }\n`
  const names = ['dated', ...NAMES.flatMap((name) => [name, `bare-${name}`])]
  const routes = names.map((name) => `  - { prefix: "${name}:", upstream: ${name} }\n`)
  const text = readFileSync(gateway.configFile, 'utf8')
  const added = `${upstreams.join('')}${dated}routes:\n${routes.join('')}`
  writeFileSync(gateway.configFile, text.replace('routes:\n', added))
  gateway.reload()
}
install()

/** Every field of OpenAI's client, and an earlier reply sent back unchanged. */
const EVERYTHING: JsonObject = {
  messages: [
    { role: 'developer', content: 'Be brief.' },
    { role: 'user', content: 'Hi', name: 'ann' },
    {
      role: 'assistant',
      content: 'Yes?',
      refusal: null,
      annotations: [],
      reasoning_content: 'They greet.',
    },
    { role: 'user', content: 'Is it?' },
  ],
  frequency_penalty: 0.5,
  logit_bias: { '5': 1 },
  max_completion_tokens: 100,
  metadata: { a: 'b' },
  n: 1,
  parallel_tool_calls: true,
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  presence_penalty: 0.5,
  prompt_cache_key: 'k',
  safety_identifier: 's',
  seed: 7,
  service_tier: 'default',
  stop: ['END'],
  store: false,
  temperature: 0.5,
  top_p: 0.9,
  user: 'u',
  verbosity: 'low',
}

/** The fields that each vendor's preset reports as lost. */
const SERVICE = ['metadata', 'prompt_cache_key', 'safety_identifier', 'verbosity']
const ECHOES = ['messages.name', 'messages.reasoning_content']
const LOST: Readonly<Record<ChatPreset, readonly string[]>> = {
  azure: [],
  openrouter: [],
  groq: ['logit_bias', ...SERVICE, ...ECHOES],
  mistral: ['logit_bias', 'service_tier', 'user', ...SERVICE, ...ECHOES],
  deepseek: [],
  xai: ['frequency_penalty', 'presence_penalty'],
  together: [],
  fireworks: ['service_tier', ...SERVICE],
  ollama: [],
  vllm: [],
  cerebras: ['frequency_penalty', 'logit_bias', 'parallel_tool_calls', 'presence_penalty', 'service_tier'],
  sambanova: ['frequency_penalty', 'logit_bias', 'n', 'presence_penalty', 'seed', 'user'],
  deepinfra: ['parallel_tool_calls', 'seed', 'user'],
  nebius: [],
  novita: [],
  hyperbolic: ['logit_bias', 'parallel_tool_calls'],
  perplexity: ['logit_bias', 'n', 'parallel_tool_calls', 'seed', 'stop'],
  cohere: ['logit_bias', 'n', 'parallel_tool_calls', 'user'],
  nvidia: ['logit_bias', 'n', 'user'],
  moonshot: [],
  zai: ['frequency_penalty', 'logit_bias', 'n', 'parallel_tool_calls', 'presence_penalty', 'seed', 'user'],
  minimax: [],
  dashscope: [],
  volcengine: ['parallel_tool_calls'],
  siliconflow: [],
  huggingface: [],
  github: [],
  cloudflare: [],
  databricks: ['frequency_penalty', 'logit_bias', 'parallel_tool_calls', 'presence_penalty', 'seed'],
  snowflake: [],
  watsonx: [],
  ovhcloud: [],
  scaleway: ['frequency_penalty', 'logit_bias', 'n', 'user'],
  friendli: [],
  featherless: [],
  nscale: [],
  lambda: [],
  baseten: [],
  parasail: [],
  chutes: [],
  vercel: [],
  'lm-studio': [],
  'llama-cpp': [],
  sglang: [],
  tgi: [],
  litellm: [],
  jina: [],
  voyage: [],
  tei: [],
}

for (const name of ofToday(NAMES, 3)) {
  void t.test(`${name} accepts every request of a chat client`, async (t) => {
    for (const stream of [false, true]) {
      const options = stream ? { stream_options: { include_usage: true } } : {}
      const body = { ...EVERYTHING, stream, ...options, model: `${name}:m` }
      const response = await gateway.chat(body)
      const answered = await collect(response)
      const { faults } = stream ? faultsOfStream(answered) : { faults: faultsOfWhole(answered) }
      const passed = stream && !REWRITTEN.includes(name) ? [...BESIDE_CHOICES] : []
      t.same(faults, passed)
      const lost = response.headers.get('x-sluice-lost')?.split(', ') ?? []
      t.same(lost.sort(), [...LOST[name]].sort())
      t.match(gateway.lines.at(-1), { upstream: name })
    }
  })
}

/** Vendors whose bytes do not pass; those of the others have usage with the last choice. */
const REWRITTEN: readonly PresetName[] = ['groq', 'mistral', 'fireworks', 'databricks']
const BESIDE_CHOICES = ['the last chunk is not the usage']

/** Vendors that ignore what they do not know, or whose rules are those of others behind them. */
const TAKE_ALL: readonly PresetName[] = [
  ...(['openrouter', 'minimax', 'huggingface', 'github', 'cloudflare'] as const),
  ...(['snowflake', 'watsonx', 'vercel', 'litellm', 'jina', 'voyage', 'tei'] as const),
]

void t.test('without a preset strict vendors refuse it', async (t) => {
  const refused: string[] = []
  for (const name of NAMES) {
    const { status } = await gateway.chat({ ...EVERYTHING, model: `bare-${name}:m` })
    if (status !== 200) refused.push(name)
  }
  t.same(
    refused,
    NAMES.filter((name) => !TAKE_ALL.includes(name)),
  )
})

void t.test('renamed fields: limit, seed, role, thoughts', async (t) => {
  const sent = async (name: PresetName): Promise<JsonObject> => {
    await (await gateway.chat({ ...EVERYTHING, model: `${name}:m` })).text()
    return vendors.last?.body ?? {}
  }
  for (const name of ['mistral', 'deepseek', 'together', 'ollama'] as const) {
    const body = await sent(name)
    t.equal(body['max_tokens'], 100, name)
    t.notOk('max_completion_tokens' in body, name)
    t.match(body['messages'], [{ role: 'system' }, { role: 'user' }, { role: 'assistant' }])
  }
  t.match(await sent('mistral'), { random_seed: 7, temperature: 0.5, stop: ['END'] })
  t.match((await sent('deepseek'))['messages'], [{}, {}, { reasoning_content: 'They greet.' }])
  const other = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Yes', reasoning: 'Hm.' },
    { role: 'user', content: 'So?' },
  ]
  await gateway.chat({ model: 'deepseek:m', messages: other })
  t.match(vendors.last?.body['messages'], [{}, { reasoning_content: 'Hm.' }, {}])
})

void t.test('azure: the key in its own header; deployment and version in the URL', async (t) => {
  const messages = [{ role: 'user', content: 'Hi' }]
  t.equal((await gateway.chat({ model: 'azure:gpt', messages })).status, 200)
  t.match(vendors.last, { url: '/azure/openai/v1/chat/completions' })
  t.equal((await gateway.chat({ model: 'dated:gpt 5/x', messages })).status, 200)
  const path = '/azure/openai/deployments/dated%3Agpt%205%2Fx/chat/completions'
  t.match(vendors.last, {
    url: `${path}?api-version=2024-10-21`,
    headers: { 'api-key': 'vendor-key', authorization: undefined },
  })
})

void t.test('on_loss: reject also refuses fields that a quirk drops', async (t) => {
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, `${text}on_loss: reject\n`)
  gateway.reload()
  const before = vendors.last
  const response = await gateway.chat({ ...EVERYTHING, model: 'xai:m' })
  const { error } = objectOf(await response.json())
  t.equal(response.status, 400)
  t.match(error, {
    kind: 'untranslatable',
    param: 'frequency_penalty',
    message: /presence_penalty/,
  })
  t.match(error, { message: /takes them: openai-chat/ })
  t.equal(vendors.last, before, 'nothing went upstream')
  writeFileSync(gateway.configFile, text)
  gateway.reload()
})

void t.test('fields that a rewritten reply omits are reported', async (t) => {
  const message = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
      { type: 'text', text: 'Yes' },
      { type: 'reference', reference_ids: [1] },
    ],
    executed_tools: [{ type: 'search' }],
    tool_calls: [],
    prefix: false,
  }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  const body = JSON.stringify({ id: 'c', created: 1, model: 'm', choices, usage })
  vendors.scripts.set('Rewrite', { status: 200, type: 'application/json', body })
  const messages = [{ role: 'user', content: 'Rewrite' }]
  const response = await gateway.chat({ model: 'mistral:m', messages })
  t.match(await response.json(), {
    choices: [{ message: { content: 'Yes', reasoning_content: 'Hm.' }, finish_reason: 'stop' }],
  })
  t.same(response.headers.get('x-sluice-lost'), 'reply.executed_tools, reply.reference')
  const passed = await gateway.chat({ model: 'vllm:m', messages })
  t.equal(await passed.text(), body, 'bytes that pass lose nothing')
  t.equal(passed.headers.get('x-sluice-lost'), null)
})

/** A stream of these chunks, with a vendor's comments between. */
function stream(...chunks: JsonObject[]): string {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const frames = chunks.map((chunk) => `data: ${JSON.stringify({ ...head, ...chunk })}\n\n`)
  return `: PROCESSING\n\n${frames.join(': PROCESSING\n\n')}`
}

const chunkOf = (delta: JsonObject, finish: string | null = null): JsonObject => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const BEGUN = chunkOf({ role: 'assistant', content: 'Yes' })

/** Requests a stream from a vendor that sends these bytes. */
async function streamed(name: PresetName, body: string, rest = '') {
  const type = 'text/event-stream'
  vendors.scripts.set('Stream', { status: 200, type, body, rest })
  const messages = [{ role: 'user', content: 'Stream' }]
  const response = await gateway.chat({ model: `${name}:m`, messages, stream: true })
  const answered = await collect(response)
  vendors.scripts.delete('Stream')
  return answered
}

void t.test('usage is read from the field of each vendor', async (t) => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
  const hits = { ...usage, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 1 }
  const places: readonly (readonly [PresetName, JsonObject[]])[] = [
    ['groq', [BEGUN, { ...chunkOf({}, 'stop'), x_groq: { id: 'r', usage } }]],
    ['mistral', [BEGUN, { ...chunkOf({ content: '' }, 'stop'), usage }]],
    ['fireworks', [BEGUN, { ...chunkOf({}, 'stop'), usage }]],
    ['deepseek', [BEGUN, { ...chunkOf({ content: '' }, 'stop'), usage: hits }]],
    ['openrouter', [BEGUN, chunkOf({}, 'stop'), { choices: [], usage }]],
    ['vllm', [BEGUN, chunkOf({}, 'stop'), { choices: [], usage }]],
  ]
  for (const [name, chunks] of places) {
    const lines = gateway.lines.length
    const { whole, text } = await streamed(name, `${stream(...chunks)}data: [DONE]\n\n`)
    t.ok(whole && text.includes('"content":"Yes"') && text.includes('[DONE]'), name)
    await until(() => gateway.lines.length > lines)
    t.match(gateway.lines.at(-1), { outcome: 'ok', input_tokens: 5, output_tokens: 2 }, name)
  }
  t.ok(
    gateway.lines.some((line) => line['cache_read_tokens'] === 4),
    "DeepSeek's own name for them",
  )
})

void t.test('an error inside a 200 stream is reported, before and after content', async (t) => {
  const error = { error: { code: 429, message: 'Slow down.' } }
  for (const name of ['openrouter', 'groq', 'mistral', 'vllm'] as const) {
    const late = await streamed(name, stream(BEGUN), stream({ ...chunkOf({}, 'error'), ...error }))
    t.equal(late.status, 200, name)
    t.notOk(late.whole || late.text.includes('[DONE]'), `${name}: cut, not complete`)
    t.match(late.text, /"kind":"upstream_busy"/, name)
    const early = await streamed(name, stream({ choices: [], ...error }))
    t.equal(early.status, 429, `${name}: with a status where nothing was sent`)
  }
})

const RECORDED = ['azure', 'openrouter', 'groq', 'mistral', 'deepseek'] as const
const recordings = RECORDED.flatMap((name) =>
  fixtures({ provider: name, api: 'chat.completions' }).map((recording) => ({ name, recording })),
)

void t.test(
  'recorded requests arrive without members that the vendor refuses',
  skipWithoutFixtures(),
  async (t) => {
    const tally = new Tally()
    for (const { name, recording } of recordings) {
      const label = `${name}/${recording.name}`
      const asked = objectOf(recording.request_body)
      const response = await gateway.chat({ ...asked, model: `${name}:${recording.model ?? 'm'}` })
      const text = await response.text()
      t.equal(response.status, 200, `${label}: ${text.slice(0, 200)}`)
      tally.add(`${name} taken`)
      const lost = response.headers.get('x-sluice-lost')
      // The scripted reply is plain text, which matches no schema.
      const missed = lost === 'response_format.json_schema' && JSON.stringify(asked).includes('json_schema')
      // The gateway chooses the provider (decision 0061).
      const steers = isObject(asked['provider']) && Object.hasOwn(asked['provider'], 'order')
      if (missed) continue
      t.equal(lost, steers ? 'provider.order' : null, label)
    }
    t.comment(tally.toString())
  },
)

/** An error inside the stream, or in a body with status 200, is not a reply. */
const FAILED = /^groq\/.*tool_use_failed_error_streaming\.1$|^azure\/.*__test_prompt_content_filtering\.1$/

/** Expected faults: the bytes of these vendors pass unchanged. */
const PASSED: readonly (readonly [label: RegExp, faults: RegExp, reason: string])[] = [
  [
    /^azure\//,
    /^(?:more than one |object|id$|model$|the first chunk|the last chunk|no usage)/,
    'a first chunk without id, for its filters; counts were not asked for',
  ],
  [
    /^openrouter\//,
    /^(?:2 chunks with a finish_reason|content after the finish|the last chunk)/,
    'the counts come in a chunk that repeats the finish',
  ],
  [/^deepseek\//, /^the last chunk is not the usage/, 'the counts come with the finish'],
]

/** An old deployment omits the message of a choice that its filter emptied; these bytes pass, too. */
const WITHOUT_MESSAGE = /^azure\/.*__test_chat_content_filtering\.1$/

void t.test(
  'recorded replies are chat completions with the same content',
  skipWithoutFixtures(),
  async (t) => {
    const tally = new Tally()
    for (const [at, { name, recording }] of recordings.entries()) {
      if (recording.status !== 200) continue
      const label = `${name}/${recording.name}`
      const want = fromOpenAi(objectsOf(recording.response_body))
      const answered = await replayed(name, recording, at)
      const { faults, chunks } = recording.stream
        ? faultsOfStream(answered)
        : { faults: faultsOfWhole(answered), chunks: objectsOf(answered.text) }
      if (FAILED.test(label)) {
        t.ok(answered.status >= 400 || !answered.whole, `${label} ends in an error`)
        t.notOk(answered.text.includes('[DONE]'), `${label} does not look complete`)
        tally.add(`${name} failure reported`)
        continue
      }
      compare(t, label, { got: fromOpenAi(chunks), want })
      const known = PASSED.find(([pattern]) => pattern.test(label))
      const left = faults.filter((fault) => !(recording.stream && known?.[1].test(fault)))
      t.same(left, WITHOUT_MESSAGE.test(label) ? ['message.role'] : [], label)
      tally.add(`${name} ${recording.stream ? 'streams' : 'whole'}`)
      if (left.length < faults.length) tally.add(`(${name}: ${known?.[2] ?? ''})`)
    }
    t.comment(tally.toString())
  },
)

/** Sends any request and gets the recording as its reply. */
async function replayed(name: string, recording: Recording, at: number) {
  const words = `This is replay ${at}.`
  const type = recording.stream ? 'text/event-stream' : 'application/json'
  const { status, response_body: body } = recording
  vendors.scripts.set(words, { status, type, body })
  const options = recording.stream ? { stream_options: { include_usage: true } } : {}
  const messages = [{ role: 'user', content: words }]
  const asked = { model: `${name}:m`, messages, stream: recording.stream, ...options }
  const answered = await collect(await gateway.chat(asked))
  vendors.scripts.delete(words)
  return answered
}

/** A rewritten reply has the finish reason `tool_calls` if it contains calls. */
function compare(t: Test, label: string, { got, want }: { got: Gist; want: Gist }): void {
  t.same({ ...got, usage: null }, { ...want, usage: null }, label)
  t.same(got.usage ?? null, want.usage ?? (got.usage && { prompt: 0, completion: 0 }), `${label}: usage`)
}
