/**
 * Goal: a request in a batch is checked and reserved as if it were sent directly, in files and in bodies of
 * every vendor: choices, tools of the provider, models, fields, sound, unseen input.
 * Method: two stores, a provider that records what reaches it, direct requests beside the batches.
 */
import t from 'tap'
import { findAccount } from '../../src/accounts/changes/change-accounts.js'
import { eventually } from '../faults/scene.js'
import { rowsOf } from '../helpers/ledger.js'
import { createKey, type NewKeySettings } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { openAccounts, STORES, type Accounts } from './accounts.js'

t.setTimeout(300_000)

const PRICE = '{ input: 0, output: 1000, calls: { web_search: 0.5 } }'
const MODELS = [
  'gpt-5.4-mini',
  'gpt-3.5-turbo-instruct',
  'claude-sonnet-4-5',
  'gemini-2.5-flash',
  'gpt-audio',
]
const OPTIONS = `native_usd_per_request: 0, prices: { ${MODELS.map((model) => `${model}: ${PRICE}`).join(', ')} }`
const MESSAGES = [{ role: 'user', content: 'hi' }]
const CONTENTS = [{ role: 'user', parts: [{ text: 'hi' }] }]

type Answer = { status: number; text: string; sent: number }

/** A request of a vendor: direct, and as a batch. */
interface Asked {
  readonly name: string
  readonly direct: [path: string, body: object]
  readonly batch: (scene: Scene) => Promise<Answer>
}

interface Scene extends Accounts {
  readonly secret: string
}

async function ask({ gateway, provider, secret }: Scene, path: string, init: object): Promise<Answer> {
  const before = provider.seen.length
  const res = await fetch(gateway.origin + path, {
    ...{ method: 'POST', ...init },
    headers: {
      authorization: `Bearer ${secret}`,
      ...('headers' in init ? (init.headers as Record<string, string>) : {}),
    },
  })
  return { status: res.status, text: await res.text(), sent: provider.seen.length - before }
}

function json(value: unknown): object {
  return { body: JSON.stringify(value), headers: { 'content-type': 'application/json' } }
}

/** Creates a batch of the lines in an uploaded file. */
async function inFile(scene: Scene, lines: readonly unknown[]): Promise<Answer> {
  const data = new FormData()
  data.append('purpose', 'batch')
  data.append('file', new Blob([lines.map((line) => `${JSON.stringify(line)}\n`).join('')]), 'a.jsonl')
  const upload = await ask(scene, '/native/openai/v1/files', { body: data })
  if (upload.status !== 200) return upload
  const { id: input_file_id } = JSON.parse(upload.text) as { id: string }
  return ask(scene, '/native/openai/v1/batches', json({ input_file_id }))
}

function openai(url: string, body: object): Asked {
  const line = { custom_id: '1', method: 'POST', url, body }
  return { name: url, direct: [url, body], batch: (scene) => inFile(scene, [line]) }
}

function anthropic(params: object): Asked {
  const requests = [{ custom_id: '1', params }]
  const path = '/native/anthropic/v1/messages/batches'
  return {
    name: 'messages',
    direct: ['/v1/messages', params],
    batch: (scene) => ask(scene, path, json({ requests })),
  }
}

const GEMINI = '/v1beta/models/gemini-2.5-flash'

function gemini(request: object): Asked {
  const batch = { input_config: { requests: { requests: [{ request, metadata: { key: '1' } }] } } }
  return {
    name: 'gemini',
    direct: [`${GEMINI}:generateContent`, request],
    batch: (scene) => ask(scene, `/native/google${GEMINI}:batchGenerateContent`, json({ batch })),
  }
}

/** The same in an uploaded file. */
function geminiFile(request: object): Asked {
  return {
    name: 'gemini file',
    direct: [`${GEMINI}:generateContent`, request],
    async batch(scene) {
      const headers = { 'x-goog-upload-offset': '0', 'x-goog-upload-command': 'upload, finalize' }
      const body = `${JSON.stringify({ key: '1', request })}\n`
      const upload = await ask(scene, '/native/google/upload/v1beta/files', { body, headers })
      if (upload.status !== 200) return upload
      const { file } = JSON.parse(upload.text) as { file: { name: string } }
      const batch = { inputConfig: { fileName: file.name } }
      return ask(scene, `/native/google${GEMINI}:batchGenerateContent`, json({ batch }))
    },
  }
}

