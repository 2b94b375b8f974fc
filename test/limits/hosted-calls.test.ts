/**
 * Goal: calls of tools that providers run are reserved and charged, translated and unchanged, as streams and
 * as whole replies; many requests at once stay within a budget.
 * Method: a gateway over an upstream whose replies report searches of the web; ledger entries are read, with
 * both stores.
 */
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { rowsOf } from '../helpers/ledger.js'
import type { RawUpstream } from '../helpers/raw-upstream.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import {
  BUDGET,
  chat,
  gemini,
  JSON_TYPE,
  MESSAGE,
  messages,
  response,
  responses,
  setUp,
  wholeOf,
  type Asked,
} from './hosted-upstream.js'
import { anotherDay } from '../helpers/long-suite.js'

/** Requests that search the web, the searches that their replies report, and the price of a search. */
const SEARCHES: readonly (readonly [asked: Asked, calls: number, nanoUsd: number])[] = [
  [chat({ web_search_options: {} }), 1, 0.01e9],
  [chat({ web_search_options: {}, stream: true }), 1, 0.01e9],
  // Translated to Responses.
  [chat({ model: 'gpt-4.1', web_search_options: {} }), 2, 0.025e9],
  [chat({ model: 'gpt-4.1', web_search_options: {}, stream: true }), 2, 0.025e9],
  [responses({ tools: [{ type: 'web_search' }] }), 2, 0.01e9],
  [responses({ tools: [{ type: 'web_search' }], stream: true }), 2, 0.01e9],
  [messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }), 2, 0.01e9],
  [messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }], stream: true }), 2, 0.01e9],
  // Translated: the reply's usage counts.
  [chat({ model: 'claude-sonnet-4-6' }), 2, 0.01e9],
  [chat({ model: 'claude-sonnet-4-6', stream: true }), 2, 0.01e9],
  [chat({ model: 'gemini-3.5-flash' }), 2, 0.014e9],
  [chat({ model: 'gemini-3.5-flash', stream: true }), 2, 0.014e9],
  [gemini({ tools: [{ googleSearch: {} }] }), 2, 0.014e9],
  [
    gemini(
      { tools: [{ googleSearch: {} }] },
      '/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
    ),
    2,
    0.014e9,
  ],
]

/** Dollars per million tokens of prompt and reply. */
const TOKEN_PRICES: Readonly<Record<string, readonly [number, number]>> = {
  'gpt-5.4-mini': [0.75, 4.5],
  'gpt-4.1': [2, 8],
  'claude-sonnet-4-6': [3, 15],
  'gemini-3.5-flash': [1.5, 9],
}

async function checkCharges(t: Test, store?: string): Promise<void> {
  const { key, ask, gateway } = await setUp(t, store === undefined ? {} : { store })
  const secret = await key({ ...BUDGET, allowTools: ['web_search'] })
  const expected: number[] = []
  for (const [asked, calls, nanoUsd] of SEARCHES) {
    const answer = await ask(secret, asked)
    t.equal(answer.status, 200, `${asked.path} ${answer.text.slice(0, 300)}`)
    expected.push(calls * nanoUsd)
  }
  const rows = (await rowsOf(gateway)).filter(({ outcome }) => outcome === 'ok')
  t.equal(rows.length, SEARCHES.length)
  for (const [index, row] of rows.entries()) {
    t.equal(row.costNanoUsd, (expected[index] ?? 0) + tokensNanoUsd(row), label(SEARCHES[index]?.[0]))
  }
  const spent = rows.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  // A request for more than the rest is refused, one for the rest is not: the budget was charged the cost.
  const left = await key({ limits: { nanoUsdPerDay: 1e9 }, allowTools: ['*'] })
  t.equal((await ask(left, chat({}))).status, 200)
  t.ok(spent > 0)
}

function tokensNanoUsd({ usage, modelAnswered }: LedgerEntry): number {
  const [input, output] = TOKEN_PRICES[modelAnswered ?? ''] ?? [NaN, NaN]
  return Math.round((usage.input ?? 0) * input * 1e3 + (usage.output ?? 0) * output * 1e3)
}

function label(asked: Asked | undefined): string {
  return JSON.stringify(asked)
}

