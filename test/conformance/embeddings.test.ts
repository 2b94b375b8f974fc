/**
 * Goal: embeddings work for clients of OpenAI and Google over upstreams of both: the same vectors, tokens
 * counted, ledger entries and limits as for chats; a field that one side lacks is reported or refused.
 * Method: the vendors' SDKs on a running gateway, whose emulator gives one text the same vector in either
 * format.
 */
import { GoogleGenAI } from '@google/genai'
import OpenAI, { APIError } from 'openai'
import t from 'tap'
import type { LedgerEntry } from '../../src/emulator/received-requests.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

const OPENAI_MODEL = 'text-embedding-3-small'
const GEMINI_MODEL = 'gemini-embedding-001'
const TEXTS = ['The first text.', 'The second text, in Grüße und 漢字.']

function openaiOf({ secret, baseUrl }: TestGateway): OpenAI {
  return new OpenAI({ apiKey: secret, baseURL: baseUrl, maxRetries: 0 })
}

function googleOf({ secret, origin }: TestGateway): GoogleGenAI {
  return new GoogleGenAI({ apiKey: secret, httpOptions: { baseUrl: origin } })
}

/** Vectors of 32-bit floats, as both formats round them. */
function rounded(vector: readonly number[]): number[] {
  return vector.map(Math.fround)
}

async function statusOf(asked: Promise<unknown>): Promise<number | undefined> {
  try {
    await asked
    return 200
  } catch (error) {
    return error instanceof APIError ? Number(error.status) : undefined
  }
}

async function post(gateway: TestGateway, path: string, body: unknown): Promise<Response> {
  return fetch(gateway.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

void t.test('every client gets the same vectors from every upstream', async (t) => {
  const gateway = await startGateway(t)
  const openai = openaiOf(gateway)
  const google = googleOf(gateway)
  const vectors: number[][][] = []
  for (const model of [OPENAI_MODEL, GEMINI_MODEL]) {
    for (const form of [undefined, 'float', 'base64'] as const) {
      const reply = await openai.embeddings.create({
        model,
        input: TEXTS,
        dimensions: 256,
        ...(form !== undefined && { encoding_format: form }),
      })
      t.equal(reply.object, 'list')
      t.equal(reply.model, model)
      t.ok(reply.usage.prompt_tokens > 0)
      t.equal(reply.usage.total_tokens, reply.usage.prompt_tokens)
      t.same(
        reply.data.map(({ index }) => index),
        [0, 1],
      )
      vectors.push(
        reply.data.map(({ embedding }) => {
          const raw: unknown = embedding
          if (typeof raw !== 'string') return rounded(embedding)
          const bytes = Buffer.from(raw, 'base64')
          return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
        }),
      )
    }
    const reply = await google.models.embedContent({
      model,
      contents: TEXTS,
      config: { outputDimensionality: 256 },
    })
    vectors.push((reply.embeddings ?? []).map(({ values = [] }) => rounded(values)))
    const single = await post(gateway, `/v1beta/models/${model}:embedContent`, {
      content: { parts: [{ text: TEXTS[0] }] },
      outputDimensionality: 256,
    })
    const { embedding } = (await single.json()) as { embedding: { values: number[] } }
    t.same(rounded(embedding.values), vectors[0]?.[0])
  }
  t.equal(vectors[0]?.[0]?.length, 256)
  for (const each of vectors) t.same(each, vectors[0])
})

void t.test('requests of the same format pass unchanged', async (t) => {
  const gateway = await startGateway(t, {
    routes: '  - { model: fast, targets: [ { upstream: google, model: gemini-embedding-001 } ] }',
  })
  const last = (): LedgerEntry | undefined => gateway.emulator.ledger.at(-1)
  const openai = { model: OPENAI_MODEL, input: 'a', user: 'u', new_field: { x: 1 } }
  await (await post(gateway, '/v1/embeddings', openai)).arrayBuffer()
  t.same(last()?.body, openai)
  t.equal(last()?.path, '/embeddings')
  const named = { model: `models/${GEMINI_MODEL}`, content: { parts: [{ text: 'a' }] } }
  const gemini = { requests: [{ ...named, taskType: 'RETRIEVAL_QUERY', title: 'T' }] }
  const path = `/v1beta/models/${GEMINI_MODEL}:batchEmbedContents`
  await (await post(gateway, path, gemini)).arrayBuffer()
  t.same(last()?.body, gemini)
  const alias = { requests: [{ ...named, model: 'models/fast' }] }
  const res = await post(gateway, '/v1beta/models/fast:batchEmbedContents', alias)
  await res.arrayBuffer()
  t.equal(res.status, 200)
  t.same(last()?.body, { requests: [named] })
  t.equal(last()?.path, `/models/${GEMINI_MODEL}:batchEmbedContents`)
})

void t.test('a field that only one side has is reported or refused', async (t) => {
  const gateway = await startGateway(t)
  const lost = async (path: string, body: object): Promise<[number, string | null]> => {
    const res = await post(gateway, path, body)
    await res.arrayBuffer()
    return [res.status, res.headers.get('x-sluice-lost')]
  }
  const input = 'text'
  t.same(await lost('/v1/embeddings', { model: GEMINI_MODEL, input, user: 'u', custom: 1 }), [
    200,
    'custom, user',
  ])
  const content = { parts: [{ text: 'a' }] }
  t.same(
    await lost(`/v1beta/models/${OPENAI_MODEL}:embedContent`, {
      content,
      taskType: 'X',
      title: 'T',
    }),
    [200, 'taskType, title'],
  )
  const tokens = { model: OPENAI_MODEL, input: [[1, 2, 3], [4]] }
  t.same(await lost('/v1/embeddings', tokens), [200, null])
  t.same(await lost('/v1/embeddings', { ...tokens, input: [1, 2] }), [200, null])
  const refused: [string, object, string][] = [
    ['/v1/embeddings', { model: GEMINI_MODEL, input: [1, 2] }, '"param":"input"'],
    ['/v1/embeddings', { model: GEMINI_MODEL, input: ['a', [1]] }, 'input\\[1\\]'],
    ['/v1/embeddings', { model: 'claude-sonnet-4-5', input }, 'serves embeddings; anthropic does not'],
    ['/v1/embeddings', { model: OPENAI_MODEL }, 'input must be'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input: [] }, 'input must not be empty'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input: [1.5] }, 'input\\[0\\]'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input: [{}] }, 'input\\[0\\]'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input, encoding_format: 'int8' }, 'encoding_format'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input, dimensions: 0 }, 'dimensions'],
    ['/v1/embeddings', { model: OPENAI_MODEL, input: Array(2049).fill('a') }, 'at most 2048'],
    [`/v1beta/models/${OPENAI_MODEL}:batchEmbedContents`, { requests: [] }, 'requests'],
    [`/v1beta/models/${OPENAI_MODEL}:embedContent`, { content: {} }, 'content.parts'],
    [
      `/v1beta/models/${OPENAI_MODEL}:batchEmbedContents`,
      { requests: [{ content, outputDimensionality: 2 }, { content }] },
      'different sizes',
    ],
  ]
  for (const [path, body, words] of refused) {
    const res = await post(gateway, path, body)
    t.equal(res.status, 400, words)
    t.match(await res.text(), new RegExp(words))
  }
})

