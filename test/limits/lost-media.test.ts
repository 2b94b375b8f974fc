/**
 * Goal: a request for pictures, sound, a transcript, ranks, verdicts or vectors whose reply is lost costs
 * what was reserved for it, whether the reply is cut, is too late, or has no client any more.
 * Method: a vendor that reads each request whole and loses the reply in one of these ways; each endpoint at a
 * price by tokens and, if it has units, at one by unit.
 */
import { createServer, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { until } from '../helpers/redis.js'
import { listen } from '../helpers/listen.js'

const WAV = wavOf(Buffer.alloc(2 * 8_000 * 2), 8_000)

interface Endpoint {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly file?: 'image' | 'file'
  /** The prices of the models, in YAML. */
  readonly prices: readonly string[]
}

const TRANSCRIPT_PRICES = ['input: 2.5, input_audio: 2.5, output: 10', 'per_second_audio: 0.0001']
const PICTURE_PRICES = ['input: 5, input_image: 8, output_image: 30', 'per_image: 0.04']
const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  embeddings: { path: '/v1/embeddings', body: { input: 'A text.' }, prices: ['input: 0.02, output: 0'] },
  moderations: { path: '/v1/moderations', body: { input: 'A text.' }, prices: ['input: 1'] },
  rerank: {
    path: '/v2/rerank',
    body: { query: 'q', documents: ['a', 'b'] },
    prices: ['input: 0.05', 'per_search: 0.002'],
  },
  images: { path: '/v1/images/generations', body: { prompt: 'a cat' }, prices: PICTURE_PRICES },
  image_edits: {
    path: '/v1/images/edits',
    body: { prompt: 'a hat' },
    file: 'image',
    prices: PICTURE_PRICES,
  },
  transcriptions: { path: '/v1/audio/transcriptions', body: {}, file: 'file', prices: TRANSCRIPT_PRICES },
  translations: { path: '/v1/audio/translations', body: {}, file: 'file', prices: TRANSCRIPT_PRICES },
  speech: {
    path: '/v1/audio/speech',
    body: { input: 'Good morning.', voice: 'alloy' },
    prices: ['input: 0.6, output_audio: 12', 'per_character: 0.000015'],
  },
}
const MODELS = Object.entries(ENDPOINTS).flatMap(([name, endpoint]) =>
  endpoint.prices.map((price, at) => ({ model: `own-${name}-${at}`, price, endpoint })),
)

/** What the vendor does with a request that it has read. */
let lose: (res: ServerResponse) => void = () => undefined
let received = 0

async function start(t: Test): Promise<TestGateway> {
  const server = createServer((req, res) => {
    req.resume()
    req.on('end', () => {
      received += 1
      lose(res)
    })
  })
  const base = `http://127.0.0.1:${await listen(t, server)}/v1`
  const gateway = await startGateway(t)
  const prices = MODELS.map(({ model, price }) => `${model}: { ${price} }`).join(', ')
  const vendor = `  vendor: { dialect: openai-chat, base_url: "${base}", api_key: k, timeouts: { first_byte_ms: 1500 }, operations: { rerank: cohere }, prices: { ${prices} } }\n`
  gateway.add(vendor, '  - { prefix: own-, upstream: vendor }\n')
  return gateway
}

function bodyOf({ body, file }: Endpoint, model: string): string | FormData {
  if (file === undefined) return JSON.stringify({ model, ...body })
  const form = new FormData()
  const [name, type] = file === 'image' ? ['a.png', 'image/png'] : ['a.wav', 'audio/wav']
  form.set(file, new File([WAV], name, { type }))
  for (const [field, value] of Object.entries({ model, ...body })) form.set(field, value)
  return form
}

async function ask(gateway: TestGateway, model: string, endpoint: Endpoint, signal?: AbortSignal) {
  const body = bodyOf(endpoint, model)
  const reply = await fetch(gateway.origin + endpoint.path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
    },
    body,
    ...(signal !== undefined && { signal }),
  })
  await reply.arrayBuffer()
  return reply
}

void t.test('a lost reply costs what was reserved', { timeout: 200_000 }, async (t) => {
  const gateway = await start(t)
  const rowOf = async (model: string, count: number): Promise<LedgerEntry | undefined> => {
    let rows: LedgerEntry[] = []
    await until(async () => {
      rows = (await rowsOf(gateway)).filter(({ modelAsked }) => modelAsked === model)
      return rows.length === count
    }, `${model}: entry ${count}`)
    return rows.at(-1)
  }
  const bounds = new Map<string, number>()
  lose = (res) => {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.write('{"')
    setTimeout(() => res.destroy(), 10)
  }
  for (const { model, endpoint } of MODELS) {
    await ask(gateway, model, endpoint).catch(() => null)
    const row = await rowOf(model, 1)
    const cost = row?.costNanoUsd ?? 0
    t.match(row, { source: /^(?:assumed|estimated)$/ }, `${model}: cut`)
    t.ok(cost > 0, `${model}: ${cost} nano-dollars`)
    bounds.set(model, cost)
  }
  lose = () => undefined
  await Promise.all(
    MODELS.map(async ({ model, endpoint }) => {
      const reply = await ask(gateway, model, endpoint)
      t.ok(reply.status >= 500, `${model}: late`)
      t.equal((await rowOf(model, 2))?.costNanoUsd, bounds.get(model), `${model}: late`)
    }),
  )
  for (const { model, endpoint } of MODELS) {
    const before = received
    const leaving = new AbortController()
    const left = ask(gateway, model, endpoint, leaving.signal).catch(() => null)
    await until(() => Promise.resolve(received > before), `${model}: is at the vendor`)
    leaving.abort()
    await left
    t.equal((await rowOf(model, 3))?.costNanoUsd, bounds.get(model), `${model}: without a client`)
  }
})
