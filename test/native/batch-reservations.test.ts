/**
 * Goal: a line of a batch is decided and reserved exactly as the same request sent directly, in every form of
 * every vendor.
 * Method: a budget that is too small for anything names what a request may cost. It is the same for a direct
 * request and for a line, and three times as much for three lines; any other refusal is the same, too. Each
 * day has half of the requests.
 */
import t, { type Test } from 'tap'
import { findAccount } from '../../src/accounts/changes/change-accounts.js'
import { eventually } from '../faults/scene.js'
import { rowsOf } from '../helpers/ledger.js'
import { openStore } from '../../src/store/open-store.js'
import { createKey } from '../helpers/keys.js'
import { ofToday } from '../helpers/long-suite.js'
import { openAccounts, STORES, type Accounts } from './accounts.js'

t.setTimeout(300_000)

/** A rate of its own for every kind of token, for long prompts, and for calls. */
const PRICE =
  '{ input: 1, cache_read: 0.5, output: 10, input_audio: 30, input_image: 2, output_audio: 60, output_image: 50, long_context: { above_input_tokens: 5000, input: 3, output: 20 }, calls: { web_search: 0.5, code_interpreter: 0.03, file_search: 0.01, image_generation: 0.2 }, service_tiers: { flex: 0.5, priority: 2 } }'
const NO_SOUND = '{ input: 1, output: 10 }'
const GEMINI = 'gemini-2.5-flash'
const MODELS = [
  ...['gpt-5.4-mini', 'gpt-3.5-turbo-instruct', 'gpt-audio', 'text-embedding-3-small'],
  ...['claude-sonnet-4-5', 'claude-opus-4-6', GEMINI],
]
const PRICES = [...MODELS.map((model) => `${model}: ${PRICE}`), `gpt-mute: ${NO_SOUND}`].join(', ')

interface Answer {
  readonly status: number
  readonly text: string
}

interface Scene extends Accounts {
  readonly secret: string
}

