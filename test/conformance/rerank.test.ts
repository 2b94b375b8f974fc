/**
 * Goal: clients of Cohere and Jina rank documents with every upstream form: the documents of the client, best
 * first, with the tokens or searches that the vendor counts, an entry that costs what the vendor bills, and
 * errors that both clients read.
 * Method: a vendor of each form, written from its documentation, on real sockets.
 */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'
import { jsonBodyOf } from './vendor-replies.js'

const QUERY = 'Which river is the longest?'
const DOCUMENTS = ['The Elbe is a river.', 'The Nile is the longest river.', 'Bread is baked.']
/** The score of each document, and their order. */
const SCORES = [0.3, 0.9, 0.1]
const ORDER = [1, 0, 2]

interface Sent {
  readonly path: string
  readonly body: Record<string, unknown>
}

/** What a vendor does with a request. */
interface Vendor {
  /** The preset or the settings of the upstream. */
  readonly settings: string
  /** After the vendor's own prefix. */
  readonly base: string
  readonly path: string
  /** The body that it must get. */
  readonly takes: Record<string, unknown>
  readonly reply: unknown
  readonly headers?: Record<string, string>
  /** The price of its model, and the cost of the request in nano-dollars. */
  readonly price: string
  readonly nanoUsd: number
  readonly source: 'reported' | 'estimated'
  /** What the client of `/v1/rerank` reads of the usage. */
  readonly tokens?: number
  readonly searches?: number
}

const ranked = ORDER.map((index) => ({ index, relevance_score: SCORES[index] }))
const shuffled = [ranked[2], ranked[0], ranked[1]]
const bySearch = { price: 'per_search: 0.002', nanoUsd: 2_000_000 }
const byTokens = { price: 'input: 0.05', nanoUsd: 2_000, source: 'reported', tokens: 40 } as const
const MODEL = { model: 'ranker', query: QUERY }