const JOBS = '/native/openai/v1/batch/jobs'
const OUTPUT = '4f0cf1f2-5b7e-4c7e-9d38-0a1b2c3d4e5f'
const ENDPOINT = '/v1/chat/completions'
const TURN = { messages: MESSAGES, max_tokens: 100 }

/** A job of Mistral's with its requests, which name neither endpoint nor model. */
function mistral(body: object, job: object = {}): Asked {
  const requests = [{ custom_id: '1', body: { ...TURN, ...body } }]
  return {
    name: 'mistral',
    direct: [ENDPOINT, { model: 'gpt-5.4-mini', ...TURN, ...body }],
    batch: (scene) => ask(scene, JOBS, json({ requests, model: 'gpt-5.4-mini', endpoint: ENDPOINT, ...job })),
  }
}

/** The same in an uploaded file; `line` replaces members of its line, `job` of the job. */
function mistralFile(body: object, { line = {}, job = {} } = {}): Asked {
  return {
    ...mistral(body),
    name: 'mistral file',
    async batch(scene) {
      const data = new FormData()
      const text = JSON.stringify({ custom_id: '1', body: { ...TURN, ...body }, ...line })
      data.append('purpose', 'batch')
      data.append('file', new Blob([`${text}\n`]), 'a.jsonl')
      const upload = await ask(scene, '/native/openai/v1/files', { body: data })
      if (upload.status !== 200) return upload
      const { id } = JSON.parse(upload.text) as { id: string }
      const named = { input_files: [id], model: 'gpt-5.4-mini', endpoint: ENDPOINT, ...job }
      return ask(scene, JOBS, json(named))
    },
  }
}

const chat = (more: object): Asked =>
  openai('/v1/chat/completions', { model: 'gpt-5.4-mini', messages: MESSAGES, max_tokens: 100, ...more })
const responses = (more: object): Asked =>
  openai('/v1/responses', { model: 'gpt-5.4-mini', input: 'hi', max_output_tokens: 100, ...more })
const completions = (more: object): Asked =>
  openai('/v1/completions', { model: 'gpt-3.5-turbo-instruct', prompt: 'hi', max_tokens: 100, ...more })
const claude = (more: object): Asked =>
  anthropic({ model: 'claude-sonnet-4-5', messages: MESSAGES, max_tokens: 100, ...more })
const config = (more: object): object => ({
  contents: CONTENTS,
  generationConfig: { maxOutputTokens: 100, ...more },
})