async function ask({ gateway, secret }: Scene, path: string, init: RequestInit): Promise<Answer> {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${secret}`)
  const res = await fetch(gateway.origin + path, { method: 'POST', ...init, headers })
  return { status: res.status, text: await res.text() }
}

const json = (value: unknown): RequestInit => ({
  body: JSON.stringify(value),
  headers: { 'content-type': 'application/json' },
})

const linesOf = (items: readonly unknown[]): string =>
  items.map((item) => `${JSON.stringify(item)}\n`).join('')

async function upload(scene: Scene, text: string): Promise<Answer> {
  const data = new FormData()
  data.append('purpose', 'batch')
  data.append('file', new Blob([text]), 'a.jsonl')
  return ask(scene, '/native/openai/v1/files', { body: data })
}

/** How each vendor batches requests. */
type Batch = (scene: Scene, path: string, bodies: readonly object[]) => Promise<Answer>

const openaiFile =
  (ownPath: (path: string) => string): Batch =>
  async (scene, path, bodies) => {
    const items = bodies.map((body, at) => ({
      custom_id: String(at),
      method: 'POST',
      url: ownPath(path),
      body,
    }))
    const file = await upload(scene, linesOf(items))
    if (file.status !== 200) return file
    const { id } = JSON.parse(file.text) as { id: string }
    return ask(scene, '/native/openai/v1/batches', json({ input_file_id: id, endpoint: ownPath(path) }))
  }

const mistralFile: Batch = async (scene, path, bodies) => {
  const items = bodies.map((body, at) => ({ custom_id: String(at), body: { ...body, model: undefined } }))
  const file = await upload(scene, linesOf(items))
  if (file.status !== 200) return file
  const { id } = JSON.parse(file.text) as { id: string }
  const { model } = bodies[0] as { model: string }
  return ask(scene, '/native/openai/v1/batch/jobs', json({ input_files: [id], model, endpoint: path }))
}

const mistralInline: Batch = async (scene, path, bodies) => {
  const requests = bodies.map((body, at) => ({ custom_id: String(at), body: { ...body, model: undefined } }))
  const { model } = bodies[0] as { model: string }
  return ask(scene, '/native/openai/v1/batch/jobs', json({ requests, model, endpoint: path }))
}

const anthropic: Batch = async (scene, _path, bodies) => {
  const requests = bodies.map((params, at) => ({ custom_id: String(at), params }))
  return ask(scene, '/native/anthropic/v1/messages/batches', json({ requests }))
}

const geminiInline: Batch = async (scene, path, bodies) => {
  const requests = bodies.map((request, at) => ({ request, metadata: { key: String(at) } }))
  const batch = { input_config: { requests: { requests } } }
  const action = path.endsWith(':embedContent') ? 'asyncBatchEmbedContent' : 'batchGenerateContent'
  return ask(scene, `/native/google${path.replace(/:\w+$/, '')}:${action}`, json({ batch }))
}

const geminiFile: Batch = async (scene, path, bodies) => {
  const headers = { 'x-goog-upload-offset': '0', 'x-goog-upload-command': 'upload, finalize' }
  const body = linesOf(bodies.map((request, at) => ({ key: String(at), request })))
  const file = await ask(scene, '/native/google/upload/v1beta/files', { body, headers })
  if (file.status !== 200) return file
  const { file: made } = JSON.parse(file.text) as { file: { name: string } }
  const batch = { inputConfig: { fileName: made.name } }
  const action = path.endsWith(':embedContent') ? 'asyncBatchEmbedContent' : 'batchGenerateContent'
  return ask(scene, `/native/google${path.replace(/:\w+$/, '')}:${action}`, json({ batch }))
}

const OPENAI: readonly (readonly [string, Batch])[] = [
  ['file', openaiFile((path) => path)],
  ["Azure's file", openaiFile((path) => path.replace(/^\/v1/, ''))],
]
const CHAT: readonly (readonly [string, Batch])[] = [
  ...OPENAI,
  ["Mistral's file", mistralFile],
  ["Mistral's body", mistralInline],
]
const GOOGLE: readonly (readonly [string, Batch])[] = [
  ['body', geminiInline],
  ['file', geminiFile],
]

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex').toString(
  'base64',
)
const PDF = Buffer.from('%PDF-1.4 1 0 obj << /Type /ObjStm >>').toString('base64')
const MP3 = Buffer.alloc(3_000, 0xff).toString('base64')
const TEXT = 'many words '.repeat(1_000)

const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] })
const chat = (more: object): object => ({
  model: 'gpt-5.4-mini',
  ...user('hi'),
  max_completion_tokens: 100,
  ...more,
})
const part = (value: object): object => chat(user([{ type: 'text', text: 'hi' }, value]))
const responses = (more: object): object => ({
  model: 'gpt-5.4-mini',
  input: 'hi',
  max_output_tokens: 100,
  ...more,
})
const input = (value: object): object => responses({ input: [{ role: 'user', content: [value] }] })
const completions = (more: object): object => ({
  model: 'gpt-3.5-turbo-instruct',
  prompt: 'hi',
  max_tokens: 100,
  ...more,
})
const claude = (more: object): object => ({
  model: 'claude-sonnet-4-5',
  ...user('hi'),
  max_tokens: 100,
  ...more,
})
const block = (value: object): object => claude(user([{ type: 'text', text: 'hi' }, value]))
const gemini = (more: object, config: object = {}): object => ({
  contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  generationConfig: { maxOutputTokens: 100, ...config },
  ...more,
})
const parts = (...values: object[]): object => gemini({ contents: [{ role: 'user', parts: values }] })
const tool = (parameters: object): object => ({
  tools: [{ type: 'function', function: { name: 'f', description: TEXT, parameters } }],
})

/** Requests by path, each with the forms in which it may be part of a batch. */
const REQUESTS: readonly (readonly [
  path: string,
  forms: readonly (readonly [string, Batch])[],
  bodies: readonly object[],
])[] = [
  [
    '/v1/chat/completions',
    CHAT,
    [
      ...[chat({}), chat({ n: 7 }), chat({ max_completion_tokens: undefined }), chat({ max_tokens: 50 })],
      ...[chat(user(TEXT)), chat(tool({ type: 'object' })), chat({ service_tier: 'flex' })],
      ...[chat({ service_tier: 'priority' }), chat({ service_tier: 'unknown' })],
      chat({ web_search_options: {} }),
      chat({ web_search_options: {}, max_completion_tokens: undefined, n: 3 }),
      part({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
      part({ type: 'image_url', image_url: { url: `data:image/png;base64,${PDF}` } }),
      part({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
      part({ type: 'input_audio', input_audio: { data: MP3, format: 'mp3' } }),
      part({ type: 'input_audio', input_audio: { data: MP3, format: 'wav' } }),
      part({ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } }),
      part({ type: 'file', file: { file_id: 'file-1' } }),
      chat({ model: 'gpt-audio', modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } }),
      chat({ model: 'gpt-mute', modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } }),
      ...[chat({ model: 'gpt-unknown' }), chat({ prediction: { type: 'content', content: TEXT } })],
      chat({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { title: TEXT } } } }),
      chat({
        messages: [
          { role: 'assistant', audio: { id: 'audio_1' } },
          { role: 'user', content: 'hi' },
        ],
      }),
      ...[chat({ n: 'x' }), chat({ messages: 5 }), chat({ max_completion_tokens: -1 })],
      chat({ thinking: { type: 'enabled', budget_tokens: 5_000 } }),
      chat({ stream: true, unknown_member: { text: TEXT } }),
    ],
  ],
  [
    '/v1/responses',
    OPENAI,
    [
      ...[responses({}), responses({ max_output_tokens: undefined }), responses({ instructions: TEXT })],
      ...[responses({ max_output_tokens: 1 }), responses({ service_tier: 'priority' })],
      responses({ tools: [{ type: 'web_search' }] }),
      responses({ tools: [{ type: 'web_search' }], max_tool_calls: 2 }),
      responses({ tools: [{ type: 'web_search_preview_2025_03_11' }], max_tool_calls: 0 }),
      responses({ tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }),
      responses({ tools: [{ type: 'file_search', vector_store_ids: [] }] }),
      responses({ tools: [{ type: 'image_generation' }] }),
      responses({ tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://example.com' }] }),
      responses({ tools: [{ type: 'unknown_tool' }] }),
      responses({ prompt: { id: 'pmpt_1' } }),
      responses({ reasoning: { effort: 'high', encrypted_content: TEXT } }),
      input({ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }),
      input({ type: 'input_image', file_id: 'file-1' }),
      input({ type: 'input_file', filename: 'a', file_data: `data:application/pdf;base64,${PDF}` }),
      input({ type: 'input_file', file_url: 'https://example.com/a.pdf' }),
      responses({ input: 5 }),
    ],
  ],
  [
    '/v1/completions',
    OPENAI,
    [
      ...[completions({}), completions({ n: 3 }), completions({ best_of: 5 })],
      completions({ n: 3, best_of: 5, prompt: ['a', 'b'] }),
      completions({ prompt: ['a', 'b', 'c'] }),
      completions({ prompt: [1, 2, 3] }),
      completions({ prompt: [[1, 2], [3]] }),
      completions({ prompt: [[1, 2], 'a'] }),
      completions({ prompt: [] }),
      completions({ max_tokens: undefined, n: 4 }),
      completions({ suffix: TEXT, echo: true }),
      completions({ prompt: [Array.from({ length: 6_000 }, (_, at) => at)] }),
    ],
  ],
  [
    '/v1/embeddings',
    OPENAI,
    [
      { model: 'text-embedding-3-small', input: TEXT },
      { model: 'text-embedding-3-small', input: ['a', 'b'], dimensions: 20 },
      { model: 'text-embedding-3-small', input: [1, 2, 3] },
      { model: 'text-embedding-3-small', input: [[1, 2], [3]] },
      { model: 'text-embedding-3-small', input: 'a', dimensions: -3 },
      { model: 'unknown-embedding', input: 'a' },
    ],
  ],
  [
    '/v1/messages',
    [['body', anthropic]],
    [
      ...[claude({}), claude({ system: TEXT }), claude({ max_tokens: 5_000 }), claude({ max_tokens: -1 })],
      claude({ thinking: { type: 'enabled', budget_tokens: 1_024 }, max_tokens: 2_000 }),
      claude({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
      claude({ tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }] }),
      claude({ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }),
      claude({ tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }),
      claude({
        tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6', max_uses: 2 }],
      }),
      claude({
        tools: [
          {
            type: 'advisor_20260301',
            name: 'advisor',
            model: 'claude-opus-4-6',
            max_uses: 2,
            max_tokens: 100,
          },
          { type: 'advisor_20260301', name: 'advisor', model: 'claude-unknown', max_uses: 2 },
        ],
      }),
      claude({ mcp_servers: [{ type: 'url', url: 'https://example.com', name: 'a' }] }),
      ...[claude({ speed: 'fast' }), claude({ inference_geo: 'us' }), claude({ container: 'c' })],
      block({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }),
      block({ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }),
      block({ type: 'image', source: { type: 'file', file_id: 'file_1' } }),
      block({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } }),
      block({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: TEXT } }),
      block({ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }),
      block({ type: 'container_upload', file_id: 'file_1' }),
      block({ type: 'unknown_tool', text: TEXT }),
    ],
  ],
  [
    `/v1beta/models/${GEMINI}:generateContent`,
    GOOGLE,
    [
      ...[gemini({}), gemini({}, { candidateCount: 8 }), gemini({}, { maxOutputTokens: undefined })],
      gemini({ systemInstruction: { parts: [{ text: TEXT }] } }),
      gemini({ tools: [{ googleSearch: {} }] }),
      gemini({ tools: [{ codeExecution: {} }, { urlContext: {} }] }),
      gemini({ cachedContent: 'cachedContents/1' }),
      gemini({}, { thinkingConfig: { thinkingBudget: 5_000 } }),
      gemini({}, { responseModalities: ['TEXT', 'IMAGE'] }),
      gemini({}, { responseModalities: ['AUDIO'], speechConfig: {} }),
      gemini({}, { candidateCount: 'x' }),
      parts({ inlineData: { mimeType: 'image/png', data: PNG } }),
      parts({ inlineData: { mimeType: 'image/png', data: PDF } }),
      parts({ inlineData: { mimeType: 'application/pdf', data: PDF } }),
      parts({ inlineData: { mimeType: 'audio/mp3', data: MP3 } }),
      parts({ inlineData: { mimeType: 'video/mp4', data: MP3 } }),
      parts({ fileData: { mimeType: 'audio/mp3', fileUri: 'https://example.com/a.mp3' } }),
      parts({ unknownPart: { text: TEXT } }),
    ],
  ],
  [
    '/v1beta/models/text-embedding-3-small:embedContent',
    GOOGLE,
    [
      { content: { parts: [{ text: TEXT }] } },
      { content: { parts: [{ text: 'a' }] }, outputDimensionality: 20 },
    ],
  ],
]

/** What the refusal states: the cost, or the status and the reason without its place. */
function decisionOf({ status, text }: Answer, times: number): string {
  const cost = /this request may cost up to \$([\d.]+\d)/.exec(text)?.[1]
  if (cost !== undefined) return String(Math.round((Number(cost) * 1e9) / times) / 1e9)
  const { error } = JSON.parse(text) as { error?: { message?: string } }
  const { message = text } = error ?? {}
  const reason = message.replace(/^(?:Line 1|requests\[0\])(?: \([^)]*\))?: /, '')
  return `${status} ${reason}`
}

const ADDRESS = 'https://example.com/a.png'

/**
 * Whether both are refused, or may cost the same. The model of a file of Mistral's is not known when lines
 * are read: a picture by URL then counts as one of any size.
 */
function isSame(direct: string, batched: string, { name, body }: { name: string; body: object }): boolean {
  const areRefused = [direct, batched].every((decision) => /^4\d\d /.test(decision))
  const isLarger = name === "Mistral's file" && JSON.stringify(body).includes(ADDRESS)
  return areRefused || (isLarger ? Number(batched) > Number(direct) : batched === direct)
}

async function open(t: Test, store: (typeof STORES)[number], usd: string): Promise<Scene> {
  const options = `native_usd_per_request: 0, allow_tools: ['*'], prices: { ${PRICES} }`
  const limiting = 'limiting: { unknown_length: 4096, unknown_price: refuse }'
  const more = `limits: [{ scope: key, usd_per_day: ${usd} }]\n${limiting}`
  const accounts = await openAccounts(t, store, { options, more })
  const { gateway } = accounts
  const opened = await openStore(gateway.store)
  const account = await findAccount(opened, 'test@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(opened, { plans: gateway.plans, account, name: 'k' })
  await opened.close()
  return { ...accounts, secret }
}

for (const store of STORES) {
  void t.test(`${store}: each line costs what the direct request costs`, async (t) => {
    const scene = await open(t, store, '0.000000001')
    for (const [path, forms, bodies] of REQUESTS) {
      for (const body of ofToday(bodies, 2)) {
        const direct = decisionOf(await ask(scene, path, json(body)), 1)
        for (const [name, batch] of forms) {
          for (const times of [1, 3]) {
            const all = Array.from({ length: times }, () => body)
            const batched = decisionOf(await batch(scene, path, all), times)
            const label = `${path}, ${name}, ${times}: ${JSON.stringify(body).slice(0, 300)}`
            t.ok(isSame(direct, batched, { name, body }), `${label} ${direct} ${batched}`)
          }
        }
      }
    }
  })

  void t.test(`${store}: results whose cost is not known cost what was reserved`, async (t) => {
    const scene = await open(t, store, '10')
    const { provider } = scene
    const path = '/v1/messages/batches'
    const tools = [
      { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6', max_uses: 2, max_tokens: 100 },
    ]
    const usage = { input_tokens: 2, output_tokens: 3, iterations: [{ type: 'advisor_message' }] }
    const message = { model: 'claude-sonnet-4-5', content: [], usage }
    const line = { custom_id: '1', result: { type: 'succeeded', message } }
    const body = claude({ tools, max_tokens: 60_000 })
    const first = await anthropic(scene, '/', [body])
    t.equal(first.status, 200, first.text)
    const { id } = JSON.parse(first.text) as { id: string }
    const ended = { id, type: 'message_batch', processing_status: 'ended' }
    provider.replies.set(`GET ${path}/${id}`, ended)
    provider.replies.set(`GET ${path}/${id}/results`, linesOf([line]))
    t.equal((await ask(scene, `/native/anthropic${path}/${id}/results`, { method: 'GET' })).status, 200)
    const charged = async () =>
      (await rowsOf(scene.gateway)).filter(({ usage: { input = 0 } }) => input === 2)
    await eventually(async () => (await charged()).length > 0, 'charged')
    t.match(await charged(), [{ costNanoUsd: null }])
    const second = await anthropic(scene, '/', [claude({ tools, max_tokens: 100_000 })])
    t.match(second.text, /leaves \$6\.\d+, and this request may cost up to/)
  })
}
