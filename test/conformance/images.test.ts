/**
 * Goal: clients of OpenAI's pictures get them from OpenAI's form and from Gemini, whole and streamed, charged
 * by the tokens of each kind or by picture; what was reserved is charged if a stream is cut.
 * Method: a vendor of each form, written from its documentation, on real sockets; OpenAI's SDK.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'
import { json, events } from './vendor-replies.js'

const PIXEL = Buffer.from('not really a picture').toString('base64')

interface Sent {
  readonly path: string
  readonly body: Record<string, unknown>
}

const sent: Sent[] = []
const answers = new Map<string, (res: ServerResponse) => void>()

/** A body of JSON, or a form's fields as members, with files as their names. */
async function bodyOf(req: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const type = req.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/')) return JSON.parse(body.toString()) as Record<string, unknown>
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- another reader than the gateway's writer
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const fields = [...form.entries()].map(([name, value]) => ({
    [name]: typeof value === 'string' ? value : `${value.name} ${value.type} ${value.size}`,
  }))
  return { form: fields }
}

const TOKENS = 'input: 5, input_image: 8, output_image: 30'
const BY_SIZE = 'per_image: { "1024x1024": 0.04, "high/1536x1024": 0.25, "*": 0.3 }'
const UPSTREAMS = [
  `painter: { dialect: openai-chat, prices: { gpt-image-2: { ${TOKENS} }, flux: { ${BY_SIZE} } } }`,
  'google-art: { dialect: gemini, prices: { gemini-3-pro-image: { input: 2, output: 12, output_image: 120 } } }',
]
const ROUTES = ['painter:gpt-image-2', 'painter:flux', 'google-art:gemini-3-pro-image']