void t.test('calls are charged: SQLite', { skip: anotherDay(0, 2) }, (t) => checkCharges(t))
void t.test('calls are charged: Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  await checkCharges(t, redis.url())
})

async function checkBurst(t: Test, store?: string): Promise<void> {
  const { key, ask, gateway, upstream } = await setUp(t, store === undefined ? {} : { store })
  const million = { prompt_tokens: 350_000, completion_tokens: 50, total_tokens: 350_050 }
  upstream.answer = ({ url, body }) => {
    const { model = '' } = JSON.parse(body.toString()) as { model?: string }
    return { type: JSON_TYPE, chunks: [JSON.stringify({ ...wholeOf(url, model), usage: million })] }
  }
  const secret = await key({ limits: { nanoUsdPerDay: 1e9 }, allowTools: ['*'] })
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => ask(secret, chat({ web_search_options: {} }))),
  )
  const served = answers.filter(({ status }) => status === 200).length
  t.ok(answers.every(({ status }) => [200, 402, 503].includes(status)))
  const rows = await rowsOf(gateway)
  const spent = rows.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.ok(served > 0 && spent <= 1e9, `${served} served, $${spent / 1e9} of $1 spent`)
}

void t.test('100 requests at once stay within a budget: SQLite', { skip: anotherDay(1, 2) }, (t) =>
  checkBurst(t),
)
void t.test(
  '100 requests at once stay within a budget: Redis',
  { skip: anotherDay(0, 2) || redisMissing() },
  async (t) => {
    const redis = await startRedis(t)
    await checkBurst(t, redis.url())
  },
)

void t.test('reservations include the possible calls', async (t) => {
  const { key, ask } = await setUp(t)
  // $6.05 are the window and the reply; each search costs $0.01.
  const search = (more: object) =>
    messages({ tools: [{ type: 'web_search_20250305', name: 'web_search', ...more }] })
  const secret = await key({ limits: { nanoUsdPerDay: 6.05e9 }, allowTools: ['*'] })
  t.equal((await ask(secret, search({}))).status, 402, '10 calls without a maximum')
  t.equal((await ask(secret, search({ max_uses: 3 }))).status, 200)
})

void t.test('a call of unknown price', async (t) => {
  const image = responses({ tools: [{ type: 'image_generation' }] })
  const withImage = (upstream: RawUpstream) => {
    upstream.answer = ({ body }) => {
      const { model = '' } = JSON.parse(body.toString()) as { model?: string }
      const output = [{ type: 'image_generation_call', id: 'ig_1', result: '' }, MESSAGE]
      return { type: JSON_TYPE, chunks: [JSON.stringify({ ...response(model), output })] }
    }
  }
  const assumed = await setUp(t)
  withImage(assumed.upstream)
  const secret = await assumed.key({ limits: { nanoUsdPerDay: 0.4e9 }, allowTools: ['*'] })
  t.equal((await assumed.ask(secret, image)).status, 402, 'reserves 10 calls of $0.05')
  const rich = await assumed.key({ limits: { nanoUsdPerDay: 0.56e9 }, allowTools: ['*'] })
  t.equal((await assumed.ask(rich, image)).status, 200)
  t.equal((await rowsOf(assumed.gateway)).at(-1)?.costNanoUsd, null, 'unknown in the ledger')
  t.equal((await assumed.ask(rich, image)).status, 200, 'one assumed call was charged')
  t.equal((await assumed.ask(rich, image)).status, 402, 'and another one')
  const strict = await setUp(t, { more: 'limiting: { unknown_price: refuse }' })
  const other = await strict.key({ ...BUDGET, allowTools: ['*'] })
  const refused = await strict.ask(other, image)
  t.match(refused, { status: 403, text: /calls\.image_generation/ })
  const priced = await setUp(t, {
    upstreamOptions: 'prices: { gpt-5.4-mini: { input: 1, output: 1, calls: { image_generation: 0.04 } } }',
  })
  withImage(priced.upstream)
  t.equal((await priced.ask(await priced.key(), image)).status, 200)
  t.equal((await rowsOf(priced.gateway)).at(-1)?.costNanoUsd, 0.04e9 + 110_000)
})