async function open(
  t: Parameters<typeof openAccounts>[0],
  store: (typeof STORES)[number],
  { usd = 0, settings = {}, options = OPTIONS, more = '' }: OpenOptions,
): Promise<Scene> {
  const budget = usd === 0 ? '' : `limits: [{ scope: key, usd_per_day: ${usd} }]`
  const accounts = await openAccounts(t, store, { options, more: `${budget}\n${more}` })
  const { gateway, provider } = accounts
  provider.replies.set(`POST ${GEMINI}:batchGenerateContent`, { name: 'batches/b1' })
  const opened = await openStore(gateway.store)
  const account = await findAccount(opened, 'test@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(opened, { plans: gateway.plans, account, name: 'k', ...settings })
  await opened.close()
  return { ...accounts, secret }
}

interface OpenOptions {
  readonly usd?: number
  readonly settings?: NewKeySettings
  readonly options?: string
  readonly more?: string
}

/** 100 tokens of a reply cost $0.10, so that 50 choices cost $5. */
const CHOICES: readonly [one: Asked, many: Asked][] = [
  [chat({}), chat({ n: 50 })],
  [completions({}), completions({ n: 50 })],
  [completions({}), completions({ best_of: 20 })],
  [completions({}), completions({ prompt: Array.from({ length: 50 }, () => 'hi') })],
  [completions({}), completions({ prompt: Array.from({ length: 50 }, () => [1, 2]) })],
  [gemini(config({})), gemini(config({ candidateCount: 8, maxOutputTokens: 400 }))],
  [geminiFile(config({})), geminiFile(config({ candidateCount: 8, maxOutputTokens: 400 }))],
  [chat({}), chat({ max_tokens: undefined, max_completion_tokens: 5_000 })],
  [responses({}), responses({ max_output_tokens: 5_000 })],
  [claude({}), claude({ max_tokens: 5_000 })],
]

for (const store of STORES) {
  void t.test(`${store}: a batch reserves what its direct requests reserve`, async (t) => {
    const scene = await open(t, store, { usd: 1 })
    for (const [one, many] of CHOICES) {
      const refused = await many.batch(scene)
      t.equal(refused.status, 402, `${many.name} ${JSON.stringify(many.direct[1])}: ${refused.text}`)
      t.match(refused.text, /budget of \$1/)
      const direct = await ask(scene, many.direct[0], json(many.direct[1]))
      t.ok(direct.status === 402, `as direct: ${direct.status}`)
      const allowed = await one.batch(scene)
      t.ok(allowed.status === 200 || allowed.status === 402, `${one.name}: ${allowed.text}`)
    }
    const lines = Array.from({ length: 50 }, (_, at) => ({
      ...{ custom_id: String(at), method: 'POST', url: '/v1/chat/completions' },
      body: { model: 'gpt-5.4-mini', messages: MESSAGES, max_tokens: 100 },
    }))
    t.equal((await inFile(scene, lines)).status, 402, 'many lines')
  })
}

void t.test('one request of each vendor fits the budget', async (t) => {
  const scene = await open(t, 'sqlite', { usd: 100 })
  for (const [one, many] of CHOICES) {
    for (const asked of [one, many]) {
      if (asked.direct[0].includes(GEMINI) && asked === many) continue
      const answer = await asked.batch(scene)
      t.equal(answer.status, 200, `${asked.name} ${JSON.stringify(asked.direct[1])}: ${answer.text}`)
    }
  }
})

const TOOLS: readonly (readonly [name: string, asked: Asked])[] = [
  ['web_search', chat({ web_search_options: {} })],
  ['web_search', responses({ tools: [{ type: 'web_search' }] })],
  ['code_interpreter', responses({ tools: [{ type: 'code_interpreter' }] })],
  ['mcp', responses({ tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://example.com' }] })],
  ['service_tier', responses({ service_tier: 'priority' })],
  ['web_search', claude({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] })],
  ['mcp', claude({ mcp_servers: [{ type: 'url', url: 'https://example.com' }] })],
  ['web_search', gemini({ ...config({}), tools: [{ googleSearch: {} }] })],
  ['code_execution', gemini({ ...config({}), tools: [{ codeExecution: {} }] })],
  ['web_search', geminiFile({ ...config({}), tools: [{ google_search: {} }] })],
]

for (const store of STORES) {
  void t.test(`${store}: tools of the provider that a direct request may not use`, async (t) => {
    const budgeted = await open(t, store, { usd: 100 })
    const none = await open(t, store, { settings: { allowTools: [] } })
    const all = await open(t, store, { settings: { allowTools: ['*'] } })
    for (const [name, asked] of TOOLS) {
      const label = `${asked.name} ${JSON.stringify(asked.direct[1])}`
      for (const scene of [budgeted, none]) {
        const refused = await asked.batch(scene)
        t.equal(refused.status, 403, `${label}: ${refused.text}`)
        t.match(refused.text, new RegExp(`(?:Line 1|requests\\[0\\]): .*'${name}'.*allow_tools`))
        t.equal(refused.sent, 0, 'the provider has no batch')
      }
      const allowed = await asked.batch(all)
      t.equal(allowed.status, 200, `${label}: ${allowed.text}`)
    }
  })
}

void t.test('models that the key may not use', async (t) => {
  const models = ['native:openai', 'native:anthropic', 'native:google', 'gpt-3.5-turbo-instruct']
  const scene = await open(t, 'sqlite', { settings: { models } })
  for (const asked of [chat({}), responses({}), claude({}), gemini(config({})), geminiFile(config({}))]) {
    const refused = await asked.batch(scene)
    t.match(refused, { status: 403, text: /not allowed to use the model/, sent: 0 })
  }
  t.equal((await completions({}).batch(scene)).status, 200)
})

void t.test('an invalid line is refused with its number and field', async (t) => {
  const scene = await open(t, 'sqlite', {})
  const line = (body: object, url = '/v1/chat/completions'): object => ({
    ...{ custom_id: '1', method: 'POST', url },
    body: { model: 'gpt-5.4-mini', ...body },
  })
  const good = line({ messages: MESSAGES })
  for (const [bad, param] of [
    [line({ messages: [{ role: 'user' }, 5] }), 'body.messages'],
    [line({ messages: MESSAGES, n: 'many' }), 'body.n'],
    [line({ input: 'hi', tools: 5 }, '/v1/responses'), 'body.tools'],
    [{ ...good, params: {} }, ''],
  ] as const) {
    const refused = await inFile(scene, [good, good, bad])
    t.equal(refused.status, 400, refused.text)
    t.match(refused.text, /"message":"Line 3: /)
    t.ok(refused.text.includes(`"param":"${param}`) || param === '', refused.text)
    t.equal(refused.sent, 0)
  }
  const requests = [
    { custom_id: '1', params: { model: 'claude-sonnet-4-5', max_tokens: -1, messages: MESSAGES } },
  ]
  const refused = await ask(scene, '/native/anthropic/v1/messages/batches', json({ requests }))
  t.match(refused, { status: 400, text: '"param":"requests[0].params.max_tokens"', sent: 0 })
  t.equal((await inFile(scene, [good, good])).status, 200)
})

void t.test('lines that the gateway cannot read', async (t) => {
  const images = openai('/v1/images/generations', { model: 'gpt-5.4-mini', prompt: 'a', n: 10 })
  const budgeted = await open(t, 'sqlite', { usd: 100 })
  t.match(await images.batch(budgeted), { status: 403, text: /Line 1 \(\/v1\/images/ })
  const free = await open(t, 'sqlite', {})
  t.equal((await images.batch(free)).status, 200)
  const shared = await open(t, 'sqlite', {
    options: `${OPTIONS}, native_sharing: shared`,
    settings: { allowTools: [] },
  })
  t.equal((await claude({}).batch(shared)).status, 200, 'a body is read')
  const search = [{ type: 'web_search_20250305', name: 'web_search' }]
  t.equal((await claude({ tools: search }).batch(shared)).status, 403)
  t.match(await chat({}).batch(shared), { status: 403, text: /cannot check/ }, 'a file is not')
})

void t.test('sound, unseen input and calls are reserved as of direct requests', async (t) => {
  const tools = [{ type: 'web_search' }]
  const scene = await open(t, 'sqlite', { usd: 4, settings: { allowTools: ['*'] } })
  const audio = {
    model: 'gpt-audio',
    modalities: ['text', 'audio'],
    audio: { voice: 'alloy', format: 'wav' },
  }
  t.match(await chat(audio).batch(scene), { status: 403, text: /output_audio/ }, 'an unknown kind')
  t.equal((await responses({ tools, max_tool_calls: 2 }).batch(scene)).status, 200)
  t.equal((await responses({ tools, max_tool_calls: 30 }).batch(scene)).status, 402, 'calls')
})

void t.test('the budget of a model counts its batches', async (t) => {
  const more = 'limits: [{ scope: key, model: gpt-5.4-mini, usd_per_day: 1 }]'
  const scene = await open(t, 'sqlite', { more })
  t.equal((await chat({ n: 50 }).batch(scene)).status, 402)
  t.equal((await chat({}).batch(scene)).status, 200)
  t.equal((await completions({ n: 50 }).batch(scene)).status, 200, 'another model')
})

for (const store of STORES) {
  void t.test(`${store}: jobs of Mistral are checked and reserved as direct requests`, async (t) => {
    const scene = await open(t, store, { usd: 1 })
    const made = { id: 'job-1', object: 'batch', status: 'QUEUED' }
    scene.provider.replies.set('POST /v1/batch/jobs', made)
    for (const asked of [mistral({ n: 50 }), mistralFile({ n: 50 })]) {
      t.equal((await ask(scene, asked.direct[0], json(asked.direct[1]))).status, 402, asked.name)
      t.match(await asked.batch(scene), { status: 402 }, asked.name)
    }
    const search = { web_search_options: {} }
    for (const asked of [mistral(search), mistralFile(search)]) {
      t.equal((await asked.batch(scene)).status, 403, `${asked.name}: a tool of the provider`)
    }
    for (const asked of [mistral({ n: 'x' }), mistralFile({ n: 'x' })]) {
      t.match(await asked.batch(scene), { status: 400, text: /body\.n/, sent: 0 }, asked.name)
    }
    for (const [name, asked] of [
      ['another endpoint', mistralFile({}, { job: { endpoint: '/v1/moderations' } })],
      ['another endpoint in the body', mistral({}, { endpoint: '/v1/ocr' })],
      ['no endpoint', mistral({}, { endpoint: undefined })],
      [
        'an address in a line that the provider ignores',
        mistralFile({ input: 'x' }, { line: { url: '/v1/embeddings' } }),
      ],
      ['an unknown model', mistral({}, { model: 'mistral-unknown' })],
      ['another model in a line', mistral({ model: 'gpt-audio' })],
      ['an agent', mistral({}, { model: undefined, agent_id: 'ag_1' })],
    ] as const) {
      t.match([403, 404, 400].includes((await asked.batch(scene)).status), true, name)
    }
    const jobs = scene.provider.seen.filter(({ url }) => url.endsWith('/jobs'))
    t.equal(jobs.length, 0, 'none of these is sent')
    for (const asked of [mistral({}), mistralFile({})]) {
      t.match(await asked.batch(scene), { status: 200 }, asked.name)
    }
    const foreign = json({ input_files: ['file-other'], model: 'gpt-5.4-mini', endpoint: ENDPOINT })
    t.equal((await ask(scene, JOBS, foreign)).status, 404)
  })

  void t.test(`${store}: a job of Mistral is charged by its results`, async (t) => {
    const scene = await open(t, store, { usd: 1 })
    const { provider, gateway } = scene
    const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
    const response = { status_code: 200, body: { model: 'gpt-5.4-mini', choices: [], usage } }
    const result = { custom_id: '1', response }
    for (const [at, done] of [{ output_file: OUTPUT }, { outputs: [result] }].entries()) {
      const id = `job-${at}`
      provider.replies.set('POST /v1/batch/jobs', { id, object: 'batch', status: 'QUEUED' })
      const asked = at === 0 ? mistralFile({}) : mistral({})
      t.match(await asked.batch(scene), { status: 200 })
      const read = () => ask(scene, `${JOBS}/${id}`, { method: 'GET' })
      provider.replies.set(`GET /v1/batch/jobs/${id}`, { id, status: 'RUNNING', output_file: null })
      t.equal((await read()).status, 200)
      const unseen = { id, status: 'SUCCESS', succeeded_requests: 1 }
      provider.replies.set(`GET /v1/batch/jobs/${id}`, unseen)
      t.equal((await read()).status, 200)
      provider.replies.set(`GET /v1/batch/jobs/${id}`, { ...unseen, ...done })
      provider.replies.set(`GET /v1/files/${OUTPUT}/content`, `${JSON.stringify(result)}\n`)
      const reply = await read()
      t.equal(reply.status, 200, reply.text)
      await read()
      const charged = async () =>
        (await rowsOf(gateway))
          .filter(({ usage: used }) => used.input === 3)
          .map(({ costNanoUsd }) => costNanoUsd)
      await eventually(async () => (await charged()).length > at, 'charged')
      t.strictSame(
        await charged(),
        Array.from({ length: at + 1 }, () => 4_000_000),
        'once',
      )
    }
    const content = await ask(scene, `/native/openai/v1/files/${OUTPUT}/content`, { method: 'GET' })
    t.equal(content.status, 200, content.text)
  })

  void t.test(`${store}: the place of inference has its factor in a batch`, async (t) => {
    const price = '{ input: 1000, output: 1000, service_tiers: { batch: 0.5, inference_geo: 1.1 } }'
    const options = `native_usd_per_request: 0, allow_tools: '*', prices: { claude-sonnet-4-5: ${price} }`
    const scene = await open(t, store, { usd: 100, options })
    const { provider, gateway } = scene
    const path = '/v1/messages/batches'
    for (const [at, geo] of ['us', 'global', 'not_available', null].entries()) {
      const id = `msgbatch_${at + 1}`
      provider.replies.set(`POST ${path}`, { id, type: 'message_batch', processing_status: 'in_progress' })
      t.equal((await claude(geo === 'us' ? { inference_geo: 'us' } : {}).batch(scene)).status, 200)
      provider.replies.set(`GET ${path}/${id}`, { id, type: 'message_batch', processing_status: 'ended' })
      const usage = { input_tokens: 10 + at, output_tokens: 10, inference_geo: geo, service_tier: 'batch' }
      const message = { model: 'claude-sonnet-4-5', content: [], usage }
      const line = { custom_id: '1', result: { type: 'succeeded', message } }
      provider.replies.set(`GET ${path}/${id}/results`, `${JSON.stringify(line)}\n`)
      t.equal((await ask(scene, `/native/anthropic${path}/${id}/results`, { method: 'GET' })).status, 200)
      const cost = async () =>
        (await rowsOf(gateway)).find(({ usage: used }) => used.input === 10 + at)?.costNanoUsd
      await eventually(async () => (await cost()) !== undefined, 'charged')
      t.equal(await cost(), (20 + at) * 500_000 * (geo === 'us' ? 1.1 : 1), String(geo))
    }
  })
}
