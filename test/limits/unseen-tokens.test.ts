/**
 * Goal: a key with a small budget may search the web, as the page about limits describes; a refusal states
 * what to change.
 * Method: the settings of the page, in all client formats, on both stores.
 */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { rowsOf } from '../helpers/ledger.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { chat, gemini, messages, responses, setUp, type Asked } from './hosted-upstream.js'
import { anotherDay } from '../helpers/long-suite.js'

const OVER = [402, 429]
const PAGE = readFileSync('docs/how-to/set-limits-and-budgets.md', 'utf8')
const [SETTING = ''] = /^limiting: \{ unseen_input_tokens.*$/m.exec(PAGE) ?? []
const ALLOWED = { allowTools: ['web_search', 'mcp'] }

const SEARCHES: readonly Asked[] = [
  messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  chat({ web_search_options: {} }),
  responses({ tools: [{ type: 'web_search' }] }),
  gemini({ tools: [{ googleSearch: {} }] }),
]

async function checkSearches(t: Test, store?: string): Promise<void> {
  t.not(SETTING, '', 'the page has the setting')
  const stored = store === undefined ? {} : { store }
  const { key, ask, gateway } = await setUp(t, { more: SETTING, ...stored })
  const secret = await key({ limits: { nanoUsdPerDay: 5e9 }, ...ALLOWED })
  for (const asked of SEARCHES) {
    const { status, text } = await ask(secret, asked)
    t.equal(status, 200, `${asked.path} ${text.slice(0, 200)}`)
  }
  const spent = (await rowsOf(gateway)).reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.ok(spent < 0.2e9, `$${spent / 1e9} are charged in the end`)
  const [search] = SEARCHES
  const small = await key({ limits: { nanoUsdPerDay: 0.3e9 }, ...ALLOWED })
  const refused = search === undefined ? null : await ask(small, search)
  t.ok(OVER.includes(refused?.status ?? 0), 'the tokens of the setting are reserved')
  t.match(refused?.text, /\$0\.\d+ for input that `web_search` may add/)
}

void t.test('a key of $5 searches the web: SQLite', { skip: anotherDay(0, 2) }, (t) => checkSearches(t))
void t.test(
  'a key of $5 searches the web: Redis',
  { skip: anotherDay(1, 2) || redisMissing() },
  async (t) => {
    const redis = await startRedis(t)
    await checkSearches(t, redis.url())
  },
)

void t.test('a refusal names the largest part and the field of the client', async (t) => {
  const { key, gateway } = await setUp(t)
  const budget = await key({ limits: { nanoUsdPerDay: 0.01e9 }, ...ALLOWED })
  const tokens = 100_000
  const config = { generationConfig: { maxOutputTokens: tokens } }
  const limits: readonly (readonly [field: string, asked: Asked])[] = [
    ['max_completion_tokens', chat({ max_tokens: undefined, max_completion_tokens: tokens })],
    ['max_tokens', chat({ max_tokens: tokens })],
    ['max_output_tokens', responses({ max_output_tokens: tokens })],
    ['max_tokens', messages({ max_tokens: tokens })],
    ['maxOutputTokens', gemini(config)],
    [
      'max_tokens',
      { path: '/v1/completions', body: { model: 'gpt-5.4-mini', prompt: 'hi', max_tokens: tokens } },
    ],
  ]
  const headersOf = async (secret: string, { path, body }: Asked): Promise<Response> =>
    fetch(gateway.origin + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    })
  for (const [field, asked] of limits) {
    const res = await headersOf(budget, asked)
    const text = await res.text()
    t.ok(OVER.includes(res.status), `${asked.path} ${res.status}`)
    t.match(text, new RegExp(`\\$[\\d.]+ for a reply of up to \\d+ tokens.*lower ${field}\\b`), asked.path)
    t.equal(res.headers.get('retry-after'), null, 'no waiting helps')
    t.equal(res.headers.get('x-should-retry'), 'false')
    const perMinute = await key({ limits: { tokensPerMinute: 1_000 } })
    const rate = await headersOf(perMinute, asked)
    t.equal(rate.status, 429)
    t.match(await rate.text(), new RegExp(`lower ${field}\\b`))
    t.equal(rate.headers.get('retry-after'), null, 'of a limit of tokens either')
  }
  const window = await headersOf(
    budget,
    messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  )
  t.match(await window.text(), /\$5\.\d+ for input that `web_search` may add/)
})

void t.test('a refusal of a reply of unknown length names the field of the client', async (t) => {
  const price = '{ input: 1, output: 1 }'
  const models = ['gpt-new', 'claude-new', 'gemini-new'].map((model) => `${model}: ${price}`).join(', ')
  const { key, ask } = await setUp(t, {
    upstreamOptions: `prices: { ${models} }`,
    more: 'limiting: { unknown_length: refuse }',
  })
  const secret = await key({ limits: { nanoUsdPerDay: 1e9 } })
  const config = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
  for (const [field, asked] of [
    ['max_completion_tokens', chat({ model: 'gpt-new', max_tokens: undefined })],
    ['max_output_tokens', responses({ model: 'gpt-new', max_output_tokens: undefined })],
    ['maxOutputTokens', { path: '/v1beta/models/gemini-new:generateContent', body: config }],
    ['max_tokens', { path: '/v1/completions', body: { model: 'gpt-new', prompt: 'hi' } }],
  ] as const) {
    const { status, text } = await ask(secret, asked)
    t.equal(status, 400, `${asked.path} ${text.slice(0, 300)}`)
    t.match(text, new RegExp(`set ${field} in the request`), asked.path)
  }
})