const VENDORS: Readonly<Record<string, Vendor>> = {
  cohere: {
    settings: 'preset: cohere',
    base: '/compatibility/v1',
    path: '/v2/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { id: 'x', results: shuffled, meta: { billed_units: { search_units: 2 } } },
    price: 'per_search: 0.002',
    nanoUsd: 4_000_000,
    source: 'reported',
    searches: 2,
  },
  together: {
    settings: 'preset: together',
    base: '/v1',
    path: '/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { object: 'rerank', results: ranked, model: 'ranker', usage: { total_tokens: 40 } },
    ...byTokens,
  },
  azure: {
    settings: 'preset: azure',
    base: '/v1',
    path: '/v2/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { results: ranked, meta: { billed_units: { search_units: 1 } } },
    ...bySearch,
    source: 'reported',
    searches: 1,
  },
  'azure-resource': {
    settings: 'preset: azure',
    base: '/openai/v1',
    path: '/providers/cohere/v2/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { results: ranked, meta: { billed_units: { search_units: 1 } } },
    ...bySearch,
    source: 'reported',
    searches: 1,
  },
  'azure-platform': {
    settings: 'platform: azure, dialect: openai',
    base: '',
    path: '/providers/cohere/v2/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { results: ranked, meta: { billed_units: { search_units: 1 } } },
    ...bySearch,
    source: 'reported',
    searches: 1,
  },
  'azure-dated': {
    settings: 'platform: azure, dialect: openai, api_version: 2024-10-21',
    base: '',
    path: '/providers/cohere/v2/rerank?api-version=2024-10-21',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { results: ranked, meta: { billed_units: { search_units: 1 } } },
    ...bySearch,
    source: 'reported',
    searches: 1,
  },
  jina: {
    settings: 'preset: jina',
    base: '/v1',
    path: '/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS, return_documents: false },
    reply: { model: 'ranker', object: 'list', results: ranked, usage: { total_tokens: 40 } },
    ...byTokens,
  },
  fireworks: {
    settings: 'preset: fireworks',
    base: '/inference/v1',
    path: '/inference/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS, return_documents: false },
    reply: { object: 'list', data: shuffled, usage: { total_tokens: 40 } },
    ...byTokens,
  },
  voyage: {
    settings: 'preset: voyage',
    base: '/v1',
    path: '/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: { object: 'list', data: ranked, model: 'ranker', usage: { total_tokens: 40 } },
    ...byTokens,
  },
  vllm: {
    settings: 'preset: vllm',
    base: '/v1',
    path: '/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS },
    reply: {
      id: 'r',
      model: 'ranker',
      usage: { prompt_tokens: 40, total_tokens: 40 },
      results: ranked.map((rank) => ({ ...rank, document: { text: 'not the text of the client' } })),
    },
    ...bySearch,
    source: 'estimated',
    tokens: 40,
  },
  tei: {
    settings: 'preset: tei',
    base: '',
    path: '/rerank',
    takes: { query: QUERY, texts: DOCUMENTS },
    reply: SCORES.map((score, index) => ({ index, score })),
    headers: { 'x-compute-tokens': '40' },
    ...byTokens,
  },
  sglang: {
    settings: 'preset: sglang',
    base: '/v1',
    path: '/v1/rerank',
    takes: { ...MODEL, documents: DOCUMENTS, return_documents: false },
    reply: SCORES.map((score, index) => ({ index, score, meta_info: { prompt_tokens: 10 + index * 3.5 } })),
    price: 'input: 1',
    nanoUsd: 40_000,
    source: 'reported',
    tokens: 40,
  },
  deepinfra: {
    settings: 'preset: deepinfra',
    base: '/v1/openai',
    path: '/v1/inference/ranker',
    takes: { queries: [QUERY, QUERY, QUERY], documents: DOCUMENTS },
    reply: { scores: SCORES, input_tokens: 40 },
    ...byTokens,
  },
  bedrock: {
    settings: 'dialect: converse, platform: bedrock, region: eu-central-1',
    base: '',
    path: '/model/cohere.ranker/invoke',
    takes: { query: QUERY, documents: DOCUMENTS, api_version: 2 },
    reply: { results: ranked },
    ...bySearch,
    source: 'estimated',
  },
}

const sent: Sent[] = []
/** Replies that replace those of a vendor, by its name. */
const replaced = new Map<string, { status: number; body: unknown }>()

async function startVendors(t: Test): Promise<string> {
  const server = createServer((req, res) => {
    void (async () => {
      const [, name = '', ...rest] = (req.url ?? '').split('/')
      sent.push({ path: `/${rest.join('/')}`, body: await jsonBodyOf(req) })
      const own = VENDORS[name.replace('bare-', '')]
      const { status, body } = replaced.get(name) ?? { status: 200, body: own?.reply }
      res.writeHead(status, { 'content-type': 'application/json', ...own?.headers })
      res.end(JSON.stringify(body))
    })()
  })
  return `http://127.0.0.1:${await listen(t, server)}`
}

function modelOf(name: string): string {
  return name === 'bedrock' ? 'cohere.ranker' : 'ranker'
}

async function start(t: Test, more = '', options = ''): Promise<TestGateway> {
  const origin = await startVendors(t)
  const gateway = await startGateway(t, { more })
  const upstreams = Object.entries(VENDORS).map(([name, { settings, base, price }]) => {
    const to = `base_url: "${origin}/${name}${base}", api_key: vendor-key`
    return `  ${name}: { ${settings}, ${to}, prices: { "${modelOf(name)}": { ${price} } } }\n`
  })
  const routes = Object.keys(VENDORS).map((name) => {
    const targets = `targets: [{ upstream: ${name}, model: ${modelOf(name)} }]`
    return `  - { model: "${name}:${modelOf(name)}", ${targets}${options} }\n`
  })
  const chain = '  - { model: chain, targets: [{ upstream: anthropic, model: claude-x }], '
  const fallback = 'fallback: [{ upstream: jina, model: ranker }, { upstream: vllm, model: ranker }] }\n'
  gateway.add(upstreams.join(''), `${routes.join('')}${chain}${fallback}`)
  return gateway
}