async function start(t: Test, more = ''): Promise<TestGateway> {
  const server = createServer((req, res) => {
    void (async () => {
      const [, name = '', ...rest] = (req.url ?? '').split('/')
      sent.push({ path: `/${rest.join('/')}`, body: await bodyOf(req) })
      const answer = answers.get(name) ?? json({ error: { message: 'nothing' } }, 500)
      answer(res)
    })()
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const gateway = await startGateway(t, { more })
  const upstreams = UPSTREAMS.map((line) => {
    const name = line.slice(0, line.indexOf(':'))
    return `  ${line.replace('{ ', `{ base_url: "${origin}/${name}/v1", api_key: vendor-key, `)}\n`
  })
  const routes = ROUTES.map((model) => {
    const [upstream, name] = model.split(':')
    return `  - { model: "${model}", targets: [{ upstream: ${upstream}, model: ${name} }] }\n`
  })
  gateway.add(upstreams.join(''), routes.join(''))
  return gateway
}

async function draw(gateway: TestGateway, body: Record<string, unknown>): Promise<Response> {
  return fetch(`${gateway.origin}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'a cat on a roof', ...body }),
  })
}

const USAGE = {
  input_tokens: 10,
  input_tokens_details: { text_tokens: 10, image_tokens: 0 },
  output_tokens: 1000,
  total_tokens: 1010,
}

void t.test(
  "passes OpenAI's pictures to its SDK, with every output token at the rate of pictures",
  async (t) => {
    const gateway = await start(t)
    answers.set('painter', json({ created: 7, data: [{ b64_json: PIXEL }], size: '1024x1024', usage: USAGE }))
    sent.length = 0
    const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
    const model = 'painter:gpt-image-2'
    const reply = await client.images.generate({ model, prompt: 'a cat on a roof', size: '1024x1024' })
    t.equal(reply.data?.[0]?.b64_json, PIXEL)
    t.equal(reply.created, 7)
    t.same(sent[0], {
      path: '/v1/images/generations',
      body: { model: 'gpt-image-2', prompt: 'a cat on a roof', size: '1024x1024' },
    })
    t.match((await rowsOf(gateway))[0], {
      ingress: 'images',
      source: 'reported',
      usage: { input: 10, output: 1000 },
      costNanoUsd: 10 * 5_000 + 1000 * 30_000,
    })
  },
)

void t.test('a large picture passes unparsed', async (t) => {
  const gateway = await start(t)
  const large = 'A'.repeat(3 * 1024 * 1024)
  answers.set('painter', json({ created: 7, data: [{ b64_json: large }], usage: USAGE }))
  const reply = await draw(gateway, { model: 'painter:gpt-image-2' })
  const body = (await reply.json()) as { data: { b64_json: string }[] }
  t.equal(body.data[0]?.b64_json.length, large.length)
  t.match((await rowsOf(gateway))[0], { source: 'reported', costNanoUsd: 10 * 5_000 + 1000 * 30_000 })
})

void t.test('charges pictures by the quality and size of the reply, else of the request', async (t) => {
  const gateway = await start(t)
  const model = 'painter:flux'
  const two = [{ url: 'https://example.com/1.png' }, { url: 'https://example.com/2.png' }]
  const cases: [Record<string, unknown>, Record<string, unknown>, number][] = [
    [{ size: '1024x1024', quality: 'low', n: 2 }, { data: two }, 80_000_000],
    [{ size: '1536x1024', quality: 'high', n: 2 }, { data: two }, 500_000_000],
    [{ n: 2 }, { data: two }, 600_000_000],
    [{ n: 2 }, { data: two, size: '1024x1024', quality: 'low' }, 80_000_000],
    [{ size: '512x512', quality: 'low', n: 2 }, { data: two.slice(0, 1) }, 300_000_000],
  ]
  for (const [body, answer, cost] of cases) {
    answers.set('painter', json({ created: 1, ...answer }))
    const reply = await draw(gateway, { model, ...body })
    t.equal(reply.status, 200)
    await reply.text()
    t.equal((await rowsOf(gateway)).at(-1)?.costNanoUsd, cost, JSON.stringify(body))
  }
})

function geminiReply(...parts: unknown[]): unknown {
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: 20,
      candidatesTokenCount: 1150,
      thoughtsTokenCount: 100,
      totalTokenCount: 1270,
      candidatesTokensDetails: [
        { modality: 'IMAGE', tokenCount: 1120 },
        { modality: 'TEXT', tokenCount: 30 },
      ],
    },
    modelVersion: 'gemini-3-pro-image',
  }
}

const PICTURE = { inlineData: { mimeType: 'image/png', data: PIXEL } }
const DRAFT = { ...PICTURE, thought: true }
const GEMINI_COST = 20 * 2_000 + 1120 * 120_000 + 130 * 12_000

void t.test('draws with Gemini: ratio and resolution of the size, each kind at its own rate', async (t) => {
  const gateway = await start(t)
  const model = 'google-art:gemini-3-pro-image'
  answers.set('google-art', json(geminiReply({ text: 'Here it is.' }, DRAFT, PICTURE)))
  sent.length = 0
  const reply = await draw(gateway, { model, size: '1536x1024', user: 'u', moderation: 'low' })
  const body = (await reply.json()) as { data: unknown[]; output_format: string; usage: unknown }
  t.same(body.data, [{ b64_json: PIXEL }])
  t.equal(body.output_format, 'png')
  t.same(body.usage, {
    input_tokens: 20,
    input_tokens_details: { text_tokens: 20, image_tokens: 0 },
    output_tokens: 1250,
    output_tokens_details: { text_tokens: 130, image_tokens: 1120 },
    total_tokens: 1270,
  })
  t.same(sent[0], {
    path: '/v1/models/gemini-3-pro-image:generateContent',
    body: {
      contents: [{ role: 'user', parts: [{ text: 'a cat on a roof' }] }],
      generationConfig: {
        responseModalities: ['IMAGE'],
        imageConfig: { aspectRatio: '3:2', imageSize: '1K' },
      },
    },
  })
  t.same(reply.headers.get('x-sluice-lost')?.split(/, ?/).sort(), ['moderation', 'user'])
  t.match((await rowsOf(gateway))[0], { source: 'reported', costNanoUsd: GEMINI_COST })
  const sizes = { '3840x2160': ['16:9', '4K'], '1024x1024': ['1:1', '1K'], '2000x1000': ['16:9', '2K'] }
  for (const [size, [aspectRatio, imageSize]] of Object.entries(sizes)) {
    const sized = await draw(gateway, { model, size })
    t.equal(sized.headers.get('x-sluice-lost'), size === '2000x1000' ? 'size' : null)
    const config = sent.at(-1)?.body['generationConfig']
    t.match(config, { imageConfig: { aspectRatio, imageSize } })
  }
  for (const [param, fields] of [
    ['n', { n: 2 }],
    ['background', { background: 'transparent' }],
    ['output_format', { output_format: 'svg' }],
    ['prompt', { prompt: '' }],
    ['partial_images', { partial_images: 4 }],
  ] as const) {
    const refused = await draw(gateway, { model, ...fields })
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: { param } })
  }
  answers.set('google-art', json({ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }))
  const filtered = await draw(gateway, { model })
  t.equal(filtered.status, 400)
  t.match(await filtered.json(), { error: { code: 'content_filter' } })
  answers.set('google-art', json(geminiReply({ text: 'No.' })))
  t.equal((await draw(gateway, { model })).status, 502)
})

void t.test('streams partial and whole pictures, and charges what was reserved if it is cut', async (t) => {
  const gateway = await start(t)
  const partial = { type: 'image_generation.partial_image', b64_json: PIXEL, partial_image_index: 0 }
  const completed = { type: 'image_generation.completed', b64_json: PIXEL, usage: USAGE }
  answers.set('painter', events(partial, completed))
  const model = 'painter:gpt-image-2'
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const request = { prompt: 'a cat', stream: true as const, partial_images: 1 }
  const types: string[] = []
  for await (const event of await client.images.generate({ model, ...request })) types.push(event.type)
  t.same(types, [partial.type, completed.type])
  t.match((await rowsOf(gateway))[0], { stream: true, source: 'reported', costNanoUsd: 30_050_000 })
  answers.set('google-art', events(geminiReply(DRAFT, PICTURE)))
  const google = await draw(gateway, { model: 'google-art:gemini-3-pro-image', stream: true })
  const text = await google.text()
  t.match(text, /^event: image_generation\.completed\ndata: /)
  t.match(text, /"output_tokens":1250/)
  t.equal((await rowsOf(gateway))[1]?.costNanoUsd, GEMINI_COST)
  answers.set('painter', events(partial))
  const cut = await draw(gateway, { model: 'painter:flux', stream: true, size: '1024x1024', quality: 'low' })
  await t.rejects(cut.text())
  t.match((await rowsOf(gateway))[2], { source: 'assumed', costNanoUsd: 40_000_000 })
})

void t.test('a stream of several pictures has the end and the tokens of the last one', async (t) => {
  const gateway = await start(t)
  const completed = { type: 'image_generation.completed', b64_json: PIXEL, usage: USAGE }
  const model = 'painter:gpt-image-2'
  for (const count of [2, 1]) {
    answers.set('painter', events(...Array.from({ length: count }, () => completed)))
    const reply = await (await draw(gateway, { model, stream: true, n: 2 })).text()
    t.equal(reply.match(/^event: image_generation\.completed$/gm)?.length, count)
    const row = (await rowsOf(gateway)).at(-1)
    t.match(row, { outcome: 'ok', source: 'reported', units: `image=${count} output_image=${count}000` })
    t.equal(row?.costNanoUsd, count * 30_050_000)
  }
})

void t.test('a budget reserves the dearest picture before anything is sent', async (t) => {
  const gateway = await start(t, 'limits:\n  - { scope: account, usd_total: 0.5 }\n')
  answers.set('painter', json({ created: 1, data: [{ url: 'https://example.com/1.png' }] }))
  sent.length = 0
  const dear = await draw(gateway, { model: 'painter:flux', n: 2 })
  t.equal(dear.status, 402)
  t.equal(sent.length, 0)
  const cheap = await draw(gateway, { model: 'painter:flux', n: 2, size: '1024x1024', quality: 'low' })
  t.equal(cheap.status, 200)
})

const PNG = Buffer.from('iVBORw0KGgo=', 'base64')

void t.test("OpenAI's SDK edits pictures: the form passes in its order", async (t) => {
  const gateway = await start(t)
  answers.set('painter', json({ created: 7, data: [{ b64_json: PIXEL }], usage: USAGE }))
  sent.length = 0
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const image = [1, 2].map((at) => toFile(PNG, `${at}.png`, { type: 'image/png' }))
  const mask = await toFile(PNG, 'mask.png', { type: 'image/png' })
  const model = 'painter:gpt-image-2'
  const reply = await client.images.edit({
    image: await Promise.all(image),
    prompt: 'a hat',
    mask,
    model,
    n: 1,
  })
  t.equal(reply.data?.[0]?.b64_json, PIXEL)
  t.same(sent[0], {
    path: '/v1/images/edits',
    body: {
      form: [
        { 'image[]': '1.png image/png 8' },
        { 'image[]': '2.png image/png 8' },
        { prompt: 'a hat' },
        { mask: 'mask.png image/png 8' },
        { model: 'gpt-image-2' },
        { n: '1' },
      ],
    },
  })
  t.match((await rowsOf(gateway))[0], { ingress: 'image_edits', source: 'reported', costNanoUsd: 30_050_000 })
  answers.set('painter', events({ type: 'image_edit.completed', b64_json: PIXEL, usage: USAGE }))
  const [first] = await Promise.all(image)
  if (first === undefined) throw new Error('no picture')
  const stream = await client.images.edit({ image: first, prompt: 'a hat', model, stream: true })
  const types: string[] = []
  for await (const event of stream) types.push(event.type)
  t.same(types, ['image_edit.completed'])
})

function edit(gateway: TestGateway, body: FormData | Record<string, unknown>): Promise<Response> {
  const authorization = `Bearer ${gateway.secret}`
  const isForm = body instanceof FormData
  return fetch(`${gateway.origin}/openai/v1/images/edits`, {
    method: 'POST',
    headers: isForm ? { authorization } : { authorization, 'content-type': 'application/json' },
    body: isForm ? body : JSON.stringify(body),
  })
}

function formWith(fields: readonly (readonly [string, string | Blob])[]): FormData {
  const form = new FormData()
  for (const [name, value] of fields) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, value, 'a.png')
  }
  return form
}

const PICTURE_FILE = new Blob([PNG], { type: 'image/png' })
const GOOGLE = 'google-art:gemini-3-pro-image'

void t.test('Gemini gets the pictures of a form, or of JSON, before the text', async (t) => {
  const gateway = await start(t)
  answers.set('google-art', json(geminiReply(PICTURE)))
  sent.length = 0
  const form = formWith([
    ['image', PICTURE_FILE],
    ['prompt', 'a hat'],
    ['model', GOOGLE],
    ['size', '1024x1024'],
    ['quality', 'high'],
  ])
  const reply = await edit(gateway, form)
  t.equal(reply.status, 200)
  t.equal(reply.headers.get('x-sluice-lost'), 'quality')
  const inline = { inlineData: { mimeType: 'image/png', data: PNG.toString('base64') } }
  const contents = [{ role: 'user', parts: [inline, { text: 'a hat' }] }]
  t.match(sent[0]?.body, { contents })
  t.match((await rowsOf(gateway))[0], { ingress: 'image_edits', costNanoUsd: GEMINI_COST })
  const url = `data:image/png;base64,${PNG.toString('base64')}`
  const body = { model: GOOGLE, prompt: 'a hat', images: [{ image_url: url }] }
  t.equal((await edit(gateway, body)).status, 200)
  t.match(sent[1]?.body, { contents })
  for (const [more, param] of [
    [{ images: [{ file_id: 'file-1' }] }, 'images[0]'],
    [{ mask: { image_url: url } }, 'mask'],
    [{ n: 2 }, 'n'],
  ] as const) {
    const refused = await edit(gateway, { ...body, ...more })
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: { kind: 'untranslatable', param } })
  }
  answers.set('google-art', events(geminiReply(PICTURE)))
  const streamed = await edit(gateway, { ...body, stream: true })
  t.match(await streamed.text(), /^event: image_edit\.completed\n/)
})

void t.test('JSON for an edit passes to OpenAI, and its objects must be of the account', async (t) => {
  const gateway = await start(t)
  answers.set('painter', json({ created: 7, data: [{ b64_json: PIXEL }], usage: USAGE }))
  sent.length = 0
  const url = 'https://example.com/1.png'
  const body = { model: 'painter:gpt-image-2', prompt: 'a hat', images: [{ image_url: url }] }
  t.equal((await edit(gateway, body)).status, 200)
  t.same(sent[0]?.body, { ...body, model: 'gpt-image-2' })
  const foreign = await edit(gateway, { ...body, images: [{ file_id: 'file-abc123' }] })
  t.equal(foreign.status, 404)
  t.match(await foreign.json(), { error: { kind: 'unknown_object' } })
})

void t.test('refuses edits that are wrong, with words', async (t) => {
  const gateway = await start(t)
  const model = 'painter:flux'
  const cases: [FormData | Record<string, unknown>, string][] = [
    [
      formWith([
        ['prompt', 'a hat'],
        ['model', model],
      ]),
      'image',
    ],
    [
      formWith([
        ['image', PICTURE_FILE],
        ['model', model],
      ]),
      'prompt',
    ],
    [
      formWith([
        ['image', PICTURE_FILE],
        ['prompt', 'a'],
        ['model', model],
        ['n', 'two'],
      ]),
      'n',
    ],
    [
      formWith([
        ['image', PICTURE_FILE],
        ['prompt', 'a'],
        ['prompt', 'b'],
        ['model', model],
      ]),
      'prompt',
    ],
    [
      formWith([
        ['image', PICTURE_FILE],
        ['mask', PICTURE_FILE],
        ['mask', PICTURE_FILE],
        ['prompt', 'a'],
        ['model', model],
      ]),
      'mask',
    ],
    [
      formWith([
        ...Array.from({ length: 17 }, () => ['image[]', PICTURE_FILE] as const),
        ['prompt', 'a'],
        ['model', model],
      ]),
      'image',
    ],
    [{ model, prompt: 'a' }, 'images'],
    [{ model, prompt: 'a', images: [{}] }, 'images[0].image_url'],
  ]
  for (const [body, param] of cases) {
    const reply = await edit(gateway, body)
    t.equal(reply.status, 400, param)
    t.match(await reply.json(), { error: { param } })
  }
})