void t.test('each request is a ledger entry with its tokens and cost', async (t) => {
  const gateway = await startGateway(t)
  const openai = openaiOf(gateway)
  await openai.embeddings.create({ model: OPENAI_MODEL, input: 'x'.repeat(400) })
  await openai.embeddings.create({ model: GEMINI_MODEL, input: 'x'.repeat(400) })
  await googleOf(gateway).models.embedContent({ model: OPENAI_MODEL, contents: 'x'.repeat(400) })
  const rows = await rowsOf(gateway)
  t.match(rows, [
    { ingress: 'embeddings', upstream: 'openai', model: OPENAI_MODEL, source: 'reported' },
    { ingress: 'embeddings', upstream: 'google', model: GEMINI_MODEL, source: 'estimated' },
    { ingress: 'gemini', upstream: 'openai', model: OPENAI_MODEL, source: 'reported' },
  ])
  t.same(rows[0]?.usage, { input: 100, output: 0 })
  t.equal(rows[0]?.costNanoUsd, 2_000)
  t.ok((rows[1]?.costNanoUsd ?? 0) > 10_000)
})

void t.test('limits and budgets apply', async (t) => {
  const gateway = await startGateway(t, {
    more: 'limits: [ { scope: key, tokens_per_minute: 150 }, { scope: key, usd_per_day: 1 } ]',
  })
  const ask = async (): Promise<number> => {
    const body = { model: OPENAI_MODEL, input: 'x'.repeat(400) }
    const res = await post(gateway, '/v1/embeddings', body)
    await res.arrayBuffer()
    return res.status
  }
  t.equal(await ask(), 200)
  t.equal(await ask(), 429)
})

void t.test(
  'vectors of an upstream that ignores base64 are converted, and errors keep their kind',
  async (t) => {
    const gateway = await startGateway(t)
    const openai = openaiOf(gateway)
    const replay = (body: object, status = 200): void => {
      const headers = { 'content-type': 'application/json' }
      gateway.emulator.replay({ status, headers, body: JSON.stringify(body) })
    }
    const usage = { prompt_tokens: 3, total_tokens: 3 }
    const data = [
      { object: 'embedding', index: 1, embedding: [0.5, -1] },
      { object: 'embedding', index: 0, embedding: [0.25, 1e-3] },
    ]
    replay({ object: 'list', model: 'm', data, usage })
    const reply = await openai.embeddings.create({ model: OPENAI_MODEL, input: ['a', 'b'] })
    t.same(
      reply.data.map(({ embedding }) => [...embedding]),
      [
        [0.25, Math.fround(1e-3)],
        [0.5, -1],
      ],
    )
    replay({ error: { message: 'Too long', type: 'invalid_request_error', param: null, code: null } }, 400)
    t.equal(await statusOf(openai.embeddings.create({ model: OPENAI_MODEL, input: 'a' })), 400)
    for (const body of [{ object: 'list' }, { data: [{ embedding: {} }] }, [1]]) {
      replay(body)
      t.equal(await statusOf(openai.embeddings.create({ model: OPENAI_MODEL, input: 'a' })), 502)
    }
  },
)