async function post(gateway: TestGateway, path: string, body: unknown): Promise<Response> {
  return fetch(gateway.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

interface Ranking {
  readonly id: string
  readonly object?: string
  readonly model?: string
  readonly results: readonly { index: number; relevance_score: number; document?: unknown }[]
  readonly meta?: { readonly billed_units?: { readonly search_units?: number } }
  readonly usage?: { readonly total_tokens?: number }
}

void t.test('every form gives both clients the same ranking and the price of its vendor', async (t) => {
  const gateway = await start(t)
  for (const [name, vendor] of Object.entries(VENDORS)) {
    const model = `${name}:${modelOf(name)}`
    sent.length = 0
    const first = await post(gateway, '/v1/rerank', { model, query: QUERY, documents: DOCUMENTS })
    t.equal(first.status, 200, name)
    const one = (await first.json()) as Ranking
    t.same(
      one.results,
      ORDER.map((index) => ({ index, relevance_score: SCORES[index] })),
      name,
    )
    t.match(one, { object: 'list', model, id: /^rerank-/ })
    t.equal(one.usage?.total_tokens, vendor.tokens, name)
    t.equal(one.meta?.billed_units?.search_units, vendor.searches, name)
    t.equal(sent[0]?.path, vendor.path, name)
    t.same(sent[0]?.body, vendor.takes, name)
    const second = await post(gateway, '/v2/rerank', { model, query: QUERY, documents: DOCUMENTS, top_n: 2 })
    const two = (await second.json()) as Ranking
    t.same(
      two.results.map(({ index }) => index),
      ORDER.slice(0, 2),
      name,
    )
    t.equal(two.object, undefined)
    const rows = await rowsOf(gateway)
    t.match(rows.at(-2), {
      ingress: 'rerank',
      upstream: name,
      outcome: 'ok',
      costNanoUsd: vendor.nanoUsd,
      source: vendor.source,
    })
  }
  const metrics = await gateway.metrics.text()
  t.match(metrics, 'sluice_requests_total{ingress="rerank",route="vllm:')
})

void t.test('targets that do not rank are skipped; without any, the message names them', async (t) => {
  const gateway = await start(t)
  const body = { query: QUERY, documents: DOCUMENTS }
  const reply = await post(gateway, '/v1/rerank', { model: 'chain', ...body })
  t.equal(reply.headers.get('x-sluice-upstream'), 'jina')
  replaced.set('jina', { status: 503, body: { detail: 'busy' } })
  const other = await post(gateway, '/v1/rerank', { model: 'chain', ...body })
  t.equal(other.headers.get('x-sluice-upstream'), 'vllm')
  replaced.clear()
  for (const path of ['/v1/rerank', '/v2/rerank']) {
    const none = await post(gateway, path, { model: 'claude-opus-5-5', ...body })
    t.equal(none.status, 400)
    const message = 'No upstream of the model "claude-opus-5-5" serves rerank; anthropic does not'
    const kind = 'untranslatable'
    t.match(await none.json(), { message, kind, error: { message, kind, type: 'invalid_request_error' } })
  }
})

void t.test('documents of the client are in the reply, and objects are ranked by their fields', async (t) => {
  const gateway = await start(t)
  const objects = [{ title: 'Elbe', body: 'A river.', id: 7 }, { text: 'The Nile' }, 'Bread']
  sent.length = 0
  const reply = await post(gateway, '/v1/rerank', {
    model: 'vllm:ranker',
    query: QUERY,
    documents: objects,
    rank_fields: ['title', 'body'],
    return_documents: true,
    max_tokens_per_doc: 100,
    priority: 3,
  })
  const { results } = (await reply.json()) as Ranking
  t.same(
    results.map(({ document }) => document),
    [objects[1], objects[0], { text: 'Bread' }],
  )
  t.match(sent[0]?.body, {
    documents: ['Elbe\nA river.', 'The Nile', 'Bread'],
    truncate_prompt_tokens: 100,
  })
  t.equal(reply.headers.get('x-sluice-lost'), 'priority')
  const picture = { query: QUERY, documents: [{ image: 'https://example.com/a.png' }] }
  const refused = await post(gateway, '/v1/rerank', { model: 'tei:ranker', ...picture })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { kind: 'untranslatable', error: { param: 'documents[0]' } })
  sent.length = 0
  await post(gateway, '/v1/rerank', { model: 'jina:ranker', ...picture })
  t.same(sent[0]?.body['documents'], picture.documents)
})

void t.test('wrong fields are named, and wrong replies are not passed on', async (t) => {
  const gateway = await start(t)
  const body = { model: 'jina:ranker', query: QUERY, documents: DOCUMENTS }
  const wrong: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['/v1/rerank', { documents: [] }, 'documents'],
    ['/v1/rerank', { top_n: 0 }, 'top_n'],
    ['/v2/rerank', { top_n: -1 }, 'top_n'],
    ['/v1/rerank', { top_k: 1 }, 'top_k'],
    ['/v1/rerank', { query: undefined }, 'query'],
    ['/v2/rerank', { documents: [{ text: 'a' }] }, 'documents[0]'],
    ['/v1/rerank', { model: undefined }, 'model'],
  ]
  for (const [path, fields, param] of wrong) {
    const reply = await post(gateway, path, { ...body, ...fields })
    t.equal(reply.status, 400, param)
    t.match(await reply.json(), { kind: 'malformed_request', error: { param } })
  }
  const badLists = [
    [{ index: 3, relevance_score: 1 }],
    [ranked[0], ranked[0]],
    [{ index: 0 }],
    [{ index: 0.5, relevance_score: 1 }],
  ]
  for (const results of badLists) {
    replaced.set('jina', { status: 200, body: { results, usage: { total_tokens: 1 } } })
    const reply = await post(gateway, '/v1/rerank', body)
    t.equal(reply.status, 502)
    t.match(await reply.json(), { kind: 'upstream_malformed' })
  }
  replaced.set('jina', { status: 422, body: { detail: [{ loc: ['body', 'query'], msg: 'is too long' }] } })
  const refused = await post(gateway, '/v1/rerank', body)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { message: /body\.query: is too long/, kind: 'upstream_rejected' })
  replaced.set('jina', { status: 200, body: { results: ranked.slice(0, 2) } })
  t.equal((await post(gateway, '/v1/rerank', body)).status, 200)
  t.match((await rowsOf(gateway)).at(-1), { source: 'estimated', costNanoUsd: /^[1-9]/ })
  replaced.clear()
})

void t.test('guardrails mask the query and the documents', async (t) => {
  const more = `guardrails:\n  rivers: { patterns: [Nile], action: mask }\n`
  const gateway = await start(t, more, ', guardrails: [rivers]')
  sent.length = 0
  const body = { model: 'cohere:ranker', query: 'Nile?', documents: DOCUMENTS }
  const reply = await post(gateway, '/v2/rerank', body)
  t.equal(reply.status, 200)
  t.notMatch(JSON.stringify(sent), 'Nile')
  t.match((await rowsOf(gateway)).at(-1), { guardrails: 'rivers:mask' })
})

void t.test('the cache answers equal requests', async (t) => {
  const gateway = await start(t, '', ', cache: { methods: [rerank] }')
  const body = { model: 'tei:ranker', query: QUERY, documents: DOCUMENTS }
  sent.length = 0
  const first = (await (await post(gateway, '/v1/rerank', body)).json()) as Ranking
  const second = await post(gateway, '/v1/rerank', body)
  t.same(((await second.json()) as Ranking).results, first.results)
  t.equal(sent.length, 1)
  t.match((await rowsOf(gateway)).at(-1), { cacheHit: true, costNanoUsd: 0, savedNanoUsd: 2_000 })
  await post(gateway, '/v1/rerank', { ...body, documents: DOCUMENTS.slice(0, 2) })
  t.equal(sent.length, 2)
})
